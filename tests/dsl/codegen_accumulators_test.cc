// SPDX-License-Identifier: Apache-2.0
// Accumulators of wgmma whose registers have names of their own in the text, and those that keep
// LLVM's because one register is not enough. Every product here adds 16 to each element.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "tartan/isa/instruction.h"
#include "tests/dsl/codegen_testing.h"
#include "tests/support/engine.h"

namespace tartan::codegen {
namespace {

constexpr int elements = 4;  // of a thread, in 64 rows and 8 columns
constexpr int added = 16;    // by a product

using Sum = std::array<Variable, elements>;

// A kernel of one warpgroup, with ones in shared memory.
class Products {
 public:
  Products()
      : f("products", *Target::parse("sm_90a"), {.block = {128, 1, 1}},
          {{"out", StateSpace::global}, {"bits", StateSpace::none, u32}}) {
    const Value thread = f.special(isa::SpecialRegister::tid_x);
    const Pointer tile = f.dynamic_shared(1024);
    for (int i = 0; i < 8; ++i)
      f.store(f.offset(f.offset(tile, f.multiply(thread, f.constant(u32, 32))), 4 * i),
              f.constant(b32, 0x3C003C00));
    f.proxy_fence();
    f.barrier();
    const Value address = f.shift_right(f.shared_address(tile), f.constant(u32, 4));
    descriptor_ =
        f.bitcast(f.bit_or(f.convert(address, u64),
                           f.constant(u64, std::int64_t{8} << 16 | std::int64_t{16} << 32)),
                  Type::b64);
    out_ = f.offset(f.pointer_param(0), f.multiply(thread, f.constant(u32, 4)));
  }

  Sum zero() {
    Sum out;
    for (Variable& each : out) each = f.variable(f.constant(f32, 0.0));
    return out;
  }
  std::vector<Value> get(const Sum& sum) {
    std::vector<Value> out;
    for (const Variable& each : sum) out.push_back(f.get(each));
    return out;
  }
  void set(const Sum& sum, std::span<const Value> values) {
    for (std::size_t i = 0; i < elements; ++i) f.set(sum[i], values[i]);
  }
  std::vector<Value> product(std::span<const Value> accumulators) {
    std::vector<Value> operands{descriptor_, descriptor_, f.constant(Type::pred, 1)};
    for (const std::int64_t immediate : {1, 1, 0, 0})
      operands.push_back(f.constant(s32, immediate));
    return f.warpgroup_product(
        isa::parse_form("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16").form, accumulators,
        {&operands, 1});
  }
  void multiply(const Sum& sum) { set(sum, product(get(sum))); }
  void wait(const Sum& sum) { set(sum, f.warpgroup_wait(0, get(sum))); }
  void loop(int rounds, const std::function<void()>& body) {
    f.for_range(f.constant(u32, 0), f.constant(u32, rounds), f.constant(u32, 1),
                [&](Value) { body(); });
  }
  /// Its body runs where that bit of the parameter is set.
  void when(int bit, const std::function<void()>& body) {
    f.if_then(f.compare(Compare::ne, f.bit_and(f.param(1), f.constant(u32, 1 << bit)),
                        f.constant(u32, 0)),
              body);
  }
  /// The elements, one after the other.
  void store(const Sum& sum) {
    for (const Variable& each : sum) f.store(f.offset(out_, 512 * stored_++), f.get(each));
  }

  FunctionBuilder f;

 private:
  Value descriptor_;
  Pointer out_;
  int stored_ = 0;
};

bool has_names(const std::string& ptx) { return ptx.find("%acc") != std::string::npos; }

std::string emitted(const std::function<void(Products&, const Sum&)>& describe) {
  Products k;
  const Sum sum = k.zero();
  describe(k, sum);
  k.wait(sum);
  k.store(sum);
  return emit_and_assemble(k.f);
}

TEST(Accumulators, HaveNamesWhereTheyStay) {
  const std::string ptx =
      emitted([](Products& k, const Sum& sum) { k.loop(3, [&] { k.multiply(sum); }); });
  EXPECT_EQ(count(ptx, ".reg .b32 \t%acc<4>;"), 1) << ptx;
  EXPECT_EQ(count(ptx, "{%acc0, %acc1, %acc2, %acc3}"), 1) << ptx;
  const std::size_t product = ptx.find("wgmma.mma_async"), wait = ptx.find("wgmma.wait_group");
  EXPECT_EQ(count(ptx.substr(0, product), ", 0f00000000;"), elements) << ptx;
  EXPECT_EQ(count(ptx.substr(product, wait - product), "%acc"), elements) << ptx;
  EXPECT_EQ(count(ptx.substr(wait), ", %acc"), elements) << ptx;
}

TEST(Accumulators, HaveNamesInBranches) {
  EXPECT_TRUE(has_names(emitted([](Products& k, const Sum& sum) {
    k.loop(3, [&] {
      k.when(0, [&] { k.multiply(sum); });
      k.when(1, [&] { k.wait(sum); });
    });
  })));
}

TEST(Accumulators, HaveNoNamesWhereTheyMove) {
  const auto next = [](Products& k, const Sum& to, const Sum& from) { k.set(to, k.get(from)); };
  // A value is needed after a product has replaced it.
  EXPECT_FALSE(has_names(emitted([&](Products& k, const Sum& sum) {
    const Sum before = k.zero();
    k.loop(3, [&] {
      k.wait(sum);
      next(k, before, sum);
      k.multiply(sum);
    });
    k.wait(before);
    k.store(before);
  })));
  // Two change places.
  EXPECT_FALSE(has_names(emitted([&](Products& k, const Sum& sum) {
    const Sum other = k.zero();
    k.loop(3, [&] {
      k.multiply(sum);
      k.wait(sum);
      const std::vector<Value> first = k.get(sum), second = k.get(other);
      k.set(sum, second), k.set(other, first);
    });
    k.wait(other);
    k.store(other);
  })));
  EXPECT_FALSE(has_names(emitted([&](Products& k, const Sum& sum) {
    const Sum before = k.zero();
    k.loop(3, [&] { k.multiply(sum); });
    k.wait(sum);
    next(k, before, sum);
    k.loop(3, [&] { k.multiply(sum); });
    k.wait(before);
    k.store(before);
  })));
  // Zeros would come to the end of the condition before its body needs the old value.
  EXPECT_FALSE(has_names(emitted([&](Products& k, const Sum& sum) {
    const Sum other = k.zero();
    k.loop(3, [&] { k.multiply(sum); });
    k.when(0, [&] {
      k.multiply(sum);
      k.wait(sum);
      next(k, other, sum);
    });
    k.loop(3, [&] { k.multiply(other); });
    next(k, sum, other);
  })));
  // Two products start from the same value.
  EXPECT_FALSE(has_names(emitted([&](Products& k, const Sum& sum) {
    const Sum other = k.zero();
    k.loop(3, [&] {
      k.wait(sum);
      next(k, other, sum);
      k.multiply(sum);
      k.multiply(other);
      k.wait(other);
    });
    k.store(other);
  })));
}

TEST(Accumulators, HaveNoNamesWhereOtherCodeTakesPart) {
  const auto twice = [](Products& k, const Sum& sum) {
    k.wait(sum);
    for (const Variable& each : sum)
      k.f.set(each, k.f.multiply(k.f.get(each), k.f.constant(f32, 2.0)));
  };
  EXPECT_FALSE(has_names(emitted(
      [&](Products& k, const Sum& sum) { k.loop(3, [&] { k.multiply(sum), twice(k, sum); }); })));
  EXPECT_FALSE(has_names(emitted([&](Products& k, const Sum& sum) {
    for (const Variable& each : sum) k.f.set(each, k.f.convert(k.f.param(1), f32));
    k.loop(3, [&] { k.multiply(sum); });
  })));
}

// Three sums under random products, waits, copies, exchanges, branches and loops.
class Program {
 public:
  Program(Products& k, unsigned seed, unsigned bits) : k_(k), bits_(bits), random_(seed) {
    for (Sum& each : sums_) each = k.zero();
    moves_ = any(3) == 0;
  }

  /// Returns what the sums must be.
  std::array<int, 3> describe() {
    std::vector<Step> steps = body(2);
    write(steps);
    wait();
    for (const Sum& each : sums_) k_.store(each);
    run(steps);
    return values_;
  }

 private:
  struct Step {
    enum Kind { multiply, wait, clear, copy, exchange, loop, when } kind;
    int x, y;
    std::vector<Step> body;
  };

  int any(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  std::vector<Step> body(int depth) {
    std::vector<Step> out;
    for (int i = 0, n = 2 + any(4); i < n; ++i) {
      const int kind = any(moves_ ? 10 : 8);
      Step step{Step::multiply, any(3), any(3), {}};
      if (kind == 3) step.kind = Step::wait;
      if (kind == 4) step.kind = Step::clear;
      if (kind == 8) step.kind = Step::copy;
      if (kind == 9) step.kind = Step::exchange;
      if (kind > 4 && kind < 8 && depth > 0) {
        step.kind = kind == 5 ? Step::when : Step::loop;
        step.body = body(depth - 1);
      }
      out.push_back(std::move(step));
    }
    return out;
  }

  // Nothing but a product may touch what is in flight.
  void wait() {
    for (const Sum& each : sums_) k_.wait(each);
  }

  void write(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      const Sum &x = sums_[static_cast<std::size_t>(step.x)],
                &y = sums_[static_cast<std::size_t>(step.y)];
      if (step.kind == Step::wait || step.kind == Step::clear || step.kind == Step::copy ||
          step.kind == Step::exchange)
        wait();
      if (step.kind == Step::multiply) k_.multiply(x);
      if (step.kind == Step::clear)
        for (const Variable& each : x) k_.f.set(each, k_.f.constant(f32, 0.0));
      if (step.kind == Step::copy) k_.set(x, k_.get(y));
      if (step.kind == Step::exchange) {
        const std::vector<Value> first = k_.get(x), second = k_.get(y);
        k_.set(x, second), k_.set(y, first);
      }
      if (step.kind == Step::loop) k_.loop(step.x, [&] { write(step.body); });
      if (step.kind == Step::when) k_.when(step.x, [&] { write(step.body); });
    }
  }

  void run(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      int &x = values_[static_cast<std::size_t>(step.x)],
          &y = values_[static_cast<std::size_t>(step.y)];
      if (step.kind == Step::multiply) x += added;
      if (step.kind == Step::clear) x = 0;
      if (step.kind == Step::copy) x = y;
      if (step.kind == Step::exchange) std::swap(x, y);
      if (step.kind == Step::when && (bits_ >> step.x & 1)) run(step.body);
      if (step.kind == Step::loop)
        for (int i = 0; i < step.x; ++i) run(step.body);
    }
  }

  Products& k_;
  unsigned bits_;
  std::mt19937 random_;
  bool moves_;
  std::array<Sum, 3> sums_;
  std::array<int, 3> values_{};
};

TEST(Accumulators, HoldTheirValues) {
  if (!test::engine_runs(*Target::parse("sm_90a"))) GTEST_SKIP();
  Device device = test::open_engine({.hardware = "sm_90a", .checks = Checks::all});
  constexpr unsigned programs = 300;
  unsigned named = 0;
  for (unsigned seed = 0; seed < programs; ++seed) {
    Products k;
    const unsigned bits = seed % 8;
    const std::array<int, 3> expected = Program(k, seed, bits).describe();
    const std::string ptx = emit(k.f);
    named += has_names(ptx);
    auto module = device.load(ptx);
    ASSERT_TRUE(module) << module.diags().text() << ptx;
    auto kernel = module->kernel("products");
    Buffer out = *device.allocate(4 * 3 * elements * 128);
    ASSERT_TRUE(kernel->launch({.grid = {}, .block = {128}, .dynamic_shared = 4096},
                               Arguments().add(out).add(bits)));
    const Status done = device.synchronize();
    ASSERT_TRUE(done) << done.diags().text() << ptx;
    const auto found = *out.read_all<float>();
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_EQ(found[i], static_cast<float>(expected[i / (elements * 128)]))
          << "seed " << seed << ", element " << i << ptx;
  }
  // Both kinds occur.
  EXPECT_GT(named, programs / 10);
  EXPECT_LT(named, programs - programs / 10);
}

}  // namespace
}  // namespace tartan::codegen
