// SPDX-License-Identifier: Apache-2.0
// tests/emulator/tensor_copies.h - one TMA copy between a tensor and shared memory: a kernel that
// issues it, its run on a device, and its recording as a line of JSON.
//
// A load fills shared memory with 0xEE bytes, copies the box to `shift` and returns shared memory;
// stores and reductions fill shared memory with a pattern and return the tensor's memory. The
// tensor's memory also starts as a pattern.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "tartan/runtime/device.h"
#include "tartan/runtime/tensor_map.h"

namespace tartan::test {

struct TensorCopy {
  // load, store, gather (four rows), scatter, or an operation of cp.reduce.async.bulk.tensor: "add"
  std::string operation = "load";
  TensorMap map;                            // its address counts from the start of the memory
  std::vector<std::int32_t> at;             // coordinates
  std::vector<std::uint32_t> offsets = {};  // of im2col loads
  std::uint32_t shift = 0;  // bytes from the start of shared memory, which is 1024-aligned
  std::uint32_t memory_bytes = 0, shared_bytes = 0;
  std::uint32_t mask = 0xFFFFFFFF;  // which bits of the pattern are used
  std::string wide = {};  // "::w", "::w::128": of im2col loads, whose offsets are wHalo and wOffset

  std::uint64_t rows() const {
    if (wide == "::w::128") return 128 + 4 * offsets[0];
    return wide == "::w" ? map.im2col->pixels + offsets[0] : map.rows();
  }
};

constexpr std::uint32_t pattern(std::uint32_t i, std::uint32_t mask) {
  std::uint32_t x = (i + 1) * 0x9E3779B9u;
  x ^= x >> 15;
  x *= 0x85EBCA6Bu;
  x ^= x >> 13;
  return x & mask;
}

inline std::vector<std::uint32_t> pattern_words(std::size_t bytes, std::uint32_t mask) {
  std::vector<std::uint32_t> out(bytes / 4);
  for (std::uint32_t i = 0; i < out.size(); ++i) out[i] = pattern(i, mask);
  return out;
}

inline bool fills_shared(const TensorCopy& copy) {
  return copy.operation == "load" || copy.operation == "gather";
}
inline bool of_rows(const TensorCopy& copy) {
  return copy.operation == "gather" || copy.operation == "scatter";
}

inline std::string copy_instruction(const TensorCopy& copy, const std::string& shared) {
  std::string coordinates;
  for (std::size_t i = 0; i < copy.at.size(); ++i)
    coordinates += fmt::format("{}c{}", i ? ", " : "", i);
  const std::size_t rank = of_rows(copy) ? 2 : copy.at.size();
  std::string offsets;
  for (std::size_t i = 0; i < copy.offsets.size(); ++i)
    offsets += fmt::format("{}h{}", i ? ", " : ", {", i);
  if (!offsets.empty()) offsets += "}";
  const bool pixels = copy.map.im2col.has_value();
  if (fills_shared(copy))
    return fmt::format(
        "cp.async.bulk.tensor.{}d.shared::cluster.global.{}.mbarrier::complete_tx::bytes [{}], "
        "[m, {{{}}}], [bar]{};",
        rank,
        pixels          ? "im2col" + copy.wide
        : of_rows(copy) ? "tile::gather4"
                        : "tile",
        shared, coordinates, offsets);
  const char* const mode = pixels ? "im2col_no_offs" : of_rows(copy) ? "tile::scatter4" : "tile";
  if (copy.operation == "store" || of_rows(copy))
    return fmt::format(
        "cp.async.bulk.tensor.{}d.global.shared::cta.{}.bulk_group [m, {{{}}}], "
        "[{}];",
        rank, mode, coordinates, shared);
  return fmt::format(
      "cp.reduce.async.bulk.tensor.{}d.global.shared::cta.{}.{}.bulk_group [m, {{{}}}], [{}];",
      rank, copy.operation, mode, coordinates, shared);
}

/// The kernel: parameters map, c0.., bytes, mask, words, shift, out.
inline std::string copy_kernel(const TensorCopy& copy) {
  std::string params, loads;
  for (std::size_t i = 0; i < copy.at.size(); ++i) {
    params += fmt::format(".param .s32 p{}, ", i);
    loads += fmt::format("ld.param.s32 c{}, [p{}];\n", i, i);
  }
  for (std::size_t i = 0; i < copy.offsets.size(); ++i)
    loads += fmt::format("mov.u16 h{}, {};\n", i, copy.offsets[i]);
  const bool load = fills_shared(copy), newer = of_rows(copy) || !copy.wide.empty();
  return fmt::format(R"(.version {4}
.target {5}
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.shared .align 8 .b64 bar;
.visible .entry k(.param .align 64 .b8 map[128], {0}.param .u32 bytes, .param .u32 mask,
                  .param .u32 words, .param .u32 shift, .param .u64 out)
{{
.reg .pred p, q;
.reg .b16 h<3>;
.reg .b32 c<5>, r<16>;
.reg .b64 m, rd<6>;
{1}ld.param.u32 r1, [bytes];
ld.param.u32 r2, [mask];
ld.param.u32 r3, [words];
ld.param.u32 r4, [shift];
ld.param.u64 rd0, [out];
mov.b64 rd1, map;
cvta.param.u64 m, rd1;
mov.u32 r0, %tid.x;
mov.u32 r5, tile;
mov.u32 r6, r0;
FILL:
setp.ge.u32 p, r6, r3;
@p bra FILLED;
{2}
shl.b32 r8, r6, 2;
add.u32 r8, r8, r5;
st.shared.u32 [r8], r7;
add.u32 r6, r6, 32;
bra FILL;
FILLED:
fence.proxy.async.shared::cta;
bar.sync 0;
add.u32 r9, r5, r4;
setp.ne.u32 q, r0, 0;
@q bra DONE;
{3}
DONE:
bar.sync 0;
mov.u32 r6, r0;
DUMP:
setp.ge.u32 p, r6, r3;
@p bra END;
shl.b32 r8, r6, 2;
add.u32 r8, r8, r5;
ld.shared.u32 r7, [r8];
mul.wide.u32 rd2, r6, 4;
add.s64 rd2, rd2, rd0;
st.global.u32 [rd2], r7;
add.u32 r6, r6, 32;
bra DUMP;
END:
ret;
}}
)",
                     params, loads,
                     load ? "mov.b32 r7, 0xEEEEEEEE;"
                          : "add.u32 r7, r6, 1;\nmul.lo.u32 r7, r7, 0x9E3779B9;\n"
                            "shr.u32 r8, r7, 15;\nxor.b32 r7, r7, r8;\n"
                            "mul.lo.u32 r7, r7, 0x85EBCA6B;\nshr.u32 r8, r7, 13;\n"
                            "xor.b32 r7, r7, r8;\nand.b32 r7, r7, r2;",
                     load ? "mbarrier.init.shared::cta.b64 [bar], 1;\n"
                            "fence.mbarrier_init.release.cluster;\n"
                            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], r1;\n" +
                                copy_instruction(copy, "r9") +
                                "\nmov.u32 r10, 0;\nSPIN:\n"
                                "mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;\n"
                                "@p bra DONE;\nadd.u32 r10, r10, 1;\nsetp.lt.u32 p, r10, 100000;\n"
                                "@p bra SPIN;\nst.shared.u32 [r5], 0xDEADDEAD;"
                          : copy_instruction(copy, "r9") +
                                "\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;",
                     newer ? "8.6" : "8.0", newer ? "sm_100a" : "sm_90");
}

/// The device's result; `encode` makes the 128 bytes of the map at its final address.
template <typename Encode>
Result<std::vector<std::uint32_t>> run_copy(Device& device, const TensorCopy& copy,
                                            Encode&& encode) {
  auto module = device.load(copy_kernel(copy), "copy.ptx");
  if (!module) return module.diags();
  auto kernel = module->kernel("k");
  if (!kernel) return kernel.diags();
  auto memory = device.allocate(copy.memory_bytes), out = device.allocate(copy.shared_bytes);
  if (!memory) return memory.diags();
  if (!out) return out.diags();
  if (auto status = memory->write(pattern_words(copy.memory_bytes, copy.mask)); !status)
    return status.diags();
  TensorMap map = copy.map;
  map.address += memory->address();
  Result<TensorMapBytes> bytes = encode(map);
  if (!bytes) return bytes.diags();
  Arguments arguments;
  arguments.add(*bytes);
  for (const std::int32_t at : copy.at) arguments.add(at);
  arguments
      .add(static_cast<std::uint32_t>(copy.map.box_bytes() / copy.map.rows() * copy.rows() *
                                      (of_rows(copy) ? 4 : 1)))
      .add(copy.mask)
      .add(copy.shared_bytes / 4)
      .add(copy.shift)
      .add(*out);
  const Launch launch{.grid = {1}, .block = {32}, .dynamic_shared = copy.shared_bytes};
  if (auto status = kernel->launch(launch, arguments); !status) return status.diags();
  if (auto status = device.synchronize(); !status) return status.diags();
  return (fills_shared(copy) ? *out : *memory).template read_all<std::uint32_t>();
}

inline nlohmann::json map_json(const TensorMap& map) {
  nlohmann::json json = {{"type", std::string(name(map.type))},
                         {"address", map.address},
                         {"extents", map.extents},
                         {"strides", map.strides},
                         {"box", map.box},
                         {"element_strides", map.element_strides},
                         {"swizzle", static_cast<int>(map.swizzle)},
                         {"promotion", static_cast<int>(map.promotion)},
                         {"fill", static_cast<int>(map.fill)},
                         {"flush", map.flush_subnormals}};
  if (map.im2col)
    json["im2col"] = {{"lower", map.im2col->lower},
                      {"upper", map.im2col->upper},
                      {"channels", map.im2col->channels},
                      {"pixels", map.im2col->pixels}};
  return json;
}

inline TensorMap map_of(const nlohmann::json& json) {
  TensorMap map;
  map.type = parse_type(json.at("type").get<std::string>()).value_or(Type::none);
  json.at("address").get_to(map.address);
  json.at("extents").get_to(map.extents);
  json.at("strides").get_to(map.strides);
  json.at("box").get_to(map.box);
  json.at("element_strides").get_to(map.element_strides);
  map.swizzle = static_cast<TensorMap::Swizzle>(json.at("swizzle").get<int>());
  map.promotion = static_cast<TensorMap::Promotion>(json.at("promotion").get<int>());
  map.fill = static_cast<TensorMap::Fill>(json.at("fill").get<int>());
  json.at("flush").get_to(map.flush_subnormals);
  if (json.contains("im2col")) {
    const auto& given = json.at("im2col");
    map.im2col = {.lower = given.at("lower"),
                  .upper = given.at("upper"),
                  .channels = given.at("channels"),
                  .pixels = given.at("pixels")};
  }
  return map;
}

inline nlohmann::json copy_json(const TensorCopy& copy) {
  return {{"operation", copy.operation},
          {"map", map_json(copy.map)},
          {"at", copy.at},
          {"offsets", copy.offsets},
          {"shift", copy.shift},
          {"memory_bytes", copy.memory_bytes},
          {"shared_bytes", copy.shared_bytes},
          {"mask", copy.mask}};
}

inline TensorCopy copy_of(const nlohmann::json& json) {
  TensorCopy copy;
  json.at("operation").get_to(copy.operation);
  copy.map = map_of(json.at("map"));
  json.at("at").get_to(copy.at);
  if (json.contains("offsets")) json.at("offsets").get_to(copy.offsets);
  json.at("shift").get_to(copy.shift);
  json.at("memory_bytes").get_to(copy.memory_bytes);
  json.at("shared_bytes").get_to(copy.shared_bytes);
  json.at("mask").get_to(copy.mask);
  return copy;
}

template <typename Range>
std::string hexadecimal(const Range& bytes) {
  std::string out;
  for (const std::byte byte : bytes) out += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return out;
}

}  // namespace tartan::test
