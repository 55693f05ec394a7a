// SPDX-License-Identifier: Apache-2.0
// Every documented warp-level form through the DSL: products as typed fragments, moves by name, on
// a target that has it, and a sample on all targets that do. compile() verifies each text; NVIDIA's
// assembler, if installed, does too.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <sstream>

#include "tartan/dsl/builder.h"
#include "tartan/isa/instruction.h"
#include "tests/support/machine_code.h"

namespace tartan {
namespace {

using isa::Form;
using isa::Opcode;

bool product(const Form& form) {
  return form.opcode == Opcode::mma || form.opcode == Opcode::wmma_mma;
}

// ---- One form in a kernel.

// Describes one form after another in one kernel. Inputs are parameters; every result is stored, so
// that nothing is eliminated.
class Forms {
 public:
  explicit Forms(Builder& k)
      : k_(k),
        word_(k.param("word", u32)),
        single_(k.param("single", f32)),
        wide_(k.param("wide", f64)),
        words_(k.global("words", u32, row_major(64, 64))),
        wides_(k.global("wides", f64, row_major(64, 64))),
        shared_(k.shared("memory", f16, row_major(64, 64))) {}

  void add(const Form& form) {
    if (product(form)) keep(k_.registers(multiply(form)));
    else keep(move(form));
  }

 private:
  Scalar input(Type type) const { return type == f64 ? wide_ : type == f32 ? single_ : word_; }

  void keep(const std::vector<Scalar>& registers) {
    for (const Scalar& each : registers) {
      const int at = written_++ % 4096;
      const Scalar stored = each.type() == f32 ? k_.bitcast(each, u32) : each;
      k_.write(each.type() == f64 ? wides_ : words_, at / 64, at % 64, stored);
    }
  }

  std::vector<Scalar> move(const Form& form) {
    const auto row = isa::find(form);
    std::vector<Scalar> operands;
    for (const isa::OperandSpec& spec : row->operands) {
      if (spec.role == isa::Role::d || spec.kind == isa::OperandKind::Address) continue;
      if (spec.role == isa::Role::stride) operands.push_back(64);
      else operands.insert(operands.end(), static_cast<std::size_t>(spec.count), input(spec.type));
    }
    if (form.opcode == Opcode::movmatrix) return k_.instruction(isa::spell(form), operands);
    const bool wmma = form.opcode == Opcode::wmma_load || form.opcode == Opcode::wmma_store;
    const bool global =
        form.space == StateSpace::global || (form.space == StateSpace::none && wmma);
    if (global) return k_.instruction(isa::spell(form), words_, 0, 0, operands);
    k_.warp_sync();
    return k_.instruction(isa::spell(form), shared_, k_.lane(), 0, operands);
  }

  Fragment filled(const FragmentKind& kind) {
    const isa::Fragment fragment = kind.fragment();
    const Type type = fragment.register_bits == 64 ? f64 : kind.type == f32 ? f32 : b32;
    return k_.fragment(
        kind, std::vector<Scalar>(static_cast<std::size_t>(fragment.registers), input(type)));
  }

  Fragment multiply(const Form& f) {
    const MmaShape shape{f.shape, f.opcode == Opcode::wmma_mma, f.sparsity != isa::Sparsity::dense,
                         f.kind};
    MmaOptions options{.d = f.d,
                       .satfinite = f.satfinite,
                       .rounding = f.rounding,
                       .bit_op = f.bit_op,
                       .sparsity = f.sparsity};
    options.scale_type = f.scale_type, options.scale_vec = f.scale_vec;
    if (shape.sparse) options.metadata = word_;
    if (f.block_scale) {
      // Pairs as constants and as registers, in turn.
      options.a_scale = BlockScale{word_, 0, 1};
      options.b_scale = written_ % 2
                            ? BlockScale{word_, 0, 3}
                            : BlockScale{word_, k_.convert(word_, u16), k_.convert(word_, u16)};
    }
    return k_.mma(filled(operand_a(shape, f.a, f.a_major)),
                  filled(operand_b(shape, f.b, f.b_major)), filled(operand_c(shape, f.c)), options);
  }

  Builder& k_;
  Scalar word_, single_, wide_;
  Global words_, wides_;
  Shared shared_;
  int written_ = 0;
};

// ---- Many forms in many kernels.

using Spellings = std::map<std::string, int>;  // and how often

Spellings spellings(std::span<const Form> forms) {
  Spellings out;
  for (const Form& form : forms) ++out[isa::spell(form)];
  return out;
}

Spellings spellings(const std::string& ptx) {
  Spellings out;
  std::istringstream text(ptx);
  for (std::string word; text >> word;)
    if (isa::matrix_opcode(word) != Opcode::none) ++out[isa::spell(isa::parse_form(word).form)];
  return out;
}

int assemble(const Target& target, const std::string& ptx, std::string& log) {
  const std::string base = ::testing::TempDir() + "tartan_forms_" + std::to_string(::getpid());
  std::ofstream(base + ".ptx") << ptx;
  const int code = std::system(fmt::format("ptxas -O1 -arch {} {}.ptx -o /dev/null > {}.log 2>&1",
                                           target.arch.text(), base, base)
                                   .c_str());
  std::ostringstream text;
  text << std::ifstream(base + ".log").rdbuf();
  log = text.str().substr(0, 2000);
  std::remove((base + ".ptx").c_str()), std::remove((base + ".log").c_str());
  return code;
}

struct Emitted {
  std::size_t forms = 0, kernels = 0, assembled = 0;
};

// Compiles `forms` for `target` in kernels of 64, and assembles these if ptxas is installed.
void emit(const Target& target, std::span<const Form> forms, Emitted& total) {
  for (std::size_t from = 0; from < forms.size(); from += 64) {
    const auto part = forms.subspan(from, std::min<std::size_t>(64, forms.size() - from));
    const auto compiled = compile(kernel("forms", {.block = 32},
                                         [&](Builder& k) {
                                           Forms all(k);
                                           for (const Form& form : part) all.add(form);
                                         }),
                                  target);
    ASSERT_TRUE(compiled) << target.text() << ": " << compiled.diags().text();
    EXPECT_EQ(spellings(compiled->ptx), spellings(part)) << target.text();
    total.forms += part.size(), ++total.kernels;
    if (!test::assembler_takes(target.ptx)) continue;
    std::string log;
    EXPECT_EQ(assemble(target, compiled->ptx, log), 0) << target.text() << "\n" << log;
    ++total.assembled;
  }
}

std::vector<Target> targets_of(const Since& since) {
  std::vector<Target> out;
  for (const ArchRow& row : archs)
    if (row.current && since.has(row.arch)) {
      Target target = Target::of(row.arch);
      target.ptx = std::max(target.ptx, since.ptx);
      out.push_back(target);
    }
  return out;
}

using Batches = std::map<std::pair<std::string, Version>, std::pair<Target, std::vector<Form>>>;

void add(Batches& batches, const Target& target, const Form& form) {
  auto& [key, batch] =
      *batches.try_emplace({target.arch.text(), target.ptx}, target, std::vector<Form>{}).first;
  batch.second.push_back(form);
}

Emitted emit(const Batches& batches) {
  Emitted total;
  for (const auto& [key, batch] : batches) emit(batch.first, batch.second, total);
  fmt::print("{} forms in {} kernels, {} of them assembled\n", total.forms, total.kernels,
             total.assembled);
  return total;
}

TEST(DslForms, EveryFormOnItsOldestTarget) {
  Batches batches;
  std::map<std::string_view, int> families;
  for (const Form& form : isa::forms()) {
    const auto targets = targets_of(isa::find(form)->since);
    ASSERT_FALSE(targets.empty()) << isa::spell(form);
    add(batches, targets.front(), form);
    ++families[isa::family(form)];
  }
  EXPECT_EQ(emit(batches).forms, isa::forms().size());
  const std::map<std::string_view, int> documented = {
      {"ldmatrix", 63},        {"stmatrix", 27},          {"movmatrix", 1}, {"wmma.load", 704},
      {"wmma.store", 208},     {"wmma.mma", 138},         {"mma", 160},     {"mma.sp", 142},
      {"mma.block_scale", 55}, {"mma.sp.block_scale", 55}};
  EXPECT_EQ(families, documented);
}

TEST(DslForms, SampleOnEveryTarget) {
  Batches batches;
  std::set<std::string> arch_names;
  const std::vector<Form> forms = isa::forms();
  for (std::size_t i = 0; i < forms.size(); i += 17)
    for (const Target& target : targets_of(isa::find(forms[i])->since)) {
      add(batches, target, forms[i]);
      arch_names.insert(target.arch.text());
    }
  EXPECT_GT(emit(batches).forms, 1500u);
  EXPECT_EQ(arch_names.size(), 26u);
}

}  // namespace
}  // namespace tartan
