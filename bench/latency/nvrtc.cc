// SPDX-License-Identifier: Apache-2.0
#include "bench/latency/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "bench/gpu/library.h"

namespace latency {
namespace {

using tartan::operator""_rule;
using Program = void*;

std::vector<std::string> candidates(const std::string& path) {
  if (!path.empty()) return {path};
  std::vector<std::string> out{"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                               "libnvrtc.so.11.2"};
  const char* const home = std::getenv("CUDA_HOME");
  for (const std::string& folder : {std::string(home ? home : ""), std::string("/usr/local/cuda")})
    if (!folder.empty()) out.push_back(folder + "/lib64/libnvrtc.so");
  return out;
}

// A text that NVRTC gives: its size first.
std::string text(void* library, const char* size_of, const char* contents_of, Program program) {
  std::size_t size = 0;
  if (gpu::call(library, size_of, program, &size) != 0 || size == 0) return {};
  std::string out(size, 0);
  if (gpu::call(library, contents_of, program, out.data()) != 0) return {};
  return out;
}

}  // namespace

tartan::Result<Nvrtc> Nvrtc::open(const std::string& path) {
  for (const std::string& each : candidates(path))
    if (void* library = dlopen(each.c_str(), RTLD_NOW | RTLD_LOCAL)) return Nvrtc(library);
  return {"file"_rule, fmt::format("no NVRTC: {}; CUDA_HOME or --nvrtc says where it is",
                                   path.empty() ? "libnvrtc.so is not installed" : path)};
}

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  gpu::call(library_, "nvrtcVersion", &major, &minor);
  return fmt::format("{}.{}", major, minor);
}

tartan::Result<std::string> Nvrtc::compile(const char* source, const std::string& target) const {
  Program program = nullptr;
  if (const int code =
          gpu::call(library_, "nvrtcCreateProgram", &program, source, "kernel.cu", 0,
                    static_cast<const char**>(nullptr), static_cast<const char**>(nullptr)))
    return {"driver"_rule, fmt::format("nvrtcCreateProgram: {}", code)};
  const std::string architecture = "--gpu-architecture=" + target;
  const char* options[] = {architecture.c_str(), "--std=c++17"};
  const int code =
      gpu::call(library_, "nvrtcCompileProgram", program, 2, static_cast<const char**>(options));
  const bool cubin = target.starts_with("sm_");
  std::string out, log;
  if (code == 0)
    out = cubin ? text(library_, "nvrtcGetCUBINSize", "nvrtcGetCUBIN", program)
                : text(library_, "nvrtcGetPTXSize", "nvrtcGetPTX", program);
  else log = text(library_, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog", program);
  gpu::call(library_, "nvrtcDestroyProgram", &program);
  if (out.empty())
    return {"driver"_rule, fmt::format("nvrtcCompileProgram for {}: {}\n{}", target, code, log)};
  if (!cubin) out.resize(out.find('\0'));
  return out;
}

}  // namespace latency
