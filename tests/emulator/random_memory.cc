// SPDX-License-Identifier: Apache-2.0
// Statements that move data: loads, exchanges between threads through shared memory, asynchronous
// copies, reductions, tables, warp collectives. Shared memory is read only between two barriers
// that protect it from writes.
#include <iterator>

#include "tests/emulator/random_writer.h"

namespace tartan::test {
namespace {

// Registers for a vector access, as "{%r1, %r2}" or "%r1".
std::string vector_text(const std::vector<std::string>& registers) {
  return registers.size() == 1 ? registers[0] : fmt::format("{{{}}}", fmt::join(registers, ", "));
}

// The shared address of the thread that is `other` places away.
std::string neighbour(Writer& w) {
  const std::string reg = w.fresh('r'), base = w.fresh('r');
  if (w.chance(50)) {
    w.line("xor.b32 {}, %thread, {};", reg, w.below(static_cast<std::uint32_t>(w.threads())));
  } else {
    w.line("add.u32 {}, %thread, {};", reg, w.below(static_cast<std::uint32_t>(w.threads())));
    w.line("and.b32 {}, {}, {};", reg, reg, w.threads() - 1);
  }
  w.line("mov.u32 {}, exchange;", base);
  w.line("mad.lo.u32 {}, {}, 16, {};", reg, reg, base);
  return reg;
}

void load_shared(Writer& w, const std::string& at, int count, std::string_view type, int bits,
                 const std::string& because) {
  std::vector<std::string> registers;
  for (int i = 0; i < count; ++i) registers.push_back(w.destination(bits));
  const std::string text = fmt::format("ld.shared{}.{} {}, [{}];",
                                       count == 1   ? ""
                                       : count == 2 ? ".v2"
                                                    : ".v4",
                                       type, vector_text(registers), at);
  w.line(text);
  for (const std::string& reg : registers)
    w.loaded(reg, bits, fmt::format("b{}", bits), because + " " + text);
}

struct Access {
  std::string_view type;
  int bits, count;  // of each register; how many
};
constexpr Access accesses[] = {{"b8", 16, 1},  {"u8", 32, 1},  {"s8", 32, 1},  {"b8", 16, 4},
                               {"u16", 32, 1}, {"s16", 32, 2}, {"b16", 16, 1}, {"b16", 16, 2},
                               {"b16", 16, 4}, {"b32", 32, 1}, {"b32", 32, 2}, {"b32", 32, 4},
                               {"b64", 64, 1}, {"b64", 64, 2}};

}  // namespace

void load_statement(Writer& w) {
  const Access& access = accesses[w.below(std::size(accesses))];
  std::vector<std::string> registers;
  for (int i = 0; i < access.count; ++i) registers.push_back(w.destination(access.bits));
  constexpr std::string_view kinds[] = {"ld.global",          "ld.global.nc",
                                        "ld.global.ca",       "ld.global.cg",
                                        "ld.volatile.global", "ld.relaxed.gpu.global"};
  const Zone zone = static_cast<Zone>(w.below(static_cast<std::uint32_t>(Zone::calm_f16)));
  const std::string_view kind = w.one_of(kinds);
  const std::string text = fmt::format("{}{}.{} {}, {};", kind,
                                       access.count == 1   ? ""
                                       : access.count == 2 ? ".v2"
                                                           : ".v4",
                                       access.type, vector_text(registers), w.input(zone, 16, 16));
  w.line(text);
  for (const std::string& reg : registers)
    w.loaded(reg, access.bits, fmt::format("b{}", access.bits), text);
}

void exchange_statement(Writer& w) {
  const Access& access = accesses[w.below(std::size(accesses))];
  const auto registers = w.sources(access.bits, access.count);
  const std::string at = neighbour(w);
  const std::string text = fmt::format(
      "st.shared{}.{} [%mine], {};",
      access.count == 1   ? ""
      : access.count == 2 ? ".v2"
                          : ".v4",
      access.type[0] == 's' ? fmt::format("u{}", access.type.substr(1)) : std::string(access.type),
      vector_text(registers));
  w.block_barrier();
  w.line(text);
  w.block_barrier();
  load_shared(w, at, access.count, access.type, access.bits, text);
  if (!w.chance(30)) return;
  constexpr std::string_view votes[] = {"and.pred", "or.pred"};
  if (w.chance(50)) {
    const std::string d = w.destination(32);
    const std::string count = fmt::format("bar.red.popc.u32 {}, 1, {};", d, w.source(1));
    w.line(count);
    w.result(d, 32, "b32", count);
  } else {
    const std::string d = w.destination(1);
    const std::string_view operation = w.one_of(votes);
    const std::string vote = fmt::format("bar.red.{} {}, 2, {};", operation, d, w.source(1));
    w.line(vote);
    w.result(d, 1, "pred", vote);
  }
}

void asynchronous_copy_statement(Writer& w) {
  const std::string at = neighbour(w);
  const int size = 4 << w.below(3);
  const bool global_only = size == 16 && w.chance(50);
  std::string rest;
  if (w.chance(40)) {  // bytes beyond the source's size become zero
    const std::string reg = w.fresh('r');
    w.line("and.b32 {}, {}, {};", reg, w.source(32), size - 1);
    rest = ", " + reg;
  }
  w.block_barrier();
  const std::string text =
      fmt::format("cp.async.{}.shared.global [%mine], {}, {}{};", global_only ? "cg" : "ca",
                  w.input(Zone::bits, 16, 16), size, rest);
  w.line(text);
  if (w.chance(50)) w.line("cp.async.wait_all;");
  else w.line("cp.async.commit_group;\ncp.async.wait_group 0;");
  w.block_barrier();
  load_shared(w, at, size / 4, "b32", 32, text);
}

// Integers only: their result does not depend on the order of threads.
void reduction_statement(Writer& w) {
  constexpr std::string_view words[] = {"add.u32", "add.s32", "min.s32", "min.u32", "max.s32",
                                        "max.u32", "and.b32", "or.b32",  "xor.b32"};
  constexpr std::string_view pairs[] = {"add.u64", "min.s64", "min.u64", "max.s64",
                                        "max.u64", "and.b64", "or.b64",  "xor.b64"};
  const bool wide = w.chance(40);
  const std::string_view operation = wide ? w.one_of(pairs) : w.one_of(words);
  const std::string value = w.source(wide ? 64 : 32);
  if (w.chance(60)) {
    const std::string text =
        fmt::format("red.global.{} [%sums+{}], {};", operation, 8 * w.program.sums.size(), value);
    w.line(text);
    w.program.sums.push_back(text);
    return;
  }
  const std::string first = w.fresh('p'), d = w.destination(wide ? 64 : 32);
  const int bits = wide ? 64 : 32;
  w.block_barrier();
  w.line("setp.eq.u32 {}, %thread, 0;", first);
  w.line("@{} st.shared.b{} [counters], {};", first, bits, w.below(1000));
  w.block_barrier();
  const std::string text = fmt::format("red.shared.{} [counters], {};", operation, value);
  w.line(text);
  w.block_barrier();
  w.line("ld.shared.b{} {}, [counters];", bits, d);
  w.result(d, bits, fmt::format("b{}", bits), text);
}

void table_statement(Writer& w) {
  const std::string index = w.fresh('r'), at = w.fresh('d'), d = w.destination(32);
  w.line("and.b32 {}, {}, 15;", index, w.source(32));
  std::string text;
  if (w.chance(50)) {
    w.line("mov.u64 {}, table;", at);
    w.line("mad.wide.u32 {}, {}, 4, {};", at, index, at);
    text = fmt::format("ld.const.b32 {}, [{}];", d, at);
  } else {
    for (int i = 0; i < 4; ++i)
      w.line("st.local.v4.b32 [own+{}], {};", 16 * i, vector_text(w.sources(32, 4)));
    w.line("mov.u64 {}, own;", at);
    w.line("mad.wide.u32 {}, {}, 4, {};", at, index, at);
    w.line("st.local.b32 [{}], {};", at, w.source(32));
    w.line("xor.b64 {}, {}, 4;", at, at);
    text = fmt::format("ld.local.b32 {}, [{}];", d, at);
  }
  w.line(text);
  w.result(d, 32, "b32", text);
}

namespace {

std::string shuffle(Writer& w, const std::string& d, const std::string& p) {
  constexpr std::string_view modes[] = {"up", "down", "bfly", "idx"};
  constexpr int segments[] = {0, 0x1000, 0x1800, 0x1C00, 0x1E00};  // of 32, 16, 8, 4, 2 lanes
  const std::string_view mode = w.one_of(modes);
  const int clamp = segments[w.below(5)] | (mode == "up" ? 0 : 31);
  std::string distance = std::to_string(w.below(32));
  if (mode == "idx" && w.chance(60)) {
    distance = w.fresh('r');
    w.line("and.b32 {}, {}, 31;", distance, w.source(32));
  }
  return fmt::format("shfl.sync.{}.b32 {}|{}, {}, {}, {}, 0xffffffff;", mode, d, p, w.source(32),
                     distance, clamp);
}

}  // namespace

void collective_statement(Writer& w) {
  w.converge();
  constexpr std::string_view votes[] = {"all", "any", "uni"};
  constexpr std::string_view sums[] = {"add.u32", "add.s32", "min.u32", "min.s32", "max.u32",
                                       "max.s32", "and.b32", "or.b32",  "xor.b32"};
  std::uint32_t kind = w.below(7);
  // NVIDIA's assembler hoists redux out of branches and loses the previous value of its result.
  if (kind == 2 && w.guarded) kind = 3;
  const std::string p = kind <= 1 || kind == 4 || kind == 5 ? w.destination(1) : "";
  const std::string d = kind == 4 ? "" : w.destination(32);
  const std::string_view vote = w.one_of(votes), sum = w.one_of(sums);
  std::string text;
  switch (kind) {
    case 0:
    case 1: text = shuffle(w, d, p); break;
    case 2: text = fmt::format("redux.sync.{} {}, {}, 0xffffffff;", sum, d, w.source(32)); break;
    case 3: text = fmt::format("vote.sync.ballot.b32 {}, {}, 0xffffffff;", d, w.source(1)); break;
    case 4:
      text = fmt::format("vote.sync.{}.pred {}, {}, 0xffffffff;", vote, p, w.source(1));
      break;
    case 5:
      text = fmt::format("match.all.sync.b32 {}|{}, {}, 0xffffffff;", d, p, w.source(32));
      break;
    default: {
      const int bits = w.chance(50) ? 32 : 64;
      text = fmt::format("match.any.sync.b{} {}, {}, 0xffffffff;", bits, d, w.source(bits));
    }
  }
  w.line(text);
  if (!d.empty()) w.result(d, 32, "b32", text);
  if (!p.empty()) w.result(p, 1, "pred", text);
}

}  // namespace tartan::test
