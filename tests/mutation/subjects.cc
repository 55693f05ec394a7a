// SPDX-License-Identifier: Apache-2.0
#include "tests/mutation/subjects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "runtime/manifest.h"
#include "tartan/verify/verify.h"
#include "tests/emulator/compiled_kernels.h"

namespace tartan::mutation {
namespace {

void add_id(Observation& to, const std::string& id, const std::string& message) {
  if (to.ids.empty()) to.message = message;
  if (std::ranges::find(to.ids, id) == to.ids.end()) to.ids.push_back(id);
}

/// Notes what is wrong with a result; whether there is one.
template <typename T>
bool accept(const Result<T>& result, Observation& to) {
  if (result) return true;
  for (const Diag& diag : result.diags()) add_id(to, std::string(diag.id), diag.message);
  return false;
}

class Launching {
 public:
  Launching(const Subject& subject, const Run& run, Observation& to,
            std::shared_ptr<detail::Exploration> exploration)
      : subject_(subject), run_(run), to_(to), exploration_(std::move(exploration)) {}

  void operator()(const std::string& ptx, std::uint64_t max_steps) {
    Diags checked = verify::check(std::make_shared<Source>("mutant", ptx));
    for (const Diag& diag : checked)
      if (diag.level != Level::Note) {
        add_id(to_, std::string(diag.id), diag.message);
        to_.warnings.push_back({std::string(diag.id), diag.place.line});
      }
    to_.refused = true;
    if (!checked.ok()) return;
    auto device = Device::open("emulator", {.hardware = subject_.hardware,
                                            .max_steps = max_steps,
                                            .timeout = 120,
                                            .threads = 1,
                                            .exploration = exploration_,
                                            .checks = Checks::all});
    auto module = device->load(ptx, subject_.name);
    if (!accept(module, to_)) return;
    auto kernel = module->kernel(subject_.kernel);
    if (!accept(kernel, to_)) return;
    std::vector<Buffer> buffers;
    for (const Bytes& bytes : run_.buffers) {
      buffers.push_back(*device->allocate(bytes.size()));
      EXPECT_TRUE(buffers.back().write(bytes));
    }
    const auto arguments = run_.arguments(buffers);
    if (!accept(arguments, to_)) return;
    to_.refused = false;
    const bool finished =
        accept(kernel->launch(run_.launch, *arguments), to_) && accept(device->synchronize(), to_);
    for (const Finding& finding : device->findings()) add_id(to_, finding.id, finding.message);
    to_.instructions = device->report().warp_instructions;
    if (!finished) return;
    for (const Buffer& buffer : buffers) to_.after.push_back(*buffer.read_all<std::byte>());
  }

 private:
  const Subject& subject_;
  const Run& run_;
  Observation& to_;
  std::shared_ptr<detail::Exploration> exploration_;
};

const Buffer& find(const Manifest& manifest, const std::vector<Buffer>& buffers,
                   const std::string& name) {
  std::size_t i = 0;
  for (const ManifestParam& param : manifest.params)
    if (param.buffer && i++, param.buffer && param.buffer->name == name) return buffers[i - 1];
  for (const ManifestBuffer& buffer : manifest.buffers)
    if (i++, buffer.name == name) break;
  return buffers[i - 1];
}

Result<TensorMapBytes> encode(const Manifest& manifest, const std::vector<Buffer>& buffers,
                              const ManifestTensorMap& wanted) {
  TensorMap map = wanted.map;
  map.address = find(manifest, buffers, wanted.buffer).address() + wanted.offset;
  return map.encode();
}

Result<Arguments> arguments_of(const Manifest& manifest, const std::vector<Buffer>& buffers) {
  Arguments out;
  for (const ManifestParam& param : manifest.params) {
    if (param.buffer) {
      out.add(find(manifest, buffers, param.buffer->name));
    } else if (param.tensor_map) {
      const auto bytes = encode(manifest, buffers, *param.tensor_map);
      if (!bytes) return bytes.diags();
      out.add(*bytes);
    } else {
      Bytes bytes = param.scalar;
      for (const ManifestMember& member : param.members) {
        if (member.tensor_map) {
          const auto map = encode(manifest, buffers, *member.tensor_map);
          if (!map) return map.diags();
          std::memcpy(bytes.data() + member.at, &*map, sizeof *map);
          continue;
        }
        const std::uint64_t address =
            find(manifest, buffers, member.buffer).address() + member.offset;
        std::memcpy(bytes.data() + member.at, &address, sizeof address);
      }
      out.add_bytes(bytes);
    }
  }
  return out;
}

Bytes contents(const ManifestBuffer& buffer) {
  if (!buffer.contents.empty()) return buffer.contents;
  return Bytes(buffer.size, static_cast<std::byte>(buffer.fill));
}

Run run_of(const Manifest& manifest) {
  Run out{.launch = manifest.launch};
  for (const ManifestParam& param : manifest.params)
    if (param.buffer) out.buffers.push_back(contents(*param.buffer));
  for (const ManifestBuffer& buffer : manifest.buffers) out.buffers.push_back(contents(buffer));
  out.arguments = [manifest](const std::vector<Buffer>& buffers) {
    return arguments_of(manifest, buffers);
  };
  return out;
}

Manifest varied(Manifest manifest, const Variant& variant) {
  for (const auto& [param, value] : variant.scalars) {
    Bytes& bytes = manifest.params[param].scalar;
    std::memcpy(bytes.data(), &value, bytes.size());
  }
  for (const auto& [param, size] : variant.bytes) {
    ManifestBuffer& buffer = *manifest.params[param].buffer;
    EXPECT_LE(size, buffer.size) << variant.subject;
    buffer.size = size;
    if (!buffer.contents.empty()) buffer.contents.resize(size);
  }
  if (variant.grid.x) manifest.launch.grid = variant.grid;
  if (variant.block.x) manifest.launch.block = variant.block;
  return manifest;
}

}  // namespace

Observation observe(const Subject& subject, const std::string& ptx, const Run& run,
                    std::uint64_t max_steps, std::shared_ptr<detail::Exploration> exploration) {
  Observation out;
  Launching(subject, run, out, std::move(exploration))(ptx, max_steps);
  return out;
}

std::vector<Subject> recorded_subjects(const std::string& folder,
                                       const std::vector<Variant>& variants) {
  std::vector<Subject> out;
  const std::filesystem::path data = std::filesystem::path(TEST_DATA) / folder;
  for (const std::string& name : test::compiled_kernels(data)) {
    if (name == "say") continue;  // what it prints is its result
    auto read = read_manifest((data / name / "manifest.json").string());
    EXPECT_TRUE(read) << (read ? "" : read.diags().text());
    const Manifest& manifest = *read;
    Subject subject{.name = folder + "/" + name,
                    .ptx = std::string(manifest.ptx.text()),
                    .kernel = manifest.kernel,
                    .hardware = manifest.hardware,
                    .runs = {run_of(manifest)}};
    for (const Variant& each : variants)
      if (each.subject == name) subject.runs.push_back(run_of(varied(manifest, each)));
    out.push_back(std::move(subject));
  }
  return out;
}

Bytes numbers(std::size_t size, int bits, unsigned seed) {
  Bytes out(size);
  for (std::size_t i = 0; i + 1 < size; i += 2) {
    seed = seed * 1664525 + 1013904223;
    const unsigned sign = seed >> 31 << 15, fraction = seed >> 16;
    // f16 between 0.5 and 8; the upper half of such an f32.
    unsigned word = sign | (14 + (seed >> 28) % 4) << 10 | (fraction & 1023);
    if (bits == 32) word = i % 4 ? sign | (126 + (seed >> 28) % 4) << 7 | (fraction & 127) : 0;
    out[i] = static_cast<std::byte>(word), out[i + 1] = static_cast<std::byte>(word >> 8);
  }
  return out;
}

}  // namespace tartan::mutation
