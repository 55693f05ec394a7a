// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/random_writer.h"

namespace tartan::test {

Zone zone_of(Type type, bool calm) {
  switch (type) {
    case Type::f16: return calm ? Zone::calm_f16 : Zone::f16;
    case Type::bf16: return calm ? Zone::calm_bf16 : Zone::bf16;
    case Type::tf32:
    case Type::f32: return calm ? Zone::calm_f32 : Zone::f32;
    case Type::f64: return calm ? Zone::calm_f64 : Zone::f64;
    case Type::e4m3: return Zone::e4m3;
    case Type::e5m2: return Zone::e5m2;
    default: return Zone::bits;
  }
}

std::string Writer::fresh(char letter) {
  return fmt::format("%{}{}", letter, counts_[static_cast<int>(letter)]++);
}

std::string Writer::destination(int bits) {
  const std::string reg = fresh(letter(bits));
  zero_where_skipped(reg, bits);
  return reg;
}

void Writer::zero_where_skipped(const std::string& reg, int bits) {
  if ((!guarded && depth == 0) || !zeroed_.insert(reg).second) return;
  zeros_ += bits == 1 ? fmt::format("setp.ne.u32 {}, %thread, %thread;\n", reg)
                      : fmt::format("mov.b{} {}, 0;\n", bits, reg);
}

void Writer::result(const std::string& reg, int bits, std::string_view type,
                    std::string instruction) {
  zero_where_skipped(reg, bits);
  values_.push_back({reg, bits, std::string(type)});
  const auto all = std::uint64_t{program.launch.grid.x} * program.launch.block.x;
  const std::uint64_t offset = 8 * all * program.results.size();
  std::string from = reg;
  if (bits == 1) stores_ += fmt::format("selp.u32 %word, 1, 0, {};\n", reg), from = "%word";
  if (bits == 16) stores_ += fmt::format("cvt.u32.u16 %word, {};\n", reg), from = "%word";
  stores_ += fmt::format("st.global.b{} [%outlane+{}], {};\n", bits == 64 ? 64 : 32, offset, from);
  program.results.push_back({reg, std::move(instruction)});
}

std::string Writer::source(int bits, std::string_view type) {
  std::vector<const Value*> fitting, wide;
  for (const Value& value : values_) {
    if (value.bits != bits) continue;
    wide.push_back(&value);
    if (value.type == type) fitting.push_back(&value);
  }
  const auto& from = !fitting.empty() && chance(75) ? fitting : wide;
  // Prefers later values half of the time, for longer chains of instructions.
  const auto count = static_cast<std::uint32_t>(from.size());
  const std::uint32_t recent = count > 4 && chance(50) ? 4 : count;
  return from[count - 1 - below(recent)]->reg;
}

std::string Writer::input(Zone zone, int align, int stride) {
  const int room = zone_bytes - stride * 128 - 16;
  const int offset = static_cast<int>(below(static_cast<std::uint32_t>(room / align))) * align;
  return fmt::format("[{}+{}]", stride == 8 ? "%in8" : "%in16",
                     static_cast<int>(zone) * zone_bytes + offset);
}

std::string Writer::text() const {
  std::string out = fmt::format(
      ".visible .entry {}(.param .u64 in, .param .u64 out, .param .u64 sums, .param .u32 uniform)\n"
      "{{\n.shared .align 128 .b8 exchange[2048];\n.shared .align 128 .b8 matrices[8192];\n"
      ".shared .align 8 .b8 counters[64];\n.local .align 16 .b8 own[64];\n"
      ".reg .b64 %in, %in8, %in16, %outlane, %sums, %wide;\n"
      ".reg .b32 %thread, %lane, %mine, %warp, %uniform, %word, %zero;\n"
      ".reg .b16 %zero16;\n",
      program.name);
  constexpr std::string_view types[][2] = {{"p", "pred"}, {"h", "b16"}, {"r", "b32"},
                                           {"d", "b64"},  {"f", "f32"}, {"g", "f64"}};
  for (const auto& [letter, type] : types)
    if (const int count = counts_[static_cast<int>(letter[0])])
      out += fmt::format(".reg .{} %{}<{}>;\n", type, letter, count);
  out +=
      "mov.u32 %thread, %tid.x;\nmov.u32 %lane, %laneid;\n"
      "ld.param.u64 %in, [in];\ncvta.to.global.u64 %in, %in;\n"
      "mul.wide.u32 %wide, %thread, 8;\nadd.s64 %in8, %in, %wide;\nadd.s64 %in16, %in8, %wide;\n"
      "mov.u32 %word, %ctaid.x;\nmov.u32 %mine, %ntid.x;\nmad.lo.u32 %word, %word, %mine, "
      "%thread;\n"
      "mul.wide.u32 %wide, %word, 8;\nld.param.u64 %outlane, [out];\n"
      "cvta.to.global.u64 %outlane, %outlane;\nadd.s64 %outlane, %outlane, %wide;\n"
      "ld.param.u64 %sums, [sums];\ncvta.to.global.u64 %sums, %sums;\n"
      "ld.param.u32 %uniform, [uniform];\n"
      "ld.global.b32 %zero, [%outlane];\ncvt.u16.u32 %zero16, %zero;\n"
      "mov.u32 %mine, exchange;\nmad.lo.u32 %mine, %thread, 16, %mine;\n"
      "shr.u32 %word, %thread, 5;\nmov.u32 %warp, matrices;\nmad.lo.u32 %warp, %word, 2048, "
      "%warp;\n";
  return out + zeros_ + body_ + stores_ + "ret;\n}\n";
}

}  // namespace tartan::test
