/* SPDX-License-Identifier: Apache-2.0
 * Every function of tartan/c.h, in C99 on the emulator: what it does, and what it says when it is
 * used wrongly. Built with the sanitizers too, where leaks count.
 */
#include <tartan/c.h>
#include <tartan/config.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) {                                              \
      printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                    \
    }                                                                \
  } while (0)

#define CHECK_OK(call) check_ok((call), __LINE__)
#define CHECK_ERROR(call, rule, part) check_error((call), (rule), (part), __LINE__)

static void check_ok(tartan_error* error, int line) {
  if (error == NULL) return;
  printf("%s:%d: %s", __FILE__, line, tartan_error_text(error));
  tartan_error_free(error);
  ++failures;
}

/* The call failed with this rule, and a text that has `part`. */
static void check_error(tartan_error* error, const char* rule, const char* part, int line) {
  if (error == NULL) {
    printf("%s:%d: no error, expected %s\n", __FILE__, line, part);
    ++failures;
    return;
  }
  if (strcmp(tartan_error_rule(error), rule) != 0 ||
      strstr(tartan_error_text(error), part) == NULL) {
    printf("%s:%d: expected %s [%s], found %s", __FILE__, line, part, rule,
           tartan_error_text(error));
    ++failures;
  }
  CHECK(strstr(tartan_error_json(error), "\"diagnostics\"") != NULL);
  tartan_error_free(error);
}

/* JSON that holds `part`; frees it. */
static void check_json(char* json, const char* part, int line) {
  if (json == NULL || strstr(json, part) == NULL) {
    printf("%s:%d: expected %s, found %s\n", __FILE__, line, part, json ? json : "NULL");
    ++failures;
  }
  tartan_string_free(json);
}
#define CHECK_JSON(json, part) check_json((json), (part), __LINE__)

static tartan_argument argument(const void* value, size_t size) {
  tartan_argument out = {NULL, 0, 0};
  out.value = value;
  out.size = size;
  return out;
}

static tartan_launch_options plain_options(void) {
  tartan_launch_options out;
  memset(&out, 0, sizeof out);
  out.size = sizeof out;
  return out;
}

static const char scale_ptx[] =
    ".version 7.8\n.target sm_80\n.address_size 64\n"
    ".visible .entry scale(.param .u64 at, .param .f32 by) {\n"
    "  .reg .b64 %a<3>; .reg .b32 %i; .reg .f32 %x<3>;\n"
    "  ld.param.u64 %a0, [at]; ld.param.f32 %x0, [by];\n"
    "  mov.u32 %i, %tid.x; mul.wide.u32 %a1, %i, 4; add.s64 %a2, %a0, %a1;\n"
    "  ld.global.f32 %x1, [%a2]; mul.f32 %x2, %x1, %x0; st.global.f32 [%a2], %x2;\n"
    "  ret;\n}\n";

static void test_version_and_errors(void) {
  tartan_error* error;
  CHECK(strlen(tartan_version()) >= 5);
  CHECK(tartan_c_version() == TARTAN_C_VERSION);
  CHECK(strcmp(tartan_error_text(NULL), "") == 0);
  CHECK(strcmp(tartan_error_json(NULL), "") == 0);
  CHECK(strcmp(tartan_error_rule(NULL), "") == 0);
  tartan_error_free(NULL);
  tartan_string_free(NULL);
  error = tartan_open(NULL, NULL, NULL);
  CHECK(error != NULL);
  CHECK(strstr(tartan_error_text(error), "the argument name is null") != NULL);
  CHECK(strstr(tartan_error_text(error), "the argument out is null") != NULL); /* all of them */
  tartan_error_free(error);
}

static void test_check(void) {
  char* json = NULL;
  size_t errors = 99;
  CHECK_OK(tartan_check(scale_ptx, NULL, &json, &errors));
  CHECK(errors == 0);
  CHECK_JSON(json, "\"diagnostics\":[]");
  CHECK_OK(tartan_check(".version 7.8\n.target sm_80\nnonsense\n", "sm_80", &json, &errors));
  CHECK(errors > 0);
  CHECK_JSON(json, "\"line\":3");
  CHECK_OK(tartan_check(scale_ptx, "sm_90a", &json, NULL));
  tartan_string_free(json);
  CHECK_ERROR(tartan_check(scale_ptx, "sm_8", &json, &errors), "usage", "unknown target sm_8");
  CHECK(json == NULL);
  CHECK_ERROR(tartan_check(NULL, NULL, &json, NULL), "usage", "the argument ptx is null");
  CHECK_ERROR(tartan_check(scale_ptx, NULL, NULL, NULL), "usage", "the argument json is null");
}

static void test_cache(void) {
  char* json = NULL;
  CHECK_ERROR(tartan_use_cache("/dev/null"), "file", "expected a folder");
  CHECK_OK(tartan_use_cache(""));
  CHECK_OK(tartan_cache_problems(&json));
  CHECK_JSON(json, "\"diagnostics\"");
  CHECK_ERROR(tartan_cache_problems(NULL), "usage", "json is null");
}

static void test_devices(void) {
  tartan_device* device = (tartan_device*)&failures;
  char* json = NULL;
  CHECK_ERROR(tartan_open("emulater", NULL, &device), "no-device", "unknown device emulater");
  CHECK(device == NULL);
  CHECK_ERROR(tartan_open("emulator", "{\"chekcs\": \"all\"}", &device), "usage",
              "unknown option chekcs; the nearest is checks");
  CHECK_ERROR(tartan_open("emulator", "{\"checks\": \"some\"}", &device), "usage",
              "expected none, memory or all, found some");
  CHECK_ERROR(tartan_open("emulator", "{\"threads\": \"many\"}", &device), "usage",
              "option threads: expected an integer of 32 bits, found \"many\"");
  CHECK_ERROR(tartan_open("emulator", "{\"hardware\": \"\"}", &device), "usage",
              "option hardware: expected a string that is not empty");
  CHECK_ERROR(tartan_open("emulator", "{\"threads\": -1}", &device), "usage",
              "tartan_open: option threads: expected a number of at least 0, found -1");
  CHECK_ERROR(tartan_open("emulator", "{\"timeout\": -0.5}", &device), "usage",
              "tartan_open: option timeout: expected a number of at least 0, found -0.5");
  CHECK_ERROR(tartan_open("cuda:3", "{\"checks\": \"none\"}", &device), "usage",
              "tartan_open: option checks: it is of the emulator, found device cuda:3");
  CHECK_OK(tartan_open("auto", "{\"checks\": \"all\"}", &device));
  CHECK(tartan_device_emulated(device) == 1);
  tartan_device_free(device);
  CHECK_ERROR(tartan_open("emulator", "[1]", &device), "usage", "expected a JSON object");
  CHECK_ERROR(tartan_open("emulator", "{", &device), "usage", "text that is not JSON");
  CHECK_OK(tartan_open("emulator", "{\"hardware\": \"sm_80\", \"timeout\": 60}", &device));
  CHECK(strstr(tartan_device_name(device), "emulator") != NULL);
  CHECK(strcmp(tartan_device_arch(device), "sm_80") == 0);
  CHECK(strcmp(tartan_device_gpu(device), TARTAN_HAS_LLVM ? "A100" : "") == 0);
  CHECK(tartan_device_multiprocessors(device) == 108);
  CHECK(tartan_device_emulated(device) == 1);
  CHECK_OK(tartan_synchronize(device));
  CHECK_OK(tartan_findings(device, &json));
  CHECK_JSON(json, "[]");
  CHECK_ERROR(tartan_findings(device, NULL), "usage", "the argument json is null");
  CHECK_ERROR(tartan_synchronize(NULL), "usage", "the argument device is null");
  CHECK(strcmp(tartan_device_name(NULL), "") == 0);
  CHECK(strcmp(tartan_device_arch(NULL), "") == 0);
  CHECK(strcmp(tartan_device_gpu(NULL), "") == 0);
  CHECK(tartan_device_multiprocessors(NULL) == 0);
  CHECK(tartan_device_emulated(NULL) == 0);
  tartan_device_free(device);
  tartan_device_free(NULL);
  CHECK_ERROR(tartan_adopt(NULL, NULL), "usage", "the argument out is null");
}

static void test_buffers(tartan_device* device) {
  tartan_buffer* buffer = NULL;
  unsigned char bytes[100], back[100];
  memset(bytes, 7, sizeof bytes);
  CHECK_OK(tartan_allocate(device, sizeof bytes, &buffer));
  CHECK(tartan_buffer_size(buffer) == sizeof bytes);
  CHECK(tartan_buffer_address(buffer) != 0 && tartan_buffer_address(buffer) % 256 == 0);
  CHECK_OK(tartan_fill(buffer, 3));
  CHECK_OK(tartan_write(buffer, 90, bytes, 10));
  CHECK_OK(tartan_read(buffer, 0, back, sizeof back));
  CHECK(back[0] == 3 && back[89] == 3 && back[90] == 7 && back[99] == 7);
  CHECK_OK(tartan_write(buffer, 0, NULL, 0));
  CHECK_ERROR(tartan_write(buffer, 91, bytes, 10), "buffer-range", "");
  CHECK_ERROR(tartan_read(buffer, 0, back, 101), "buffer-range", "");
  CHECK_ERROR(tartan_write(buffer, 0, NULL, 1), "usage", "the argument from is null");
  CHECK_ERROR(tartan_read(buffer, 0, NULL, 1), "usage", "the argument to is null");
  CHECK_ERROR(tartan_write(NULL, 0, bytes, 1), "usage", "the argument buffer is null");
  CHECK_ERROR(tartan_read(NULL, 0, back, 1), "usage", "the argument buffer is null");
  CHECK_ERROR(tartan_fill(NULL, 0), "usage", "the argument buffer is null");
  tartan_buffer_free(buffer);
  buffer = (tartan_buffer*)&failures;
  CHECK_ERROR(tartan_allocate(device, (size_t)-1, &buffer), "out-of-memory", "");
  CHECK(buffer == NULL);
  CHECK_ERROR(tartan_allocate(NULL, 1, NULL), "usage", "the argument out is null");
  CHECK(tartan_buffer_size(NULL) == 0 && tartan_buffer_address(NULL) == 0);
  tartan_buffer_free(NULL);
}

/* A kernel of PTX text; the device is freed before what came of it. */
static void test_ptx(void) {
  tartan_device* device = NULL;
  tartan_function* scale = (tartan_function*)&failures;
  tartan_buffer* buffer = NULL;
  tartan_argument arguments[2];
  tartan_launch_options options = plain_options();
  struct {
    tartan_launch_options known;
    size_t more;
  } newer;
  float values[32], by = 2;
  uint64_t address;
  char* json = NULL;
  int i;
  for (i = 0; i < 32; ++i) values[i] = (float)i;
  CHECK_OK(tartan_open("emulator", NULL, &device));
  CHECK_ERROR(tartan_load_ptx(device, "nonsense", "scale", &scale), "syntax", "");
  CHECK(scale == NULL);
  CHECK_ERROR(tartan_load_ptx(device, scale_ptx, "scala", &scale), "unknown-kernel", "scale");
  CHECK_ERROR(tartan_load_ptx(device, NULL, NULL, &scale), "usage", "the argument ptx is null");
  CHECK_OK(tartan_load_ptx(device, scale_ptx, "scale", &scale));
  CHECK(strstr(tartan_function_info(scale), "{\"name\":\"by\",\"bytes\":4,\"type\":\"f32\"}") !=
        NULL);
  CHECK(strstr(tartan_function_info(scale), "\"assemble\":0.0,\"load\":") != NULL);
  CHECK(strstr(tartan_function_info(scale), "\"load\":0.0") == NULL);
  CHECK(strcmp(tartan_function_info(NULL), "") == 0);
  CHECK_OK(tartan_allocate(device, sizeof values, &buffer));
  CHECK_OK(tartan_write(buffer, 0, values, sizeof values));

  address = tartan_buffer_address(buffer);
  arguments[0] = argument(&address, sizeof address);
  arguments[1] = argument(&by, sizeof by);
  CHECK_ERROR(tartan_launch(scale, NULL, arguments, 2), "usage", "PTX text needs a block");
  CHECK_ERROR(tartan_work_space(scale, NULL, NULL, &json), "usage", "only compiled kernels");
  options.block[0] = 32;
  CHECK_OK(tartan_launch(scale, &options, arguments, 2));
  memset(&newer, 0, sizeof newer);
  newer.known = options;
  newer.known.size = sizeof newer;
  CHECK_OK(tartan_launch(scale, &newer.known, arguments, 2));
  newer.more = 1;
  CHECK_ERROR(tartan_launch(scale, &newer.known, arguments, 2), "usage", "newer library");
  options.size = offsetof(tartan_launch_options, programmatic); /* the first release's */
  options.programmatic = 1;
  CHECK_OK(tartan_launch(scale, &options, arguments, 2));
  options.size = sizeof options;
  CHECK_ERROR(tartan_launch(scale, &options, arguments, 2), "launch-arguments",
              "programmatic dependent launch is unsupported");
  options.programmatic = 0;
  options.size = 8;
  CHECK_ERROR(tartan_launch(scale, &options, arguments, 2), "usage", "options->size: expected");
  options.size = (size_t)-1;
  CHECK_ERROR(tartan_launch(scale, &options, arguments, 2), "usage", "expected at most 4096");
  options.size = sizeof options;
  arguments[1] = argument(&by, (size_t)-1);
  CHECK_ERROR(tartan_launch(scale, &options, arguments, 2), "usage",
              "arguments[1].size: expected at most 32764");
  arguments[1] = argument(&by, sizeof by);
  CHECK_ERROR(tartan_launch(scale, &options, arguments, 1), "launch-arguments", "");
  CHECK_ERROR(tartan_launch(scale, &options, NULL, 2), "usage", "the argument arguments is null");
  CHECK_ERROR(tartan_launch(NULL, &options, arguments, 2), "usage",
              "the argument function is null");
  arguments[1] = argument(&address, 8); /* f32 has 4 bytes */
  CHECK_ERROR(tartan_launch(scale, &options, arguments, 2), "launch-arguments", "by");
  arguments[1] = argument(NULL, 4);
  CHECK_ERROR(tartan_launch(scale, &options, arguments, 2), "usage", "arguments[1].value is null");
  CHECK_OK(tartan_synchronize(device));
  CHECK_OK(tartan_read(buffer, 0, values, sizeof values));
  for (i = 0; i < 32; ++i) CHECK(values[i] == 8 * (float)i); /* three launches */

  arguments[1] = argument(&by, sizeof by);
  options.block[0] = 64; /* beyond the buffer */
  tartan_error_free(tartan_launch(scale, &options, arguments, 2));
  CHECK_OK(tartan_findings(device, &json));
  CHECK_JSON(json, "memory-fault");
  CHECK_OK(tartan_findings(device, &json));
  CHECK_JSON(json, "[]");
  CHECK_ERROR(tartan_synchronize(device), "memory-fault", "out of bounds");

  tartan_device_free(device);
  CHECK_OK(tartan_fill(buffer, 0));
  options.block[0] = 32;
  CHECK_OK(tartan_launch(scale, &options, arguments, 2));
  tartan_function_free(scale);
  tartan_function_free(NULL);
  CHECK_OK(tartan_read(buffer, 0, values, sizeof values));
  CHECK(values[5] == 0);
  tartan_buffer_free(buffer);
}

/* C = relu(A * B + bias) in f32 (tf32), of any size. */
static const char product[] =
    "{\"m\": 0, \"n\": 0, \"k\": 0, \"type\": \"f32\", \"epilogue\": [\"bias\", \"relu\"]}";

static void test_kernels(void) {
  tartan_kernel* kernel = (tartan_kernel*)&failures;
  char* json = NULL;
  CHECK_ERROR(tartan_compile("gem", "sm_80", NULL, &kernel), "usage",
              "unknown kernel gem; the nearest is gemm");
  CHECK(kernel == NULL);
  CHECK_ERROR(tartan_compile("gemm", "sm_8", NULL, &kernel), "usage", "unknown target sm_8");
  CHECK_ERROR(tartan_compile("gemm", "sm_80", "{\"typ\": 1, \"m\": \"x\"}", &kernel), "usage",
              "unknown option typ; the nearest is type");
  CHECK_ERROR(tartan_compile("gemm", "sm_80", "{\"typ\": 1, \"m\": \"x\"}", &kernel), "usage",
              "option m: expected an integer of 32 bits, found \"x\"");
  CHECK_ERROR(tartan_compile("gemm", "sm_80", "{\"m\": 4294967296}", &kernel), "usage",
              "option m: expected an integer of 32 bits");
  CHECK_ERROR(tartan_compile("gemm", "sm_80", "{\"causal\": true}", &kernel), "usage",
              "option causal: unsupported by kernel gemm; attention, ");
  CHECK_ERROR(tartan_compile("gemm", "sm_80", "{\"epilogue\": [\"gelo\"]}", &kernel), "usage",
              "expected one of alpha");
  CHECK_ERROR(tartan_compile("gemm", "sm_75", "{\"type\": \"bf16\"}", &kernel), "no-instruction",
              "gemm: ");
  CHECK_ERROR(tartan_compile("gemm", "sm_90a", "{\"gpu\": \"H300\"}", &kernel), "kernel-option",
              "GPU H300: unknown; expected one of A100, ");
  CHECK_ERROR(tartan_compile("gemm", "sm_90a", "{\"gpu\": \"H100 H200\"}", &kernel),
              "kernel-option", "GPU H100 H200: it names H100 and H200; expected one of A100, ");
  CHECK_ERROR(tartan_compile("gemm", "sm_90a", "{\"direct\": true}", &kernel), "usage",
              "--direct: the configurations that are chosen for sm_90a have no such one");
  CHECK_ERROR(tartan_compile("scaled_gemm", "sm_90a", "{\"cluster-columns\": 2}", &kernel), "usage",
              "option cluster-columns: unsupported by kernel scaled_gemm; gemm, gemm_sum support");
  CHECK_ERROR(tartan_compile(NULL, NULL, NULL, &kernel), "usage", "the argument target is null");
  CHECK_ERROR(tartan_compile("gemm", "sm_80", NULL, NULL), "usage", "the argument out is null");
  CHECK_OK(tartan_compile("gemm", "sm_80", product, &kernel));
  CHECK(strcmp(tartan_kernel_name(kernel), "gemm") == 0);
  CHECK(strstr(tartan_kernel_ptx(kernel), "mma.sync.aligned.m16n8k8") != NULL);
  CHECK(strstr(tartan_kernel_info(kernel),
               "{\"name\":\"C\",\"type\":\"f32\",\"pointer\":true,"
               "\"elements\":0,\"reads\":false,\"writes\":true") != NULL);
  CHECK(strstr(tartan_kernel_info(kernel), "\"microseconds\":{\"describe\":") != NULL);
  CHECK(strstr(tartan_kernel_info(kernel), "\"describe\":0.0") == NULL);
  CHECK(strstr(tartan_kernel_info(kernel), "\"assemble\":0.0,\"load\":0.0") != NULL);
  CHECK(strstr(tartan_kernel_explain(kernel), "\"taken\"") != NULL);
  tartan_kernel_free(kernel);
  CHECK(strcmp(tartan_kernel_name(NULL), "") == 0 && strcmp(tartan_kernel_ptx(NULL), "") == 0);
  CHECK(strcmp(tartan_kernel_info(NULL), "") == 0 && strcmp(tartan_kernel_explain(NULL), "") == 0);
  tartan_kernel_free(NULL);
  CHECK_OK(tartan_list_kernels(&json));
  CHECK_JSON(json, "{\"name\":\"head-dim\",\"type\":\"integer\",\"default\":64,");
  CHECK_ERROR(tartan_list_kernels(NULL), "usage", "the argument json is null");
}

enum { m = 70, n = 24, k = 40 };

static int element(int i, int j, int seed) { return (i * 7 + j * 3 + seed) % 11 - 5; }

static float expected(int i, int j) {
  int sum = element(0, j, 2), at;
  for (at = 0; at < k; ++at) sum += element(i, at, 0) * element(at, j, 1);
  return sum > 0 ? (float)sum : 0.0F;
}

static tartan_buffer* buffer_of(tartan_device* device, const float* values, size_t count) {
  tartan_buffer* out = NULL;
  CHECK_OK(tartan_allocate(device, count * sizeof *values, &out));
  CHECK_OK(tartan_write(out, 0, values, count * sizeof *values));
  return out;
}

static void test_product(tartan_device* device) {
  static float a[m * k], b[k * n], c[m * n], bias[n];
  tartan_kernel* kernel = NULL;
  tartan_function* gemm = NULL;
  tartan_buffer* buffers[4];
  tartan_argument arguments[7];
  tartan_launch_options options = plain_options();
  int32_t sizes[3] = {m, n, k};
  uint64_t addresses[4];
  int i, j;
  for (i = 0; i < m; ++i)
    for (j = 0; j < k; ++j) a[i * k + j] = (float)element(i, j, 0);
  for (i = 0; i < k; ++i)
    for (j = 0; j < n; ++j) b[j * k + i] = (float)element(i, j, 1); /* column-major */
  for (j = 0; j < n; ++j) bias[j] = (float)element(0, j, 2);
  memset(c, 0, sizeof c);
  buffers[0] = buffer_of(device, a, m * k);
  buffers[1] = buffer_of(device, b, k * n);
  buffers[2] = buffer_of(device, c, m * n);
  buffers[3] = buffer_of(device, bias, n);
  for (i = 0; i < 3; ++i) arguments[i] = argument(&sizes[i], sizeof sizes[i]);
  for (i = 0; i < 4; ++i) {
    addresses[i] = tartan_buffer_address(buffers[i]);
    arguments[3 + i] = argument(&addresses[i], sizeof addresses[i]);
    arguments[3 + i].extent = tartan_buffer_size(buffers[i]);
  }
  CHECK_OK(tartan_compile("gemm", tartan_device_arch(device), product, &kernel));
  CHECK_ERROR(tartan_load(device, NULL, &gemm), "usage", "the argument kernel is null");
  CHECK_ERROR(tartan_load(NULL, kernel, NULL), "usage", "the argument device is null");
  CHECK_OK(tartan_load(device, kernel, &gemm));
  tartan_kernel_free(kernel); /* the function keeps what it needs */
  CHECK(strstr(tartan_function_info(gemm), "{\"name\":\"m\",\"bytes\":4}") != NULL);
  CHECK_OK(tartan_launch(gemm, NULL, arguments, 7)); /* the library computes the grid */
  CHECK_OK(tartan_synchronize(device));
  CHECK_OK(tartan_read(buffers[2], 0, c, sizeof c));
  for (i = 0; i < m; ++i)
    for (j = 0; j < n; ++j)
      if (c[i * n + j] != expected(i, j)) {
        printf("C[%d][%d]: expected %g, found %g\n", i, j, expected(i, j), c[i * n + j]);
        ++failures;
      }

  options.block[0] = 128;
  options.dynamic_shared = 1;
  CHECK_ERROR(tartan_launch(gemm, &options, arguments, 7), "usage", "options->block: expected 0");
  CHECK_ERROR(tartan_launch(gemm, &options, arguments, 7), "usage", "options->dynamic_shared");
  options = plain_options();
  CHECK_ERROR(tartan_launch(gemm, &options, arguments, 6), "launch-arguments", "7 arguments");
  sizes[0] = -1;
  CHECK_ERROR(tartan_launch(gemm, &options, arguments, 7), "launch-arguments",
              "m of kernel gemm: expected a size of at least 0, found -1");
  sizes[0] = 0; /* nothing to compute */
  CHECK_OK(tartan_launch(gemm, &options, arguments, 7));
  sizes[0] = m;
  arguments[5].extent -= 1;
  CHECK_ERROR(tartan_launch(gemm, &options, arguments, 7), "launch-arguments", "C (parameter 5)");
  options.stream = &options;
  CHECK_ERROR(tartan_launch(gemm, &options, arguments, 7), "foreign-device", "emulator");
  options.stream = NULL;
  sizes[2] = k - 1;
  CHECK_ERROR(tartan_launch(gemm, &options, arguments, 7), "launch-arguments",
              "expected a multiple of 8, found 39");
  tartan_function_free(gemm);
  for (i = 0; i < 4; ++i) tartan_buffer_free(buffers[i]);
}

/* What the options and arguments do not tell, the caller must. */
static void test_grid(tartan_device* device) {
  tartan_kernel* kernel = NULL;
  tartan_function* function = NULL;
  tartan_argument arguments[10];
  tartan_launch_options options = plain_options();
  int32_t sizes[4] = {16, 16, 1, 1};
  float scale = 1;
  uint64_t address;
  tartan_buffer* buffer = NULL;
  int i;
  CHECK_OK(tartan_allocate(device, 16 * 64 * 2, &buffer));
  CHECK_OK(tartan_fill(buffer, 0));
  address = tartan_buffer_address(buffer);
  CHECK_OK(tartan_compile("attention", tartan_device_arch(device), "{\"causal\": true}", &kernel));
  CHECK_OK(tartan_load(device, kernel, &function));
  for (i = 0; i < 4; ++i) arguments[i] = argument(&sizes[i], sizeof sizes[i]);
  arguments[4] = argument(&scale, sizeof scale);
  for (i = 5; i < 10; ++i) arguments[i] = argument(&address, sizeof address);
  CHECK_ERROR(tartan_launch(function, &options, arguments, 10), "launch-arguments",
              "the grid's z is 0");
  options.grid[2] = 1; /* batches */
  CHECK_OK(tartan_launch(function, &options, arguments, 10));
  CHECK_OK(tartan_synchronize(device));
  tartan_function_free(function);
  tartan_kernel_free(kernel);
  tartan_buffer_free(buffer);
}

int main(void) {
  tartan_device* device = NULL;
  char* json = NULL;
  test_version_and_errors();
  test_check();
  test_cache();
  test_devices();
  CHECK_OK(tartan_open("emulator", "{\"hardware\": \"sm_80\"}", &device));
  test_buffers(device);
  test_ptx();
  CHECK_OK(tartan_list_kernels(&json));
  if (strcmp(json, "[]") != 0) { /* a build with code generation */
    test_kernels();
    test_product(device);
    test_grid(device);
  } else {
    tartan_kernel* kernel = NULL;
    CHECK_ERROR(tartan_compile("gemm", "sm_80", NULL, &kernel), "usage", "no code generation");
  }
  tartan_string_free(json);
  tartan_device_free(device);
  if (failures) printf("%d failed\n", failures);
  return failures != 0;
}
