// SPDX-License-Identifier: Apache-2.0
// The fields of `tartan equal`, values, and tags.
#include "runtime/emulator/algebra/algebra.h"

#include <gtest/gtest.h>

#include <random>

namespace tartan::emulator {
namespace {

// As long division has it.
std::uint64_t slow(std::uint64_t a, std::uint64_t b, std::uint64_t prime) {
  return static_cast<std::uint64_t>(UInt128{a} * b % prime);
}

TEST(Field, MultipliesAsLongDivisionDoes) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t a = random() % FieldP::prime, b = random() % FieldP::prime,
                        c = random() % FieldQ::prime, d = random() % FieldQ::prime;
    ASSERT_EQ(FieldP::multiply(a, b), slow(a, b, FieldP::prime));
    ASSERT_EQ(FieldQ::multiply(c, d), slow(c, d, FieldQ::prime));
  }
  for (const std::uint64_t a : {std::uint64_t{0}, std::uint64_t{1}, FieldP::prime - 1})
    for (const std::uint64_t b : {std::uint64_t{0}, std::uint64_t{1}, FieldP::prime - 1})
      EXPECT_EQ(FieldP::multiply(a, b), slow(a, b, FieldP::prime));
}

TEST(Field, ReducesSumsOfThirtyTwoProducts) {
  constexpr std::uint64_t largest = FieldP::prime - 1;
  UInt128 sum = largest;
  for (int i = 0; i < 32; ++i) sum += UInt128{largest} * largest;
  EXPECT_EQ(FieldP::reduce(sum), static_cast<std::uint64_t>(sum % FieldP::prime));
}

TEST(Field, HasInverses) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100; ++i) {
    const Number x = variable(random(), 1.5);
    const Number one = x * inverse(x);
    EXPECT_EQ(one.p, 1u);
    EXPECT_EQ(one.q, 1u);
  }
  EXPECT_EQ(FieldP::invert(0), 0u);
}

TEST(Field, MapsBinaryFractionsExactly) {
  const Number third = number_of(0.75), four = number_of(4.0);
  EXPECT_EQ((third * four).p, 3u);
  EXPECT_EQ((third * four).q, 3u);
  EXPECT_EQ((number_of(-0x1p-1074) * number_of(0x1p537) * number_of(0x1p537)).p, FieldP::prime - 1);
  EXPECT_EQ(number_of(std::int64_t{-5}).p, FieldP::prime - 5);
  EXPECT_EQ((number_of(0.1) + number_of(-0.1)).p, 0u);
}

TEST(Field, TurnsSumsIntoProducts) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100; ++i) {
    const Number x = variable(random(), 1), y = variable(random(), 2);
    EXPECT_EQ(exp2(x + y).p, (exp2(x) * exp2(y)).p);
    EXPECT_EQ((exp2(x) * exp2(-x)).p, 1u);
  }
  EXPECT_EQ(exp2(number_of(10.0)).p, 1024u);
  const Number half = exp2(number_of(0.5));
  EXPECT_EQ((half * half).p, 2u);
}

TEST(Field, HasMultiplicativeRoots) {
  const Number x = variable(1, 3), y = variable(2, 5);
  EXPECT_EQ((square_root(x) * square_root(y)).p, square_root(x * y).p);
  const std::uint64_t square = (square_root(x) * square_root(x)).p;
  EXPECT_TRUE(square == x.p || square == (-x).p);
}

TEST(Field, RootsOfSquaresAreMagnitudes) {
  for (std::uint64_t key = 0; key < 50; ++key) {
    const Number x = variable(key, key % 2 ? 3 : -3), y = variable(key + 1000, 5);
    const Number magnitude = x.real < 0 ? -x : x;
    EXPECT_EQ(square_root(x * x).p, magnitude.p);
    EXPECT_EQ(square_root(x * x).q, magnitude.q);
    EXPECT_EQ(square_root(x * x * y * y).p, (magnitude * y).p);
  }
}

TEST(Values, FollowArithmetic) {
  Values values;
  const Ref a = values.input(1, 0.5, Type::f32), b = values.input(2, -2, Type::f32),
            c = values.input(3, 7, Type::f32);
  const auto image = [&](Ref ref) { return values[ref].number.p; };
  EXPECT_EQ(image(values.product(a, values.sum(b, c))),
            image(values.sum(values.product(c, a), values.product(b, a))));
  EXPECT_EQ(image(values.fused(a, b, c)), image(values.sum(values.product(a, b), c)));
  EXPECT_EQ(image(values.product(values.quotient(a, b), b)), image(a));
  EXPECT_EQ(image(values.apply(Function::magnitude, b)), image(values.apply(Function::negate, b)));
  EXPECT_EQ(values.extremum(a, b, true), a);
  EXPECT_EQ(values.extremum(a, b, false), b);
  EXPECT_EQ(image(values.apply(Function::lg2, a)), image(values.apply(Function::lg2, a)));
  EXPECT_NE(image(values.apply(Function::lg2, a)), image(values.apply(Function::sine, a)));
}

TEST(Values, KnowExactConstants) {
  Values values;
  const auto image = [&](Ref ref) { return values[ref].number.p; };
  EXPECT_EQ(image(values.apply(Function::rsqrt, values.constant(64.0))),
            image(values.constant(0.125)));
  EXPECT_EQ(image(values.apply(Function::root, values.constant(9.0))), image(values.constant(3.0)));
  EXPECT_EQ(image(values.apply(Function::lg2, values.constant(8.0))), image(values.constant(3.0)));
  EXPECT_EQ(image(values.apply(Function::exp2, values.constant(-2.0))),
            image(values.constant(0.25)));
}

TEST(Values, LetInfinitiesSteer) {
  Values values;
  const Ref x = values.input(1, 0.5, Type::f32), least = values.constant(-HUGE_VAL);
  EXPECT_EQ(values.extremum(x, least, true), x);
  const Ref nothing = values.apply(Function::exp2, values.sum(x, least));
  EXPECT_EQ(values[nothing].kind, Value::Kind::number);
  EXPECT_EQ(values[nothing].number.p, 0u);
  EXPECT_EQ(values[values.product(values.zero(), least)].kind, Value::Kind::beyond);
  const Ref masked = values.apply(Function::exp2, values.sum(x, values.constant(-1e30)));
  EXPECT_EQ(values[masked].number.p, 0u);
}

TEST(Values, StayUndecided) {
  Values values;
  const Ref x = values.input(1, 0.5, Type::f32), lost = values.undecided(7, "why");
  EXPECT_EQ(values.fused(x, lost, x), lost);
  EXPECT_EQ(values.extremum(x, lost, true), lost);
  EXPECT_EQ(values.apply(Function::exp2, lost), lost);
  EXPECT_EQ(values.reasons()[values[lost].number.p].line, 7);
}

TEST(Tags, MoveAcrossPages) {
  TagMemory memory;
  std::vector<std::byte> room(3 * 4096);
  std::vector<Tag> tags(5000), back(5000);
  for (std::size_t i = 0; i < tags.size(); ++i) tags[i] = static_cast<Tag>(16 * (i + 1));
  memory.store(room.data() + 100, tags.data(), tags.size());
  memory.copy(room.data() + 104, room.data() + 100, tags.size());  // onto itself, farther up
  memory.load(room.data() + 104, back.data(), back.size());
  EXPECT_EQ(back, tags);
  memory.clear(room.data() + 200, 5000);
  memory.load(room.data() + 200, back.data(), back.size());
  EXPECT_EQ(back, std::vector<Tag>(5000));
  memory.load(room.data() + 104, back.data(), 96);
  EXPECT_EQ(back[95], tags[95]);
}

TEST(Tags, SayWhichPartOfWhat) {
  for (const std::uint32_t size : {1u, 2u, 4u, 8u})
    for (std::uint32_t part = 0; part < size; ++part) {
      const Tag tag = tag_of(12345, size, part);
      EXPECT_TRUE(is_valued(tag));
      EXPECT_EQ(ref_of(tag), 12345u);
      EXPECT_EQ(size_of_element(tag), size);
      EXPECT_EQ(part_of(tag), part);
    }
  EXPECT_TRUE(is_input(input_tag(0)));
  EXPECT_EQ(input_byte(input_tag(77)), 77u);
}

TEST(Algebra, ReadsABrainFloatWhereverItLies) {
  Algebra algebra;
  algebra.add_input(9, 0, 8, false);
  const std::uint16_t bits = 0x3F80;
  const Tag narrow[] = {input_tag(2), input_tag(3)};
  const Ref value = algebra.read(nullptr, narrow, &bits, Type::bf16);
  const std::uint32_t wide_bits = 0x3F800000;
  const Tag wide[] = {0, 0, input_tag(2), input_tag(3)};
  EXPECT_EQ(algebra.read(nullptr, wide, &wide_bits, Type::f32), value);
  Tag single[4];
  algebra.write(single, value, Type::f32);
  const Ref back = algebra.read(nullptr, single + 2, &bits, Type::bf16);  // cut off
  EXPECT_EQ(algebra.values[back].number.p, algebra.values[value].number.p);
}

TEST(Algebra, DoesNotTakeHalfAValue) {
  Algebra algebra;
  Tag tags[4];
  algebra.write(tags, algebra.values.input(1, 0.5, Type::f32), Type::f32);
  const std::uint32_t bits = 0x3F000000;
  tags[1] = 0;
  const Ref torn = algebra.read(nullptr, tags, &bits, Type::f32);
  EXPECT_EQ(algebra.values[torn].kind, Value::Kind::undecided);
  const Ref half = algebra.read(nullptr, tags + 2, &bits, Type::f16);
  EXPECT_EQ(algebra.values[half].kind, Value::Kind::undecided);
}

}  // namespace
}  // namespace tartan::emulator
