// SPDX-License-Identifier: Apache-2.0
// runtime/manifest_buffers.h - buffers of a manifest: what they start with, what is expected of
// them, and what becomes of them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/manifest_params.h"
#include "runtime/npy.h"

namespace tartan::TARTAN_ABI::detail {

class ManifestBuffers : protected ManifestParams {
 protected:
  explicit ManifestBuffers(const Source& source)
      : ManifestParams(source), folder_(std::filesystem::path(source.name()).parent_path()) {}

  ManifestBuffer read_buffer(const Json& param, const std::string& path);
  /// The bytes of the file named by a field, or a part of them.
  std::optional<std::vector<std::byte>> data(const Json& object, const char* key,
                                             const std::string& path, const Json* part = nullptr);

  std::filesystem::path folder_;  // of the manifest
  bool referenced_ = false;       // it has formulas of what is expected

 private:
  struct Part {
    std::uint64_t offset = 0, bytes = 0;
  };

  void read_elements(const Json& param, const std::string& path, ManifestBuffer& buffer);
  void read_contents(const Json& param, const std::string& path, ManifestBuffer& buffer);
  void read_start(const Json& param, const std::string& path, ManifestBuffer& buffer);
  void read_file(const Json& param, const std::string& path, ManifestBuffer& buffer);
  void fill_elements(const Json& param, const std::string& path, ManifestBuffer& buffer);
  void read_expectation(const Json& param, const std::string& path, ManifestBuffer& buffer);
  bool read_expected(const Json& expect, const Json& param, const std::string& path,
                     ManifestBuffer& buffer);
  void read_results(const Json& param, const std::string& path, ManifestBuffer& buffer);
  void read_print(const Json& print, const std::string& path, ManifestBuffer& buffer);
  Comparison read_comparison(const Json& compare, const std::string& path, Type type);
  double tolerance(const Json& compare, const char* key, const std::string& path);
  std::optional<Part> read_part(const Json& part, const std::string& path, std::uint64_t size);
  /// The array of an .npy file; nothing where the bytes are no such file, or with a diagnostic.
  std::optional<NpyArray> array_of(const std::vector<std::byte>& bytes, const std::string& file,
                                   const std::string& path);
  std::optional<std::vector<std::byte>> elements_of(NpyArray array, Type type,
                                                    const std::string& file,
                                                    const std::string& path);
};

}  // namespace tartan::TARTAN_ABI::detail
