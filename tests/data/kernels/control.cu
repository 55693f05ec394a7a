// SPDX-License-Identifier: Apache-2.0
// Control flow and memory: jump tables, calls, local arrays, constants, printf.
#include <cstdio>

__constant__ int weights[8] = {3, -1, 4, 1, -5, 9, 2, -6};
__device__ int biases[4] = {10, 20, 30, 40};

extern "C" __global__ void choose(const unsigned* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int x = static_cast<int>(in[i]);
  int y;
  switch (in[(i + 1) % n] % 11) {
    case 0: y = x + 1; break;
    case 1: y = x * 3; break;
    case 2: y = x >> 4; break;
    case 3: y = __popc(x); break;
    case 4: y = __clz(x); break;
    case 5: y = x / 7; break;
    case 6: y = x % 13; break;
    case 7: y = __brev(x); break;
    case 8: y = __byte_perm(x, ~x, 0x5062); break;
    case 9: y = __funnelshift_l(x, i, 5); break;
    default: y = ~x;
  }
  out[i] = y;
}

extern "C" __global__ void jump_table(const unsigned* in, unsigned* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned y;
  asm volatile(
      "{\n\t.reg .u32 index;\n\tand.b32 index, %1, 3;\n"
      "table: .branchtargets zero, one, two, three;\n\tbrx.idx index, table;\n"
      "zero:\n\tadd.u32 %0, %1, 10;\n\tbra done;\n"
      "one:\n\tmul.lo.u32 %0, %1, 7;\n\tbra done;\n"
      "two:\n\tnot.b32 %0, %1;\n\tbra done;\n"
      "three:\n\tshr.u32 %0, %1, 9;\n"
      "done:\n\t}"
      : "=r"(y)
      : "r"(in[i]));
  out[i] = y;
}

__device__ __noinline__ int weigh(int x, int which) { return x * weights[which & 7] + biases[which & 3]; }
__device__ __noinline__ int fibonacci(int n) {
  int a = 0, b = 1;
  for (int i = 0; i < n; ++i) b += a, a = b - a;
  return a + weigh(n, b) - weigh(n, b);
}

extern "C" __global__ void calls(const unsigned* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = weigh(static_cast<int>(in[i]), i) + fibonacci(i % 9);
}

// Steps of the Collatz sequence, and its largest member.
extern "C" __global__ void collatz(unsigned* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = i + 1, steps = 0, largest = x;
  while (x != 1) {
    x = x & 1 ? 3 * x + 1 : x / 2;
    largest = max(largest, x);
    ++steps;
  }
  out[2 * i] = steps;
  out[2 * i + 1] = largest;
}

extern "C" __global__ void local_array(const unsigned* in, unsigned* out, int n) {
  unsigned count[16] = {};
  for (int i = threadIdx.x; i < n; i += blockDim.x) count[in[i] % 16] += in[i] >> 4;
  unsigned sum = 0;
  for (int i = 0; i < 16; ++i) sum = sum * 31 + count[(i * 5 + threadIdx.x) % 16];
  out[threadIdx.x] = sum;
}

extern "C" __global__ void say(const float* in, int* out, int n) {
  const int i = threadIdx.x;
  if (i < n) out[i] = printf("element %d of %d is %.3f%s\n", i, n, in[i], i + 1 < n ? "," : "");
}

struct Point {
  float x, y, z;
  short tag;
};
extern "C" __global__ void structures(const Point* in, Point* out, int n, long long offset, double factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Point p = in[i];
  p.x = static_cast<float>(p.y * factor);
  p.z = -p.z;
  p.tag = static_cast<short>(p.tag + offset);
  out[n - 1 - i] = p;
}
