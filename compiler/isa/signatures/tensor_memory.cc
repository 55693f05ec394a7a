// SPDX-License-Identifier: Apache-2.0
// Fifth-generation tensor cores and their memory (PTX ISA 9.0, 9.7.16). Tensor memory has no
// variables: its addresses are in 32-bit registers.
#include "tartan/isa/tensor_memory.h"

#include "compiler/isa/signatures/families.h"
#include "compiler/isa/signatures/memory.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

constexpr QualifierSet groups = "cta_group::1 cta_group::2";
constexpr QualifierSet repeats = "x1 x2 x4 x8 x16 x32 x64 x128";

// ---- Allocation, loads and stores, copies.

constexpr OperandRow tensor(std::string_view name = "taddr", Type type = u32) {
  return {.name = name, .accepts = an_address, .type = type, .spaces = in_tensor};
}
constexpr OperandRow columns() {
  return {.name = "columns",
          .accepts = a_register | an_integer,
          .type = u32,
          .ranged = true,
          .low = 32,
          .high = 512,
          .step = 0};
}
// With .exclusive any number of columns that 32 divides.
constexpr OperandRow exclusive_columns() {
  OperandRow out = columns();
  out.high = UINT32_MAX;
  out.step = 32;
  return out;
}
constexpr OperandRow loaded(OperandType type = OperandType(0)) {
  OperandRow out = written(vec(as_repeated, type, "r"));
  out.accepts = a_vector;
  return out;
}
// The assembler takes 32 bits of any type, braces too.
constexpr OperandRow reduced_value() { return also(a_register, written(vec(1, b32, "reduced"))); }
constexpr OperandRow stored() {
  OperandRow out = also(an_integer | a_float, vec(as_repeated, OperandType(0), "r"));
  out.registered = true;
  return out;
}
// As the assembler takes them: 32 bits of any type, and constants beside registers.
constexpr OperandRow disabled_lanes() {
  OperandRow out = also(an_integer, vec(lane_masks, b32, "disable_output_lane"));
  out.registered = true;
  return out;
}
constexpr OperandRow half() {
  return {.name = "half_split_offset", .accepts = an_integer, .type = Type::s32};
}
constexpr OperandRow descriptor(std::string_view name) { return src(u64, name); }
constexpr MemoryEffect load{.operand = 1,
                            .access = Access::Read,
                            .proxy = Proxy::Async,
                            .completion = Completion::Tcgen05Wait};
constexpr MemoryEffect store{.operand = 0,
                             .access = Access::Write,
                             .proxy = Proxy::Async,
                             .completion = Completion::Tcgen05Wait};
constexpr MemoryEffect reduced{.operand = 2,
                               .access = Access::Read,
                               .proxy = Proxy::Async,
                               .completion = Completion::Tcgen05Wait};

constexpr MemoryEffect compressed{.operand = 3,
                                  .access = Access::Read,
                                  .proxy = Proxy::Async,
                                  .completion = Completion::Tcgen05Wait};

std::string_view too_many_registers(const Spelling& spelling) {
  return tensor_access(spelling.words).registers() > 128 ? "accesses at most 128 registers" : "";
}

constexpr Signature copy(QualifierSet shape, QualifierSet multicast, bool formats) {
  Signature out{.opcode = Opcode::tcgen05_cp,
                .one = {groups, shape},
                .operands = {tensor(), descriptor("s_desc")},
                .since = with_tensor_memory,
                .memory = {{.operand = 0,
                            .access = Access::Write,
                            .proxy = Proxy::Async,
                            .completion = Completion::Tcgen05Commit},
                           {.operand = 1,
                            .access = Access::Read,
                            .proxy = Proxy::Async,
                            .completion = Completion::Tcgen05Commit}}};
  if (!multicast.empty()) out.one.items[out.one.size++] = multicast;
  if (formats) out.types = {Type::b8x16, {Type::b6x16_p32, Type::b4x16_p64}};
  return out;
}

// ---- mma: d, a (a descriptor or tensor memory), b, sparse metadata, the instruction descriptor,
// scales of a and b, lanes that keep d, whether d is added, the scale of d.

struct Product {
  Opcode opcode = Opcode::tcgen05_mma;
  bool from_tensor = false;  // a is in tensor memory
  bool masks = false;        // operand: lanes that keep d
  bool scales_d = false;     // operand: the power of two by which d is divided
};

constexpr bool is_sparse(Opcode opcode) {
  return opcode == Opcode::tcgen05_mma_sp || opcode == Opcode::tcgen05_mma_ws_sp;
}

constexpr void append(Signature& to, const OperandRow& operand) {
  to.operands.items[to.operands.size++] = operand;
}

constexpr Signature product(const Product& with, QualifierSet kinds, Since since) {
  Signature out{.opcode = with.opcode, .one = {kinds}, .since = since};
  append(out, written(tensor("d", b32)));
  append(out, with.from_tensor ? tensor("a", b32) : descriptor("a_desc"));
  append(out, descriptor("b_desc"));
  if (is_sparse(with.opcode)) append(out, tensor("metadata", b32));
  append(out, src(u32, "idesc"));
  constexpr auto done = Completion::Tcgen05Commit;
  out.memory = {{.operand = 0, .access = Access::Write, .proxy = Proxy::Async, .completion = done},
                {.operand = 1, .access = Access::Read, .proxy = Proxy::Async, .completion = done},
                {.operand = 2, .access = Access::Read, .proxy = Proxy::Async, .completion = done}};
  if (is_sparse(with.opcode))
    out.memory.items[out.memory.size++] = {
        .operand = 3, .access = Access::Read, .proxy = Proxy::Async, .completion = done};
  return out;
}

constexpr QualifierSet a_collectors =
    "collector::a::fill collector::a::use collector::a::lastuse collector::a::discard";
constexpr QualifierSet b_collectors =
    "collector::b::fill collector::b::use collector::b::lastuse collector::b::discard";
constexpr QualifierSet with_table = "decompress::lut::b";
constexpr OperandRow table() { return tensor("lut", b32); }

constexpr Signature mma(const Product& with, QualifierSet kinds, Since since) {
  Signature out = product(with, kinds, since);
  out.one.items[out.one.size++] = groups;
  out.any.items[out.any.size++] = a_collectors;
  if (with.masks) append(out, disabled_lanes());
  append(out, condition("enable_input_d"));
  if (with.scales_d) append(out, imm(0, 15, "scale_input_d"));
  return out;
}
// The same with .ashift, which requires a in tensor memory and no collector.
constexpr Signature shifted(const Product& with, QualifierSet kinds, Since since) {
  Signature out = mma(with, kinds, since);
  out.any.items[0] = "collector::a::lastuse collector::a::discard";
  out.one.items[out.one.size++] = "ashift";
  return out;
}
constexpr Signature scaled(Opcode opcode, bool from_tensor, QualifierSet kind, QualifierSet vectors,
                           bool stated, Since since) {
  Signature out = product({.opcode = opcode, .from_tensor = from_tensor}, kind, since);
  out.one.items[out.one.size++] = groups;
  out.one.items[out.one.size++] = "block_scale";
  if (stated) out.one.items[out.one.size++] = vectors;
  else out.any.items[out.any.size++] = vectors;
  out.any.items[out.any.size++] = a_collectors;
  append(out, tensor("scale_a", b32));
  append(out, tensor("scale_b", b32));
  append(out, condition("enable_input_d"));
  return out;
}
constexpr Signature weight_stationary(Opcode opcode, bool from_tensor, QualifierSet kinds,
                                      Since since) {
  Signature out = product({.opcode = opcode, .from_tensor = from_tensor}, kinds, since);
  out.one.items[out.one.size++] = "cta_group::1";
  out.any.items[out.any.size++] =
      "collector::b0::fill collector::b0::use collector::b0::lastuse collector::b0::discard "
      "collector::b1::fill collector::b1::use collector::b1::lastuse "
      "collector::b1::discard collector::b2::fill collector::b2::use collector::b2::lastuse "
      "collector::b2::discard collector::b3::fill collector::b3::use "
      "collector::b3::lastuse collector::b3::discard";
  append(out, condition("enable_input_d"));
  append(out, optional(descriptor("zero_column_mask")));
  return out;
}

// The same of sm_107, whose collector also keeps B.
constexpr Signature of_rubin(Signature out, Since since = rubin) {
  out.any.items[out.any.size++] = b_collectors;
  out.since = since;
  return out;
}
// B is decompressed by a table in tensor memory.
constexpr Signature decompressed(Signature out) {
  out.one.items[out.one.size++] = with_table;
  List<OperandRow, 12> operands;
  for (std::size_t i = 0; i < out.operands.size; ++i) {
    if (i == 3) operands.items[operands.size++] = table();
    operands.items[operands.size++] = out.operands[i];
  }
  out.operands = operands;
  return of_rubin(out);
}

constexpr QualifierSet rubin_kinds = "kind::f16 kind::tf32 kind::f8f6f4 kind::ti16";
constexpr QualifierSet floats = "kind::f16 kind::tf32 kind::f8f6f4", integers = "kind::i8",
                       scalable = "kind::f16 kind::tf32";
constexpr Since first_a{.ptx = {8, 6}, .sm = 100, .reach = Reach::ArchOnly, .last_sm = 110};
constexpr Since scales_a{.ptx = {8, 7}, .sm = 100, .reach = Reach::ArchOnly, .last_sm = 110};
constexpr Since blocks{.ptx = {8, 8}, .sm = 100, .reach = Reach::Family, .last_sm = 110};
constexpr Since sparse_blocks{.ptx = {8, 8}, .sm = 100, .reach = Reach::ArchOnly, .last_sm = 110};
// sm_101 has no scale of d, and sm_100 no loads that reduce.
constexpr Since scales_d[] = {{.ptx = {8, 6}, .sm = 100, .reach = Reach::Family, .last_sm = 100},
                              {.ptx = {8, 8}, .sm = 103, .reach = Reach::Family, .last_sm = 107}};
constexpr Since reductions{.ptx = {8, 8}, .sm = 101, .reach = Reach::Family, .last_sm = 110};
// sm_103a has no integers.
constexpr Since integer_targets[] = {{{8, 6}, 100, Reach::ExactArch},
                                     {{8, 6}, 101, Reach::ExactArch},
                                     {{9, 0}, 110, Reach::ExactArch}};

struct Rows {
  Signature items[256]{};
  std::size_t size = 0;
  constexpr void add(const Signature& row) { items[size++] = row; }
};

constexpr Rows mma_rows() {
  Rows out;
  for (const Opcode opcode : {Opcode::tcgen05_mma, Opcode::tcgen05_mma_sp}) {
    for (const bool masks : {false, true})
      for (const bool from_tensor : {false, true}) {
        out.add(mma({opcode, from_tensor, masks}, floats, with_tensor_memory));
        for (const Since& since : scales_d)
          out.add(mma({opcode, from_tensor, masks, true}, scalable, since));
        for (const Since& since : integer_targets)
          out.add(mma({opcode, from_tensor, masks}, integers, since));
        out.add(of_rubin(mma({opcode, from_tensor, masks}, rubin_kinds, rubin)));
        out.add(of_rubin(mma({opcode, from_tensor, masks, true}, scalable, rubin)));
        if (!is_sparse(opcode))
          out.add(decompressed(mma({opcode, from_tensor, masks}, "kind::f8f6f4", rubin)));
        if (!from_tensor) continue;
        out.add(of_rubin(shifted({opcode, from_tensor, masks}, rubin_kinds, rubin)));
        out.add(of_rubin(shifted({opcode, from_tensor, masks, true}, scalable, rubin)));
        out.add(shifted({opcode, from_tensor, masks}, floats, with_tensor_memory));
        for (const Since& since : scales_d)
          out.add(shifted({opcode, from_tensor, masks, true}, scalable, since));
        for (const Since& since : integer_targets)
          out.add(shifted({opcode, from_tensor, masks}, integers, since));
      }
    const Since fours = is_sparse(opcode) ? sparse_blocks : blocks;
    const Since rubin_fours = is_sparse(opcode) ? rubin_a : rubin;
    for (const bool from_tensor : {false, true}) {
      const auto on_rubin = [&](QualifierSet kind, QualifierSet vectors, bool stated, Since since) {
        out.add(of_rubin(scaled(opcode, from_tensor, kind, vectors, stated, since), since));
      };
      on_rubin("kind::mxf8f6f4", "block32", false, rubin);
      on_rubin("kind::mxf8f6f4", "scale_vec::1X", true, rubin_a);
      on_rubin("kind::mxf4", "block32", false, rubin_fours);
      on_rubin("kind::mxf4", "scale_vec::2X", true, rubin_a);
      on_rubin("kind::mxf4nvf4", "block16 block32", true, rubin_fours);
      on_rubin("kind::mxf4nvf4", "scale_vec::2X scale_vec::4X", true, rubin_a);
      if (!is_sparse(opcode))
        out.add(
            decompressed(scaled(opcode, from_tensor, "kind::mxf8f6f4", "block32", false, rubin)));
      out.add(scaled(opcode, from_tensor, "kind::mxf8f6f4", "block32", false, blocks));
      out.add(scaled(opcode, from_tensor, "kind::mxf8f6f4", "scale_vec::1X", true, first_a));
      out.add(scaled(opcode, from_tensor, "kind::mxf4", "block32", false, fours));
      out.add(scaled(opcode, from_tensor, "kind::mxf4", "scale_vec::2X", true, first_a));
      out.add(scaled(opcode, from_tensor, "kind::mxf4nvf4", "block16 block32", true, fours));
      out.add(scaled(opcode, from_tensor, "kind::mxf4nvf4", "scale_vec::2X scale_vec::4X", true,
                     scales_a));
    }
  }
  for (const Opcode opcode : {Opcode::tcgen05_mma_ws, Opcode::tcgen05_mma_ws_sp})
    for (const bool from_tensor : {false, true}) {
      out.add(weight_stationary(opcode, from_tensor, floats, with_tensor_memory));
      out.add(weight_stationary(opcode, from_tensor, "kind::ti16", rubin));
      for (const Since& since : integer_targets)
        out.add(weight_stationary(opcode, from_tensor, integers, since));
    }
  return out;
}

constexpr Signature plain(Opcode opcode, std::initializer_list<QualifierSet> one) {
  Signature out{.opcode = opcode, .since = with_tensor_memory};
  for (const QualifierSet& each : one) out.one.items[out.one.size++] = each;
  return out;
}

constexpr Rows all_rows() {
  Rows out = mma_rows();
  const QualifierSet shapes = "16x64b 16x128b 16x256b 32x32b", split = "16x32bx2";
  const auto with_operands = [&](Signature row, std::initializer_list<OperandRow> operands,
                                 std::initializer_list<MemoryEffect> memory = {}) {
    row.operands = operands;
    row.memory = memory;
    out.add(row);
  };
  Signature row = plain(Opcode::tcgen05_alloc, {groups, "sync", "aligned"});
  row.types = {TypeSet(b32)};
  row.any = {"shared::cta"};
  with_operands(row, {target("dst", in_shared), columns()},
                {{.operand = 0, .access = Access::Write}});
  row = plain(Opcode::tcgen05_dealloc, {groups, "sync", "aligned"});
  row.types = {TypeSet(b32)};
  with_operands(row, {reg(u32, "taddr"), columns()});
  row.one.items[row.one.size++] = "exclusive";
  row.since.ptx = {9, 4};
  with_operands(row, {src(u32, "taddr"), exclusive_columns()});
  row.opcode = Opcode::tcgen05_alloc;
  row.any = {"shared::cta"};
  with_operands(row, {target("dst", in_shared), exclusive_columns()},
                {{.operand = 0, .access = Access::Write}});
  out.add(plain(Opcode::tcgen05_relinquish_alloc_permit, {groups, "sync", "aligned"}));
  out.add(plain(Opcode::tcgen05_wait_ld, {"sync", "aligned"}));
  out.add(plain(Opcode::tcgen05_wait_st, {"sync", "aligned"}));
  out.add(plain(Opcode::tcgen05_fence_before_thread_sync, {}));
  out.add(plain(Opcode::tcgen05_fence_after_thread_sync, {}));

  for (const bool is_split : {false, true}) {
    row = plain(Opcode::tcgen05_ld, {"sync", "aligned", is_split ? split : shapes, repeats});
    row.types = {TypeSet(b32)};
    row.flags = "pack::16b";
    row.results_later = true;
    row.refuses = too_many_registers;
    if (is_split) with_operands(row, {loaded(), tensor(), half()}, {load});
    else with_operands(row, {loaded(), tensor()}, {load});
    row.opcode = Opcode::tcgen05_st;
    row.flags = "unpack::16b";
    row.results_later = false;
    if (is_split) with_operands(row, {written(tensor()), half(), stored()}, {store});
    else with_operands(row, {written(tensor()), stored()}, {store});
    // Loads that reduce.
    row =
        plain(Opcode::tcgen05_ld_red, {"sync", "aligned", is_split ? split : QualifierSet("32x32b"),
                                       "x2 x4 x8 x16 x32 x64 x128", "min max"});
    row.since = reductions;
    row.results_later = true;
    for (const bool is_float : {false, true}) {
      row.types = {is_float ? TypeSet(f32) : TypeSet{Type::u32, Type::s32}};
      if (is_float) row.any = {"abs", "NaN"};
      if (is_split) with_operands(row, {loaded(b32), reduced_value(), tensor(), half()}, {reduced});
      else with_operands(row, {loaded(b32), reduced_value(), tensor()}, {reduced});
    }
  }

  // Loads of sparse data, with its metadata.
  for (const bool reduces : {false, true}) {
    row = plain(reduces ? Opcode::tcgen05_ld_red_spcompress : Opcode::tcgen05_ld_spcompress,
                {"sync", "aligned", "32x32b", "x4 x8 x16 x32 x64 x128", "min max", "sp::2:4"});
    row.since = rubin_a;
    row.results_later = true;
    row.types = {TypeSet(f32), TypeSet(Type::b2)};
    row.flags = reduces ? QualifierSet("abs NaN") : QualifierSet("abs");
    const OperandRow metadata = written(vec(sparse_metadata, b32, "metadata")),
                     values = written(vec(sparse_values, b32, "values"));
    if (reduces) with_operands(row, {metadata, values, reduced_value(), tensor()}, {compressed});
    else with_operands(row, {metadata, values, tensor()}, {reduced});
  }

  for (const bool formats : {false, true}) {
    out.add(copy("128x256b 4x256b 128x128b", {}, formats));
    out.add(copy("64x128b", "warpx2::02_13 warpx2::01_23", formats));
    out.add(copy("32x128b", "warpx4", formats));
  }
  row = plain(Opcode::tcgen05_shift, {groups, "down"});
  row.since = first_a;
  with_operands(row, {written(tensor())},
                {{.operand = 0,
                  .access = Access::Write,
                  .proxy = Proxy::Async,
                  .completion = Completion::Tcgen05Commit}});
  row = plain(Opcode::tcgen05_commit, {groups, "mbarrier::arrive::one"});
  row.types = {TypeSet(b64)};
  row.any = {multicasts};
  row.flags = "shared::cluster sync_restrict::shared::read::mma::a";
  row.needs = {{.words = "multicast::cluster::16b",
                .since = {.ptx = {9, 4}, .sm = 100, .reach = Reach::Family, .last_sm = 110}},
               needs_32_bits,
               {.words = "sync_restrict::shared::read::mma::a", .since = rubin}};
  OperandRow object = mbarrier();
  object.type = u32;  // not 16 bits
  with_operands(row, {object, blocks_16(), blocks_16(by_16_bits), blocks_32()},
                {{.operand = 0,
                  .access = Access::Atomic,
                  .proxy = Proxy::Async,
                  .completion = Completion::Tcgen05Commit}});
  return out;
}

}  // namespace

std::span<const Signature> tensor_memory_signatures() {
  static const Rows rows = all_rows();
  return {rows.items, rows.size};
}

}  // namespace tartan::TARTAN_ABI::isa
