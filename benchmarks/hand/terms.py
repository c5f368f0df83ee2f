"""The polynomial of 200 terms and its gradient as a person writes them in CUDA: a loop over a table, unrolled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.workloads.gpu import TERMS, terms

__all__ = ["source", "terms_by_hand"]

THREADS = 128
_TEXT = """
struct Term {
    double factor;
    int variables[4];
};
__device__ constexpr Term TERMS[] = {
%s
};
constexpr int COUNT = sizeof(TERMS) / sizeof(TERMS[0]);

extern "C" __global__ void __launch_bounds__(%d)
polynomial_of_terms(const double *__restrict__ x, long long points, double *total, double *__restrict__ slope)
{
    __shared__ double sums[%d];
    double sum = 0;
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < points;
         at += gridDim.x * (long long)blockDim.x) {
        double own[8], by[8] = {};
        #pragma unroll
        for (int number = 0; number < 8; number++)
            own[number] = x[number * points + at];
        #pragma unroll
        for (int number = 0; number < COUNT; number++) {
            const int a = TERMS[number].variables[0], b = TERMS[number].variables[1];
            const int c = TERMS[number].variables[2], d = TERMS[number].variables[3];
            const double left = TERMS[number].factor * own[a] * own[b], right = own[c] * own[d];
            sum += left * right;
            by[a] += TERMS[number].factor * own[b] * right;
            by[b] += TERMS[number].factor * own[a] * right;
            by[c] += left * own[d];
            by[d] += left * own[c];
        }
        #pragma unroll
        for (int number = 0; number < 8; number++)
            slope[number * points + at] = by[number];
    }
    sums[threadIdx.x] = sum;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        atomicAdd(total, sums[0]);
}
"""


def source() -> str:
    """The kernel's file."""
    rows = [f"    {{{factor!r}, {{{', '.join(map(str, variables))}}}}}," for factor, variables in terms(TERMS)]
    return _TEXT % ("\n".join(rows), THREADS, THREADS)


def terms_by_hand() -> Callable[[Any], tuple[float, Any]]:
    """A function of the points, an array on the GPU, that gives value and gradient."""
    import cupy
    import numpy as np

    kernel = cupy.RawModule(code=source(), options=("--std=c++17",)).get_function("polynomial_of_terms")

    def value_and_gradient(x: Any) -> tuple[float, Any]:
        points = x.shape[1]
        total, slope = cupy.zeros(()), cupy.empty(x.shape)
        blocks = min(2048, -(-points // THREADS))
        kernel((blocks,), (THREADS,), (x, np.int64(points), total, slope))
        return float(total), slope

    return value_and_gradient
