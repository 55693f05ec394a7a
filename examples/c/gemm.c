/* SPDX-License-Identifier: Apache-2.0
 * examples/c/gemm.c - C = gelu(A * B + bias) from C, for sizes that are met at run time, on the GPU
 * if there is one, else on the emulator:
 *
 *   gemm [M N K]      default: 200 96 136; N and K are multiples of 8
 *
 * The inputs are f32, which the tensor cores round to tf32; C is compared with a loop in double.
 */
#include <tartan/c.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program with the diagnostics of an error. */
static void check(tartan_error* error) {
  if (error == NULL) return;
  fputs(tartan_error_text(error), stderr);
  tartan_error_free(error);
  exit(1);
}

/* Small numbers, which tf32 holds exactly. */
static float* numbers(size_t count, unsigned seed) {
  float* out = malloc(count * sizeof *out);
  size_t i;
  if (out == NULL) exit(1);
  for (i = 0; i < count; ++i) out[i] = (float)((i * 7 + i / 13 + seed) % 17) / 8 - 1;
  return out;
}

static tartan_buffer* copy_of(tartan_device* device, const float* values, size_t count) {
  tartan_buffer* buffer = NULL;
  check(tartan_allocate(device, count * sizeof *values, &buffer));
  check(tartan_write(buffer, 0, values, count * sizeof *values));
  return buffer;
}

static double gelu(double x) {
  return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

/* The largest difference to a loop in double: B is column-major. */
static double largest_error(const int32_t size[3], const float* a, const float* b, const float* c,
                            const float* bias) {
  const size_t m = (size_t)size[0], n = (size_t)size[1], k = (size_t)size[2];
  double largest = 0;
  size_t i, j, at;
  for (i = 0; i < m; ++i)
    for (j = 0; j < n; ++j) {
      double sum = bias[j];
      for (at = 0; at < k; ++at) sum += (double)a[i * k + at] * b[j * k + at];
      sum = fabs(gelu(sum) - c[i * n + j]);
      if (!(sum <= largest)) largest = sum; /* NaN too */
    }
  return largest;
}

int main(int count, char** words) {
  int32_t size[3] = {200, 96, 136};
  const char options[] =
      "{\"m\": 0, \"n\": 0, \"k\": 0, \"type\": \"f32\", \"epilogue\": [\"bias\", \"gelu\"]}";
  tartan_device* device = NULL;
  tartan_kernel* kernel = NULL;
  tartan_function* gemm = NULL;
  tartan_buffer* buffers[4];
  tartan_argument arguments[7] = {{NULL, 0, 0}};
  uint64_t addresses[4];
  size_t lengths[4];
  float* values[4];
  double largest;
  int i;
  for (i = 0; i < 3 && count == 4; ++i) size[i] = atoi(words[1 + i]);
  lengths[0] = (size_t)size[0] * (size_t)size[2]; /* A */
  lengths[1] = (size_t)size[2] * (size_t)size[1]; /* B */
  lengths[2] = (size_t)size[0] * (size_t)size[1]; /* C */
  lengths[3] = (size_t)size[1];                   /* bias */

  check(tartan_open("auto", NULL, &device));
  check(tartan_compile("gemm", tartan_device_arch(device), options, &kernel));
  check(tartan_load(device, kernel, &gemm));
  for (i = 0; i < 3; ++i) {
    arguments[i].value = &size[i];
    arguments[i].size = sizeof size[i];
  }
  for (i = 0; i < 4; ++i) {
    values[i] = numbers(lengths[i], (unsigned)i);
    buffers[i] = copy_of(device, values[i], lengths[i]);
    addresses[i] = tartan_buffer_address(buffers[i]);
    arguments[3 + i].value = &addresses[i];
    arguments[3 + i].size = sizeof addresses[i];
    arguments[3 + i].extent = tartan_buffer_size(buffers[i]);
  }
  check(tartan_launch(gemm, NULL, arguments, 7)); /* the library computes the grid */
  check(tartan_synchronize(device));
  check(tartan_read(buffers[2], 0, values[2], lengths[2] * sizeof(float)));

  largest = largest_error(size, values[0], values[1], values[2], values[3]);
  printf("%s: %d x %d x %d, %s\n", tartan_device_emulated(device) ? "emulator" : "GPU", size[0],
         size[1], size[2], largest < 1e-3 ? "right" : "wrong");
  for (i = 0; i < 4; ++i) {
    tartan_buffer_free(buffers[i]);
    free(values[i]);
  }
  tartan_function_free(gemm);
  tartan_kernel_free(kernel);
  tartan_device_free(device);
  return largest < 1e-3 ? 0 : 1;
}
