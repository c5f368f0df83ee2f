/*
 * Runs CUDA kernels on the host: one fibre for each thread of a block, block after block. A barrier that only some
 * threads reach stops the program. ThreadSanitizer is told that fibres are threads, which barriers alone put in order.
 */
/* C++14 has Bessel functions for those who ask. */
#define __STDCPP_WANT_MATH_SPEC_FUNCS__ 1
#include "host.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <setjmp.h>
#include <ucontext.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#ifdef __SANITIZE_THREAD__
Places *host_own;
#else
Place threadIdx, blockIdx, blockDim, gridDim;
#endif

/* Functions that CUDA has and C has not; slow, and good to the last digits. */
double erfinv(double y)
{
    if (!(fabs(y) < 1))
        return fabs(y) == 1 ? copysign(INFINITY, y) : NAN;
    double x = 0;
    const double w = -log((1 - y) * (1 + y));
    x = copysign(sqrt(sqrt(pow(2 / (M_PI * 0.147) - w / 2, 2) + w / 0.147) - (2 / (M_PI * 0.147) - w / 2)), y);
    for (int round = 0; round < 4; round++) {
        const double gap = (y > 0.5 ? (1 - y) - erfc(x) : y < -0.5 ? erfc(-x) - (1 + y) : erf(x) - y);
        const double step = (y > 0.5 ? gap : y < -0.5 ? gap : gap) / (2 / sqrt(M_PI) * exp(-x * x));
        x -= step / (1 + x * step);
    }
    return y == 0 ? y : x;
}
double erfcinv(double y)
{
    if (!(y > 0 && y < 2))
        return y == 0 ? INFINITY : y == 2 ? -INFINITY : NAN;
    double x = y > 0.1 ? erfinv(1 - y) : sqrt(-log(y * sqrt(M_PI * -log(y))));
    for (int round = 0; round < 6; round++) {
        const double step = (erfc(x) - y) / (-2 / sqrt(M_PI) * exp(-x * x));
        x -= step / (1 + x * step);
    }
    return x;
}
double erfcx(double x)
{
    if (x < 20)
        return exp(x * x) * erfc(x);
    double tail = 0;
    for (int term = 30; term > 0; term--)
        tail = term / 2.0 / (x + tail);
    return 1 / (sqrt(M_PI) * (x + tail));
}
double normcdf(double x) { return erfc(-x * M_SQRT1_2) / 2; }
double normcdfinv(double y) { return -M_SQRT2 * erfcinv(2 * y); }
double cyl_bessel_i0(double x) { return std::cyl_bessel_i(0.0, fabs(x)); }
double cyl_bessel_i1(double x) { return copysign(std::cyl_bessel_i(1.0, fabs(x)), x); }
namespace host {

[[noreturn]] static inline void stop(const char *what)
{
    std::fprintf(stderr, "block %u, thread %u: %s\n", blockIdx.x, threadIdx.x, what);
    std::abort();
}

enum State { READY, AT_BLOCK, AT_WARP, DONE };

constexpr size_t STACK = 1 << 16;

struct Fibre {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[STACK]};
    State state = READY;
    void *shadow = nullptr;
    bool begun = false;
    jmp_buf place;
#ifdef __SANITIZE_THREAD__
    Places places;
    void *watched = nullptr;
    unsigned barriers[2] = {0, 0};
#endif
};

static ucontext_t scheduler;
static jmp_buf scheduler_place;
static void *scheduler_shadow;
static const void *scheduler_stack;
static size_t scheduler_size;
/* Those of the largest block so far; `count` of them are the threads of the block that runs now. */
static std::vector<Fibre> fibres;
unsigned count;
uint64_t *slots;
static std::vector<uint64_t> own_slots;
static void (*running)(void *);
static void *closure;

#ifdef __SANITIZE_THREAD__
constexpr unsigned WARPS = 1024 / WARP;
static Fibre *current;
static void *scheduler_watched;
/* What threads leave behind and find: at the start and the end of a block, and at barriers, of which a thread may be at
   the next one while others have not yet left the one before. */
static char begun_mark, done_mark, block_marks[2], warp_marks[WARPS][2];

HOST_UNWATCHED static void *mark(Fibre &own, State state)
{
    if (state == DONE)
        return &done_mark;
    const unsigned turn = own.barriers[state == AT_WARP]++ % 2;
    return state == AT_BLOCK ? &block_marks[turn] : &warp_marks[own.places.thread.x / WARP][turn];
}
#endif

static inline void left(void **shadow, const void *stack, size_t size)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(shadow, stack, size);
#else
    (void)shadow, (void)stack, (void)size;
#endif
}

static inline void arrived(void *shadow, const void **stack, size_t *size)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(shadow, stack, size);
#else
    (void)shadow, (void)stack, (void)size;
#endif
}

HOST_UNWATCHED static void wait(State state)
{
#ifdef __SANITIZE_THREAD__
    Fibre &own = *current;
    own.state = state;
    void *met = mark(own, state);
    __tsan_release(met);
    __tsan_switch_to_fiber(scheduler_watched, __tsan_switch_to_fiber_no_sync);
    swapcontext(&own.context, &scheduler);
    __tsan_acquire(met);
#else
    Fibre &own = fibres[threadIdx.x];
    own.state = state;
#ifdef __SANITIZE_ADDRESS__
    left(state == DONE ? nullptr : &own.shadow, scheduler_stack, scheduler_size);
    swapcontext(&own.context, &scheduler);
    arrived(own.shadow, nullptr, nullptr);
#else
    /* A jump asks nothing of the system, unlike a swap. */
    if (!_setjmp(own.place))
        _longjmp(scheduler_place, 1);
#endif
#endif
}

/* Run a fibre until it waits. */
HOST_UNWATCHED static void resume(Fibre &each)
{
#if defined __SANITIZE_THREAD__
    current = &each;
    host_own = &each.places;
    __tsan_switch_to_fiber(each.watched, __tsan_switch_to_fiber_no_sync);
    swapcontext(&scheduler, &each.context);
#elif defined __SANITIZE_ADDRESS__
    left(&scheduler_shadow, each.stack.get(), STACK);
    swapcontext(&scheduler, &each.context);
    arrived(scheduler_shadow, nullptr, nullptr);
#else
    if (_setjmp(scheduler_place))
        return;
    if (each.begun)
        _longjmp(each.place, 1);
    each.begun = true;
    setcontext(&each.context);
#endif
}

HOST_UNWATCHED static void body()
{
#ifdef __SANITIZE_THREAD__
    __tsan_acquire(&begun_mark);
#endif
    arrived(nullptr, &scheduler_stack, &scheduler_size);
    /* Each round is a block. */
    for (;;) {
        running(closure);
        wait(DONE);
    }
}

void sync_block()
{
    if (count == 0)
        stop("a barrier in a kernel that was said to have none");
    wait(AT_BLOCK);
}

void sync_warp()
{
    if (count == 0)
        stop("a shuffle in a kernel that was said to have none");
    wait(AT_WARP);
}

/* Let threads [first, last) go on if all of them wait for the same. */
HOST_UNWATCHED static bool released(unsigned first, unsigned last, State state)
{
    for (unsigned thread = first; thread < last; thread++)
        if (fibres[thread].state != state)
            return false;
    for (unsigned thread = first; thread < last; thread++)
        fibres[thread].state = READY;
    return true;
}

HOST_UNWATCHED static void block(unsigned index, unsigned blocks, unsigned threads)
{
#ifdef __SANITIZE_THREAD__
    scheduler_watched = __tsan_get_current_fiber();
    if (fibres.size() < threads)
        for (Fibre &each : fibres)
            __tsan_destroy_fiber(each.watched);
#else
    blockIdx = {index, 0, 0};
    blockDim = {threads, 1, 1};
    gridDim = {blocks, 1, 1};
#endif
    if (fibres.size() < threads)
        fibres = std::vector<Fibre>(threads);
    count = threads;
    own_slots.assign(threads, 0);
    slots = own_slots.data();
    for (unsigned thread = 0; thread < threads; thread++) {
        Fibre &each = fibres[thread];
        each.state = READY;
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
        /* What is watched begins anew in each block. */
        each.begun = false;
#endif
        if (!each.begun) {
            getcontext(&each.context);
            each.context.uc_stack.ss_sp = each.stack.get();
            each.context.uc_stack.ss_size = STACK;
            each.context.uc_link = nullptr;
            makecontext(&each.context, body, 0);
        }
#ifdef __SANITIZE_THREAD__
        if (!each.watched)
            each.watched = __tsan_create_fiber(0);
        each.places = {{thread, 0, 0}, {index, 0, 0}, {threads, 1, 1}, {blocks, 1, 1}};
        each.barriers[0] = each.barriers[1] = 0;
#endif
    }
#ifdef __SANITIZE_THREAD__
    __tsan_release(&begun_mark);
#endif
    for (unsigned done = 0; done < threads;) {
        bool moved = false;
        for (unsigned thread = 0; thread < threads; thread++) {
            Fibre &each = fibres[thread];
            if (each.state != READY)
                continue;
            moved = true;
#ifndef __SANITIZE_THREAD__
            threadIdx = {thread, 0, 0};
#endif
            resume(each);
            done += each.state == DONE;
        }
        moved |= released(0, threads, AT_BLOCK);
        for (unsigned first = 0; first < threads; first += WARP)
            moved |= released(first, first + WARP < threads ? first + WARP : threads, AT_WARP);
        if (!moved)
            stop("a barrier that not all threads reach");
    }
#ifdef __SANITIZE_THREAD__
    __tsan_acquire(&done_mark);
#endif
}

void run(unsigned blocks, unsigned threads, bool barriers, void (*thread)(void *), void *given)
{
    (void)barriers;
    running = thread;
    closure = given;
#ifndef __SANITIZE_THREAD__
    if (!barriers) {
        count = 0;
        blockDim = {threads, 1, 1};
        gridDim = {blocks, 1, 1};
        for (unsigned index = 0; index < blocks; index++)
            for (unsigned number = 0; number < threads; number++) {
                blockIdx = {index, 0, 0};
                threadIdx = {number, 0, 0};
                thread(given);
            }
        return;
    }
#endif
    for (unsigned index = 0; index < blocks; index++)
        block(index, blocks, threads);
}

} // namespace host
