/*
 * What a CUDA kernel needs on the host. `host.cpp`, which is compiled once, has what needs no type of a kernel. Each file
 * of kernels reads this, so it includes little.
 */
#ifndef HOST_H
#define HOST_H

#include <cmath>
#include <cstring>
#include <utility>

#include <stddef.h>
#include <stdint.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __shared__ static
#ifndef __restrict__
#define __restrict__ __restrict
#endif

struct Place {
    unsigned x, y, z;
};

#ifdef __SANITIZE_THREAD__
#define HOST_UNWATCHED __attribute__((noinline, no_sanitize_thread))

/* Where the thread that runs now is: what the scheduler writes there is no race. */
struct Places {
    Place thread, block, threads, blocks;
};
extern Places *host_own;
HOST_UNWATCHED static Places &host_places() { return *host_own; }
#define threadIdx (host_places().thread)
#define blockIdx (host_places().block)
#define blockDim (host_places().threads)
#define gridDim (host_places().blocks)
#else
#define HOST_UNWATCHED
extern Place threadIdx, blockIdx, blockDim, gridDim;
#endif

static inline double __dadd_rn(double a, double b) { return a + b; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline float __fmul_rn(float a, float b) { return a * b; }

static inline unsigned __float_as_uint(float x)
{
    unsigned bits;
    std::memcpy(&bits, &x, sizeof x);
    return bits;
}
static inline float __uint_as_float(unsigned bits)
{
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;
#define HOST_ONE(name) \
    using std::name;
HOST_ONE(exp) HOST_ONE(sin) HOST_ONE(cos) HOST_ONE(tan) HOST_ONE(sinh) HOST_ONE(cosh) HOST_ONE(log) HOST_ONE(log1p)
HOST_ONE(tanh) HOST_ONE(sqrt) HOST_ONE(fabs) HOST_ONE(hypot) HOST_ONE(atan2) HOST_ONE(copysign) HOST_ONE(fmax) HOST_ONE(fmin)
#undef HOST_ONE

/* Functions that CUDA has and C has not. */
#define HOST_OWN(name) \
    double name(double x); \
    static inline float name##f(float x) { return (float)name((double)x); }
HOST_OWN(erfinv) HOST_OWN(erfcinv) HOST_OWN(erfcx) HOST_OWN(normcdf) HOST_OWN(normcdfinv)
HOST_OWN(cyl_bessel_i0) HOST_OWN(cyl_bessel_i1)
#undef HOST_OWN

namespace host {

constexpr unsigned WARP = 32;

/* The compiler's own conversions of numbers of 16 bits. */
static inline unsigned short half_of(float x)
{
    const _Float16 half = static_cast<_Float16>(x);
    unsigned short bits;
    std::memcpy(&bits, &half, sizeof bits);
    return bits;
}
static inline float single_of(unsigned short bits)
{
    _Float16 half;
    std::memcpy(&half, &bits, sizeof bits);
    return static_cast<float>(half);
}

/* A word for each thread of the block that runs now. */
extern uint64_t *slots;
extern unsigned count;
void sync_block();
void sync_warp();
void run(unsigned blocks, unsigned threads, bool barriers, void (*thread)(void *), void *given);

} // namespace host

static inline void __syncthreads() { host::sync_block(); }

template <class T> static inline T __shfl_down_sync(unsigned, T value, unsigned distance)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "a slot holds it");
    const unsigned own = threadIdx.x, from = own + distance;
    std::memcpy(&host::slots[own], &value, sizeof(T));
    host::sync_warp();
    T found = value;
    if (from / host::WARP == own / host::WARP && from < host::count)
        std::memcpy(&found, &host::slots[from], sizeof(T));
    host::sync_warp();
    return found;
}

template <class T> static inline T atomicAdd(T *place, T term)
{
#ifdef __SANITIZE_THREAD__
    T old, sum;
    __atomic_load(place, &old, __ATOMIC_RELAXED);
    do
        sum = old + term;
    while (!__atomic_compare_exchange(place, &old, &sum, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
#else
    const T old = *place;
    *place = old + term;
    return old;
#endif
}

namespace host {

template <class... Types, size_t... Numbers>
static void call(void (*kernel)(Types...), unsigned blocks, unsigned threads, bool barriers, void **arguments,
                 std::index_sequence<Numbers...>)
{
    auto thread = [=] { kernel(*static_cast<Types *>(arguments[Numbers])...); };
    run(blocks, threads, barriers, [](void *given) { (*static_cast<decltype(thread) *>(given))(); }, &thread);
}

template <class... Types>
static void launch(void (*kernel)(Types...), unsigned blocks, unsigned threads, bool barriers, void **arguments)
{
    call(kernel, blocks, threads, barriers, arguments, std::index_sequence_for<Types...>());
}

} // namespace host

#endif
