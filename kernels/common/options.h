// SPDX-License-Identifier: Apache-2.0
// kernels/common/options.h - the options of built-in kernels, a row for each member of a struct.
// All that knows an option by name or asks for all of them reads these rows: cache keys (keys.h),
// files of tune(), the command's options and help, what tuned() keeps of them, the benchmarks.
//
//   each_member([](const auto& row, const int& number) { ... row.word ... }, gemm);
//
// A new option is a member of its struct and a row in options.cc: without a row that does not
// compile.
#pragma once

#include <fmt/format.h>

#include <array>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "tartan/kernels/attention.h"
#include "tartan/kernels/attention_backward.h"
#include "tartan/kernels/block_scaled.h"
#include "tartan/kernels/decode.h"
#include "tartan/kernels/delta_rule.h"
#include "tartan/kernels/gate.h"
#include "tartan/kernels/gemm.h"
#include "tartan/kernels/k_grouped_gemm.h"
#include "tartan/kernels/mixed_gemm.h"
#include "tartan/kernels/mla_decode.h"
#include "tartan/kernels/scaled_gemm.h"
#include "tartan/kernels/small_products.h"

namespace tartan::TARTAN_ABI::kernels::detail {

/// Whether a member is part of the problem or of the schedule, which tuned() chooses where the
/// caller does not give it.
enum class Chosen : std::uint8_t {
  never,   // the problem
  kept,    // the schedule, but tuned() leaves it as it is
  put,     // the schedule: any configuration that tuned() considers may have another value
  sought,  // the same, where none that tuned() considers has the given value
  shape    // the schedule: the given value must be that of a configuration that tuned() considers
};

/// The values that an option may have; what is not refused here, the kernel refuses.
struct Legal {
  static constexpr int any = std::numeric_limits<int>::max();
  int least = -any - 1, most = any;  // of a number; of Sizes: of their product
  TypeSet types = {};                // of a type; empty: each that the kernel takes
};

/// Members that are one word: "128x64x32". Whether it has the third, which otherwise follows from
/// other options, or is 1.
enum class Third : std::uint8_t { given, follows, one };
template <typename Options>
struct Sizes {
  int Options::*m;
  int Options::*n;
  int Options::*k;
  Third third;
  std::string_view expected;  // in messages
};

/// Two members that one word sets, where they have words of their own, too.
template <typename Options>
struct Both {
  Type Options::*a;
  Type Options::*b;
};

template <typename Options>
using Member =
    std::variant<int Options::*, bool Options::*, Type Options::*, Major Options::*,
                 isa::BitOp Options::*, isa::Kind Options::*, kernels::Activation Options::*,
                 kernels::Grouping Options::*, kernels::Softcap Options::*, Sizes<Options>,
                 Both<Options>, Tile Options::*, kernels::Epilogue Options::*>;

constexpr bool is_chosen(Chosen by) { return by != Chosen::never && by != Chosen::kept; }

template <typename Options>
struct OptionRow {
  std::string_view word;  // "cluster-columns"; empty: callers cannot give it by name
  Member<Options> member;
  Legal legal = {};
  Chosen chosen = Chosen::never;
  std::string_view help = {};  // of a word that has none yet
};

/// The rows of a struct; those of Tile and Epilogue are in rows of their own.
template <typename Options>
std::span<const OptionRow<Options>> options_of();

/// The words of an enumeration's values; a value without one cannot be given.
template <typename Enum>
struct Named {
  std::string_view name;
  Enum value;
};
constexpr auto names_of(Major) {
  return std::to_array<Named<Major>>({{"row", Major::row}, {"col", Major::col}});
}
constexpr auto names_of(isa::BitOp) {
  return std::to_array<Named<isa::BitOp>>(
      {{"xor", isa::BitOp::xor_popc}, {"and", isa::BitOp::and_popc}});
}
constexpr auto names_of(isa::Kind) {
  return std::to_array<Named<isa::Kind>>({{"mxf8f6f4", isa::Kind::mxf8f6f4},
                                          {"mxf4", isa::Kind::mxf4},
                                          {"mxf4nvf4", isa::Kind::mxf4nvf4}});
}
constexpr auto names_of(kernels::Activation) {
  using kernels::Activation;
  return std::to_array<Named<Activation>>({{"relu", Activation::relu},
                                           {"gelu", Activation::gelu},
                                           {"silu", Activation::silu},
                                           {"sigmoid", Activation::sigmoid}});
}
constexpr auto names_of(kernels::Grouping) {
  using kernels::Grouping;
  return std::to_array<Named<Grouping>>({{"none", Grouping::none},
                                         {"contiguous", Grouping::contiguous},
                                         {"masked", Grouping::masked}});
}
constexpr auto names_of(kernels::Softcap) {
  using kernels::Softcap;
  return std::to_array<Named<Softcap>>(
      {{"none", Softcap::none}, {"exp", Softcap::by_exp}, {"tanh", Softcap::by_tanh}});
}

/// Members of an object that are one word, as a visitor of each_member() gets them.
template <typename Number>
struct SizesOf {
  std::array<Number*, 3> each;
  Third third;
  std::string_view expected;

  template <typename Other>
  bool operator==(const SizesOf<Other>& other) const {
    return *each[0] == *other.each[0] && *each[1] == *other.each[1] && *each[2] == *other.each[2];
  }
};
struct BothOf {
  Type &a, &b;
};

template <typename Object, typename Options, typename Value>
auto& member_of(Object& object, Value Options::*member) {
  return object.*member;
}
template <typename Object, typename Options>
auto member_of(Object& object, const Sizes<Options>& sizes) {
  using Number = std::conditional_t<std::is_const_v<Object>, const int, int>;
  return SizesOf<Number>{
      {&(object.*sizes.m), &(object.*sizes.n), &(object.*sizes.k)}, sizes.third, sizes.expected};
}

/// Assigns a member as a visitor gets it.
template <typename To, typename From>
void assign(To& to, const From& from) {
  if constexpr (std::is_same_v<To, SizesOf<int>>)
    for (std::size_t i = 0; i < 3; ++i) *to.each[i] = *from.each[i];
  else to = from;
}

/// A value as words have it: "bf16", "col", "128x64x32".
inline std::string word_of(Type type) { return std::string(name(type)); }
template <typename Enum>
std::string word_of(Enum value) {
  for (const auto& each : names_of(value))
    if (each.value == value) return std::string(each.name);
  return {};
}
template <typename Number>
std::string word_of(const SizesOf<Number>& sizes) {
  const auto& [m, n, k] = sizes.each;
  const bool two = sizes.third == Third::one && *k == 1;
  return fmt::format("{}x{}{}", *m, *n, two ? "" : fmt::format("x{}", *k));
}

/// Calls `visit` with each row and its member of each object, and for Tile and Epilogue with their
/// rows and members. `words`: as words name them, that is, with an Epilogue as a whole, and Both.
template <bool words = false, typename Visit, typename Object, typename... Others>
void each_member(const Visit& visit, Object& object, Others&... others) {
  using Options = std::remove_const_t<Object>;
  for (const OptionRow<Options>& row : options_of<Options>())
    std::visit(
        [&](const auto& member) {
          using Of = std::decay_t<decltype(member)>;
          constexpr bool tile = std::is_same_v<Of, Tile Options::*>,
                         epilogue = std::is_same_v<Of, kernels::Epilogue Options::*>;
          if constexpr (std::is_same_v<Of, Both<Options>>) {
            if constexpr (words) {
              BothOf both{object.*member.a, object.*member.b};
              visit(row, both);
            }
          } else if constexpr (tile || (epilogue && !words)) {
            each_member<words>(visit, object.*member, others.*member...);
          } else {
            auto&& first = member_of(object, member);
            visit(row, first, member_of(others, member)...);
          }
        },
        row.member);
}

}  // namespace tartan::TARTAN_ABI::kernels::detail
