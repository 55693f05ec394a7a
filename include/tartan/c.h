/* SPDX-License-Identifier: Apache-2.0
 * tartan/c.h - the C interface: built-in kernels, PTX text, GPUs and the emulator, for C and for
 * languages that call C. C99, and C++.
 *
 *   tartan_kernel *gemm = NULL;
 *   tartan_error *error = tartan_compile("gemm", "sm_90a", "{\"type\": \"bf16\"}", &gemm);
 *   if (error != NULL) {
 *     fputs(tartan_error_text(error), stderr);   // each mistake, a line
 *     tartan_error_free(error);
 *   }
 *
 * Errors. A function that can fail returns NULL, or an error that the caller frees. All mistakes of
 * a call are in one error. Nothing is thrown, and nothing is printed. NULL where a handle or a
 * string is expected is an error ("usage"), unless the function says that it takes NULL.
 *
 * Ownership. What comes out through a `T **out` is the caller's; it is NULL if the function fails.
 * Each kind has a function that frees it, and takes NULL. Handles keep what they need: the order of
 * freeing does not matter. Memory of a buffer is freed with it, so a kernel that uses it must have
 * ended.
 *
 * Strings. Arguments are UTF-8, end with a zero byte, and are read during the call only. A
 * `const char *` that is returned belongs to its handle and lives as long. A `char *` that comes
 * out is the caller's: tartan_string_free().
 *
 * Structures. An extensible one begins with its size, which the caller sets to sizeof: programs
 * built against an older header keep working. Members that are 0 mean the default.
 *
 * Threads. Any thread may call. Errors, kernels, devices and functions may be used by several at a
 * time; a buffer by one, like whatever else is written and read.
 *
 * Stability. Later versions of the library keep these functions and structures; JSON objects may
 * gain members. As symbols they have the library's version, TARTAN_C_0.1: a program is linked anew
 * for another one, and of two versions in one process each is called by its own users.
 */
#ifndef TARTAN_C_H
#define TARTAN_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of this interface. */
#define TARTAN_C_VERSION 1

typedef struct tartan_error tartan_error;       /**< what is wrong */
typedef struct tartan_kernel tartan_kernel;     /**< a compiled kernel */
typedef struct tartan_device tartan_device;     /**< a GPU or the emulator */
typedef struct tartan_buffer tartan_buffer;     /**< memory of a device */
typedef struct tartan_function tartan_function; /**< a kernel that a device has loaded */

/** The library's version, "0.1.0". */
const char* tartan_version(void);
/** The version of the interface that the library has: at least TARTAN_C_VERSION, or it is older. */
int tartan_c_version(void);

/* ---- Errors and strings */

/** A line or more for each diagnostic, "error: MESSAGE [rule]" with its place and source line. */
const char* tartan_error_text(const tartan_error* error);
/** {"schema_version","diagnostics":[{"file","line","column","level","id","message"}]}. */
const char* tartan_error_json(const tartan_error* error);
/** The rule of the first error, which docs/diagnostics.md explains: "no-driver", "usage". */
const char* tartan_error_rule(const tartan_error* error);
void tartan_error_free(tartan_error* error);

void tartan_string_free(char* string);

/* ---- Kernels */

/**
 * The built-in kernels, which are those of `tartan emit --list`, as JSON:
 * [{"name","summary","options":[{"name","type","default","help"}]}]. The types are "integer",
 * "string", "boolean" and "strings" (an array); a default of null is chosen by the kernel.
 */
tartan_error* tartan_list_kernels(char** json);

/**
 * Compiles a built-in kernel for a target such as "sm_80" or "sm_90a": tartan_device_arch() is that
 * of a device. `options` is a JSON object with the options of `tartan emit` by name, without the
 * dashes; NULL: all defaults.
 *
 *   {"m": 0, "n": 0, "k": 0, "type": "bf16", "c": "bf16", "epilogue": ["bias", "gelu"]}
 *
 * A size of 0 becomes a parameter of the kernel. Parameters are described in tartan_kernel_info()
 * and in the headers tartan/kernels/.
 */
tartan_error* tartan_compile(const char* name, const char* target, const char* options,
                             tartan_kernel** out);
/**
 * From now on tartan_compile() looks for PTX in a folder and keeps it there, and tartan_load()
 * machine code: the cache of tartan/cache.h, which processes of the user share. For the whole
 * process. `folder` may be NULL: TARTAN_CACHE_DIR, else XDG_CACHE_HOME/tartan, else
 * ~/.cache/tartan; "": no cache, as at the start.
 */
tartan_error* tartan_use_cache(const char* folder);
/**
 * What the cache could not read or write, as warnings in the form of tartan_error_json(): results
 * do without it.
 */
tartan_error* tartan_cache_problems(char** json);
const char* tartan_kernel_name(const tartan_kernel* kernel);
/** Its PTX text, which the checker has accepted. */
const char* tartan_kernel_ptx(const tartan_kernel* kernel);
/**
 * JSON: {"name","target","ptx_version","block","dynamic_shared","cluster","parameters":
 * [{"name","type","pointer","elements","reads","writes","multiple_of"}],"variants":["keys=256"],
 * "warnings":[...],
 * "microseconds":{"describe","generate","verify","cache","assemble","load"}}.
 * `elements`: how many elements of a pointer the kernel accesses; 0 where its arguments decide.
 * `variants`: kernels that are faster for some arguments, by the option that makes them. They have
 * the same parameters. tartan_load() compiles and loads them, too, and a launch takes the one that
 * suits its arguments. All else that is told of the kernel is not about them.
 * `microseconds`: what each step of tartan_compile() took (tartan/support/times.h); 0: not taken.
 */
const char* tartan_kernel_info(const tartan_kernel* kernel);
/** What Tartan chose and why: [{"file","line","what","taken","reason","refused"}]. */
const char* tartan_kernel_explain(const tartan_kernel* kernel);
void tartan_kernel_free(tartan_kernel* kernel);

/**
 * Checks PTX text as `tartan check` does, for `target`, or if NULL for the text's own. `json` gets
 * the diagnostics, in the form of tartan_error_json(): the first hundred errors, and as `truncated`
 * the number of the others. `errors` gets the number of all, 0 if the text is legal. Illegal text
 * is no error of this function. `errors` may be NULL.
 */
tartan_error* tartan_check(const char* ptx, const char* target, char** json, size_t* errors);

/* ---- Devices */

/**
 * Opens "auto" (the first GPU, else the emulator), "emulator", "cuda" (the first GPU) or "cuda:N".
 * A GPU's context is its primary one, which the CUDA runtime and PyTorch use too. `options`, a JSON
 * object or NULL, is for the emulator: "hardware" ("sm_90": whose arithmetic), "checks" ("none",
 * "memory" or "all"), "threads" (0: one for each core), "timeout" (seconds), "schedule". With one
 * of them "auto" is the emulator (with "hardware" alone, unless the GPU is that), and for "cuda"
 * they are an error.
 */
tartan_error* tartan_open(const char* name, const char* options, tartan_device** out);
/**
 * The GPU of an existing context (a CUcontext), which the caller keeps alive; NULL: the context
 * that is current on this thread. For contexts beside the GPU's primary one.
 */
tartan_error* tartan_adopt(void* context, tartan_device** out);
/** "NVIDIA H100 80GB HBM3 (sm_90), driver 13.0", "emulator". */
const char* tartan_device_name(const tartan_device* device);
/** The architecture to compile for: "sm_90a". */
const char* tartan_device_arch(const tartan_device* device);
/** Its option "gpu" of tartan_compile(), for which kernels choose what is not given: "H200"; "":
 * none that fits, or a library without code generation. */
const char* tartan_device_gpu(const tartan_device* device);
/** Its option "multiprocessors" of tartan_compile(), beside "gpu": variants of a GPU, and parts of
 * one (MIG), have fewer. */
int tartan_device_multiprocessors(const tartan_device* device);
/** 1: the emulator, 0: a GPU. */
int tartan_device_emulated(const tartan_device* device);
/** Waits for all work, and reports errors in it. */
tartan_error* tartan_synchronize(tartan_device* device);
/**
 * What launches found since the last call, as JSON: [{"id","message","line","source","block",
 * "lane","address"}]; "source", "block" and "lane" where they are known. On the emulator: faults,
 * and with "checks" races and uses of what was never written. They are then forgotten.
 */
tartan_error* tartan_findings(tartan_device* device, char** json);
/** Does not free buffers and functions of the device, which keep working. */
void tartan_device_free(tartan_device* device);

/** Device memory, at an address that is a multiple of 256. The contents are undefined. */
tartan_error* tartan_allocate(tartan_device* device, size_t bytes, tartan_buffer** out);
uint64_t tartan_buffer_address(const tartan_buffer* buffer);
size_t tartan_buffer_size(const tartan_buffer* buffer);
/** Copies between host and buffer, after all work of the device. Copies outside of it are refused.
 */
tartan_error* tartan_write(tartan_buffer* buffer, size_t offset, const void* from, size_t bytes);
tartan_error* tartan_read(const tartan_buffer* buffer, size_t offset, void* to, size_t bytes);
/** Sets each byte. */
tartan_error* tartan_fill(tartan_buffer* buffer, uint8_t byte);
void tartan_buffer_free(tartan_buffer* buffer);

/* ---- Launches */

/** Loads a compiled kernel with its variants. */
tartan_error* tartan_load(tartan_device* device, const tartan_kernel* kernel,
                          tartan_function** out);
/** Loads the kernel `name` of PTX text. */
tartan_error* tartan_load_ptx(tartan_device* device, const char* ptx, const char* name,
                              tartan_function** out);
/**
 * JSON: {"name","parameters":[{"name","bytes"}],"microseconds":{...}}, of a compiled kernel without
 * the tensor maps, which a launch adds; the steps are those of loading, as in tartan_kernel_info().
 * Of PTX text a parameter that is no array has a "type", such as "u32", too.
 */
const char* tartan_function_info(const tartan_function* function);
void tartan_function_free(tartan_function* function);
/**
 * JSON: {"P":{"elements":135168,"zeros":false},...}: the work space that a launch of a compiled
 * kernel needs among its parameters, in elements of their types; with zeros they are 0 before the
 * first launch. `sizes` is JSON with the scalar arguments, {"batch":4,"kv_heads":8}, and `grid`
 * that of the launch, as in tartan_launch_options; NULL: all 0. The caller frees `out`.
 */
tartan_error* tartan_work_space(const tartan_function* function, const char* sizes,
                                const uint32_t* grid, char** out);

/** An argument of a launch. This structure does not change. */
typedef struct tartan_argument {
  /** The value: a number of the parameter's type, or the device address of a pointer (uint64_t). */
  const void* value;
  size_t size; /**< bytes of the value */
  /**
   * Of an address: how many bytes lie there. A launch of a compiled kernel compares them with what
   * the kernel accesses. 0: unknown, not compared.
   */
  uint64_t extent;
} tartan_argument;

/** How a function is launched; all zero, but for `size`, is a launch of a compiled kernel. */
typedef struct tartan_launch_options {
  size_t size; /**< sizeof(tartan_launch_options) */
  /**
   * Blocks along x, y and z. 0: a built-in kernel computes it from options and arguments, except
   * where nothing tells it (how many products a batch has), and PTX text takes 1.
   */
  uint32_t grid[3];
  uint32_t block[3];       /**< threads, of PTX text; 0 for a compiled kernel, which knows it */
  uint32_t dynamic_shared; /**< bytes, of PTX text; 0 for a compiled kernel */
  uint32_t cooperative;    /**< 1: all blocks run at the same time; only for PTX text */
  void* stream;            /**< a CUstream of the device's context; NULL: the default stream */
  /**
   * 1: a programmatic dependent launch, from sm_90 on: the kernel may start before the previous
   * launch in its stream ends. Built-in products wait for that one by themselves.
   */
  uint32_t programmatic;
} tartan_launch_options;

/**
 * Launches a function: its arguments in the order of its parameters. `options` may be NULL: all
 * defaults. On a GPU the kernel runs after the work that its stream has, and the function does not
 * wait for it; on the emulator it has run when the function returns. What does not fit (number and
 * sizes of arguments, grid, matrices too small) is refused before anything runs. A product without
 * rows or columns is not launched at all, which is no error.
 */
tartan_error* tartan_launch(tartan_function* function, const tartan_launch_options* options,
                            const tartan_argument* arguments, size_t count);

#ifdef __cplusplus
}
#endif

#endif
