// SPDX-License-Identifier: Apache-2.0
// Layouts and their algebra against results printed in CuTe's documentation, and against their
// definitions by brute force.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "tartan/isa/layout_algebra.h"

namespace tartan {
namespace {

NestedLayout L(std::string_view text) {
  const auto layout = NestedLayout::parse(text);
  EXPECT_TRUE(layout) << layout.diags().text();
  return layout ? *layout : NestedLayout();
}

Tiler T(std::string_view text) {
  const auto tiler = parse_tiler(text);
  EXPECT_TRUE(tiler) << tiler.diags().text();
  return tiler ? *tiler : Tiler();
}

std::string text(const Result<NestedLayout>& layout) {
  return layout ? layout->text() : layout.diags()[0].message;
}

std::string complaint(std::string_view layout) {
  const auto read = NestedLayout::parse(layout);
  return read ? "fine" : read.diags()[0].message;
}

TEST(NestedLayout, TextRoundTrip) {
  for (const char* each : {"8:1", "(8,4):(1,8)", "((8,2),4):((1,64),16)", "(4):(2)",
                           "((2,(3,4)),5):((1,(2,6)),24)", "(8,64):(64,1) swizzle<3,3,3>"})
    EXPECT_EQ(L(each).text(), each);
  EXPECT_EQ(L("((2,2),4)").text(), "((2,2),4):((1,2),4)");
  EXPECT_EQ(L("(_4,(_2,_3)):(_1,(_4,_8))").text(), "(4,(2,3)):(1,(4,8))");
  EXPECT_EQ(L(" ( 4 , 2 ) : ( 1 , 4 ) ").text(), "(4,2):(1,4)");
  EXPECT_EQ(NestedLayout::tuple({{8, 1}, {4, 16}}), L("(8,4):(1,16)"));
}

TEST(NestedLayout, RejectsInvalidText) {
  EXPECT_EQ(complaint("(8,4):(1"), "(8,4):(1: column 9: expected , or ), found the end");
  EXPECT_EQ(complaint("(8,x)"), "(8,x): column 4: expected an extent or (, found x");
  EXPECT_EQ(complaint("(8,4):(1,(8,2))"),
            "(8,4):(1,(8,2)): column 10: structure mismatch: the stride is a tuple of 2 where the "
            "shape has a number");
  EXPECT_EQ(complaint("(8,4):(1,2,3)"),
            "(8,4):(1,2,3): column 7: structure mismatch: the stride is a tuple of 3 where the "
            "shape has a tuple of 2");
  EXPECT_EQ(complaint("(8,0):(1,2)"),
            "(8,0):(1,2): column 1: illegal extent: expected at least 1, found 0");
  EXPECT_EQ(complaint("8:-1"), "8:-1: column 3: expected a stride or (, found -");
  EXPECT_EQ(complaint("8:1 swizzle<3,3>"),
            "8:1 swizzle<3,3>: column 16: expected swizzle<B,M,S>, found >");
  EXPECT_EQ(complaint("8:1 swizzle<3,3,1>"),
            "8:1 swizzle<3,3,1>: column 5: illegal swizzle: swizzle<B,M,S> requires S >= B and at "
            "most 30 bits in total");
  EXPECT_EQ(complaint("8:1 more"), "8:1 more: column 5: expected swizzle<B,M,S>, found m");
  EXPECT_EQ(complaint(""), ": column 1: expected an extent or (, found the end");
  EXPECT_EQ(complaint("()"), "(): column 2: expected an extent or (, found )");
  EXPECT_EQ(complaint("99999999999999999999"), "99999999999999999999: column 1: number too large");
  EXPECT_EQ(complaint("(65536,65536)"),
            "(65536,65536): column 1: too many elements: expected at most 2147483647");
  EXPECT_NE(complaint(std::string(100000, '(')).find("nesting too deep"), std::string::npos);
  EXPECT_FALSE(parse_tiler("<3:3"));
  EXPECT_FALSE(parse_tiler("3:3"));
  EXPECT_FALSE(parse_tiler("<3:3>,"));
  EXPECT_EQ(T("<3:3,(2,4):(1,8)>").size(), 2u);
}

// Any text gives a layout that prints as itself, or one diagnostic.
TEST(NestedLayout, ParsesOrRejectsAnyText) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  const std::string_view seeds[] = {"((8,2),4):((1,64),16)", "(8,64):(64,1) swizzle<3,3,3>",
                                    "((2,(3,4)),5)", "2147483647:2147483647"};
  const std::string_view letters = "((()))::,,<>_0123489 swizle-\n";
  int layouts = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text(seeds[below(4)]);
    for (std::size_t changes = 1 + below(3); changes > 0 && !text.empty(); --changes) {
      const std::size_t at = below(text.size());
      const char letter = letters[below(letters.size())];
      if (below(3) == 0) text.erase(at, 1 + below(2));
      else if (below(2) == 0) text.insert(at, 1, letter);
      else text[at] = letter;
    }
    const auto layout = NestedLayout::parse(text);
    if (!layout) {
      ++refused;
      ASSERT_EQ(layout.diags().size(), 1u) << text;
      continue;
    }
    ++layouts;
    ASSERT_EQ(layout->problem(), "") << text;
    ASSERT_EQ(L(layout->text()), *layout) << text;
  }
  EXPECT_GT(layouts, 2000);
  EXPECT_GT(refused, 2000);
}

TEST(NestedLayout, Measures) {
  const NestedLayout layout = L("((2,4),3):((1,8),2)");
  EXPECT_EQ(layout.rank(), 2u);
  EXPECT_EQ(layout.depth(), 2);
  EXPECT_EQ(layout.size(), 24);
  EXPECT_EQ(layout.cosize(), 30);
  EXPECT_EQ(layout(13), 19);
  EXPECT_EQ(layout({5, 1}), 1 + 16 + 2);
  EXPECT_EQ(L("7:3").depth(), 0);
  EXPECT_EQ(L("(4,1):(1,7)")(5), 1 + 7);  // runs on in the last mode
  EXPECT_EQ(L("(8,64):(64,1) swizzle<3,3,3>")({1, 0}), 64 + 8);
  EXPECT_EQ(L("(8,64):(64,1) swizzle<3,3,3>")({3, 8}), 3 * 64 + (1 ^ 3) * 8);
}

struct Case {
  const char *left, *right, *expected;
};

TEST(LayoutAlgebra, Coalesce) {
  for (const auto& [layout, axes, expected] :
       {Case{"(2,(1,6)):(1,(6,2))", "(2,6):(1,2)", "12:1"},
        Case{"(4,(2,1)):(1,(4,9))", "(4,2):(1,4)", "8:1"},
        Case{"(2,1,3):(5,1,10)", "(2,1,3):(5,0,10)", "6:5"},
        Case{"(1,1):(3,4)", "(1,1):(0,0)", "1:0"},
        Case{"((8,8),(8,8)):((8,64),(1,512))", "(64,(8,8)):(8,(1,512))", "(64,8,8):(8,1,512)"},
        Case{"(4,4):(4,1)", "(4,4):(4,1)", "(4,4):(4,1)"},
        Case{"(4,3):(0,0)", "(4,3):(0,0)", "12:0"}}) {
    EXPECT_EQ(coalesce(L(layout)).text(), expected);
    EXPECT_EQ(coalesce_axes(L(layout)).text(), axes);
  }
}

TEST(LayoutAlgebra, Composition) {
  for (const auto& [a, b, expected] :
       {Case{"(6,2):(8,2)", "(4,3):(3,1)", "((2,2),3):((24,2),8)"},
        Case{"20:2", "(5,4):(4,1)", "(5,4):(8,2)"},
        Case{"(10,2):(16,4)", "(5,4):(1,5)", "(5,(2,2)):(16,(80,4))"},
        Case{"(4,2):(1,16)", "8:1", "(4,2):(1,16)"}, Case{"8:3", "4:2", "4:6"},
        Case{"(4,2,8):(3,12,97)", "3:3", "3:9"},  // whole steps within one mode
        Case{"(8,8):(3,97)", "3:3", "3:9"},
        Case{"(3,6,2,8):(5,16,93,190)", "16:9", "(2,2,4):(48,93,190)"},
        Case{"(4,6,8):(2,3,5)", "6:12", "(2,3):(9,5)"},
        Case{"(4,3):(1,8)", "(2,2):(0,2)", "(2,2):(0,2)"},
        Case{"4:1", "4:2", "4:2"},  // runs on in the last mode
        Case{"(8,64):(64,1) swizzle<3,3,3>", "8:8", "8:1 swizzle<3,3,3>"}})
    EXPECT_EQ(text(composition(L(a), L(b))), expected) << a << " o " << b;
  EXPECT_EQ(text(composition(L("(12,(4,8)):(59,(13,1))"), T("<3:4,8:2>"))),
            "(3,(2,4)):(236,(26,1))");
  EXPECT_EQ(text(with_shape(L("(4,6):(6,1)"), L("(2,12)"))), "(2,(2,6)):(6,(12,1))");
}

TEST(LayoutAlgebra, Complement) {
  for (const auto& [layout, expected] :
       std::initializer_list<std::pair<const char*, const char*>>{{"4:1", "6:4"},
                                                                  {"6:4", "4:1"},
                                                                  {"(4,6):(1,4)", "1:0"},
                                                                  {"4:2", "(2,3):(1,8)"},
                                                                  {"(2,4):(1,6)", "3:2"},
                                                                  {"(2,2):(1,6)", "(3,2):(2,12)"},
                                                                  {"(2,2):(6,1)", "(3,2):(2,12)"},
                                                                  {"1:0", "24:1"},
                                                                  {"(4,5):(1,0)", "6:4"}})
    EXPECT_EQ(text(complement(L(layout), 24)), expected) << layout;
  EXPECT_EQ(text(complement(L("4:1"), 10)), "3:4");  // covers 12
}

TEST(LayoutAlgebra, Divide) {
  EXPECT_EQ(text(logical_divide(L("(4,2,3):(2,1,8)"), L("4:2"))), "((2,2),(2,3)):((4,1),(2,8))");
  const NestedLayout layout = L("(9,(4,8)):(59,(13,1))");
  const Tiler tiler = T("<3:3,(2,4):(1,8)>");
  EXPECT_EQ(text(logical_divide(layout, tiler)),
            "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))");
  EXPECT_EQ(text(zipped_divide(layout, tiler)), "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))");
  EXPECT_EQ(text(tiled_divide(layout, tiler)), "((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))");
  EXPECT_EQ(text(zipped_divide(L("(64,32,3):(32,1,2048)"), T("<16,8>"))),
            "((16,8),(4,4,3)):((32,1),(512,8,2048))");
  EXPECT_EQ(text(logical_divide(L("16:1 swizzle<1,1,2>"), L("4"))), "(4,4):(1,4) swizzle<1,1,2>");
}

TEST(LayoutAlgebra, Product) {
  EXPECT_EQ(text(logical_product(L("(2,2):(4,1)"), L("6:1"))), "((2,2),(2,3)):((4,1),(2,8))");
  EXPECT_EQ(text(logical_product(L("(2,2):(4,1)"), L("(4,2):(2,1)"))),
            "((2,2),(4,2)):((4,1),(8,2))");
  EXPECT_EQ(text(blocked_product(L("(2,5):(5,1)"), L("(3,4):(1,3)"))),
            "((2,3),(5,4)):((5,10),(1,30))");
  EXPECT_EQ(text(raked_product(L("(2,5):(5,1)"), L("(3,4):(1,3)"))),
            "((3,2),(4,5)):((10,5),(30,1))");
  EXPECT_EQ(text(blocked_product(L("(8,8):(8,1)"), L("(8,8):(8,1)"))),
            "((8,8),(8,8)):((8,512),(1,64))");
}

TEST(LayoutAlgebra, Inverse) {
  EXPECT_EQ(text(right_inverse(L("(8,4):(4,1)"))), "(4,8):(8,1)");
  EXPECT_EQ(text(right_inverse(L("(4,8):(1,4)"))), "32:1");
  EXPECT_EQ(text(right_inverse(L("(4,8):(1,5)"))), "4:1");
  EXPECT_EQ(text(right_inverse(L("4:2"))), "1:0");
  EXPECT_EQ(text(left_inverse(L("(4,8):(1,5)"))), "(5,8):(1,4)");
  EXPECT_EQ(text(left_inverse(L("(8,4):(4,1)"))), "(4,8):(8,1)");
  EXPECT_EQ(text(left_inverse(L("4:2"))), "(2,4):(0,1)");
}

TEST(LayoutAlgebra, RejectsImpossibleResults) {
  EXPECT_EQ(text(composition(L("(4,3):(1,8)"), L("6:1"))),
            "composition of (4,3):(1,8) with 6:1: 4 of 4 elements in the extent 4 do not divide "
            "the required 6");
  EXPECT_EQ(text(composition(L("(4,3):(1,8)"), L("2:6"))),
            "composition of (4,3):(1,8) with 2:6: stride 6 is not a multiple of the extent 4");
  EXPECT_EQ(text(composition(L("(4,3):(1,8)"), L("4:3"))),
            "composition of (4,3):(1,8) with 4:3: stride 3 does not divide the extent 4");
  EXPECT_EQ(text(composition(L("(4,3):(1,8)"), L("(2,2):(3,1)"))),
            "composition of (4,3):(1,8) with (2,2):(3,1): modes that together reach 4 exceed the "
            "extent 4");
  EXPECT_EQ(text(complement(L("(4,2):(1,2)"), 24)),
            "complement of (4,2):(1,2): the stride 2 is not a multiple of 4, which the smaller "
            "modes cover");
  EXPECT_EQ(text(complement(L("4:1"), 0)),
            "complement: expected a size from 1 to 2147483647, found 0");
  EXPECT_EQ(text(complement(L("16:1 swizzle<1,1,2>"), 16)),
            "complement of 16:1 swizzle<1,1,2>: the swizzle allows no result that is a layout");
  EXPECT_EQ(text(left_inverse(L("(3,2):(2,7)"))),
            "left_inverse of (3,2):(2,7): next to 3:2, the stride 7 must be a multiple of 2 and at "
            "least 6");
  EXPECT_EQ(text(left_inverse(L("2:0"))), "left_inverse of 2:0: not injective, a stride is 0");
  EXPECT_EQ(text(logical_divide(L("(4,8):(1,4)"), T("<2,2,2>"))),
            "logical_divide of (4,8):(1,4): rank mismatch: it has 2 modes, the tiler has 3");
  EXPECT_EQ(text(with_shape(L("(4,6):(6,1)"), L("(2,10)"))),
            "with_shape: (4,6):(6,1) has 24 elements, the new shape has 20");
  EXPECT_EQ(text(composition(NestedLayout(0, 1), L("4"))),
            "composition of 0:1: illegal extent: expected at least 1, found 0");
  EXPECT_FALSE(composition(NestedLayout(4, NestedLayout::limit), L("4:2")));
  EXPECT_FALSE(composition(NestedLayout::tuple({}), L("4:2")));
  EXPECT_FALSE(logical_product(L("2147483647:1"), L("2147483647:2147483647")));
}

// ---- Against the definitions.

class Random {
 public:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(engine_); }
  // Extents and strides that are often compatible.
  NestedLayout layout(int depth = 2) {
    if (depth == 0 || below(3) == 0) {
      constexpr int extents[] = {1, 2, 2, 3, 4, 4, 6, 8};
      constexpr int strides[] = {0, 1, 1, 2, 3, 4, 4, 5, 6, 8, 12, 16, 24, 32};
      return {extents[below(8)], strides[below(14)]};
    }
    std::vector<NestedLayout> modes;
    for (int i = below(3); i >= 0; --i) modes.push_back(layout(depth - 1));
    return NestedLayout::tuple(std::move(modes));
  }

 private:
  std::mt19937 engine_{20};
};

std::vector<std::int64_t> offsets(const NestedLayout& layout) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < layout.size(); ++i) out.push_back(layout(i));
  return out;
}

std::set<std::int64_t> distinct(const NestedLayout& layout) {
  const auto all = offsets(layout);
  return {all.begin(), all.end()};
}

TEST(LayoutAlgebra, CoalescedIsTheSameFunction) {
  Random random;
  int shorter = 0;
  for (int i = 0; i < 3000; ++i) {
    const NestedLayout a = random.layout(), once = coalesce(a), by_axis = coalesce_axes(a);
    ASSERT_EQ(offsets(once), offsets(a)) << a.text();
    ASSERT_EQ(coalesce(once), once) << a.text();
    ASSERT_EQ(offsets(by_axis), offsets(a)) << a.text();
    ASSERT_EQ(by_axis.rank(), a.rank()) << a.text();
    ASSERT_EQ(L(a.text()), a);
    const auto all = distinct(a);
    ASSERT_EQ(a.cosize(), *all.rbegin() + 1) << a.text();
    shorter += once.flat().size() < a.flat().size();
  }
  EXPECT_GT(shorter, 500);
}

TEST(LayoutAlgebra, CompositionComposesFunctions) {
  Random random;
  int found = 0, refused = 0;
  for (int i = 0; i < 6000; ++i) {
    NestedLayout a = random.layout();
    const NestedLayout b = random.layout();
    if (i % 4 == 0) a = a.swizzled({1, 1, 2});
    const auto r = composition(a, b);
    if (!r) {
      ++refused;
      continue;
    }
    ++found;
    ASSERT_EQ(r->size(), b.size());
    ASSERT_EQ(r->rank(), b.is_tuple() ? b.rank() : r->rank());
    for (std::int64_t k = 0; k < b.size(); ++k)
      ASSERT_EQ((*r)(k), a(b(k))) << a.text() << " o " << b.text() << " = " << r->text();
  }
  EXPECT_GT(found, 1500);
  EXPECT_GT(refused, 500);
}

TEST(LayoutAlgebra, ComplementIsDisjointOrderedAndCovers) {
  Random random;
  int found = 0;
  for (int i = 0; i < 4000; ++i) {
    const NestedLayout a = random.layout(1);
    const std::int64_t size = 1 + random.below(100);
    const auto r = complement(a, size);
    if (!r) continue;
    ++found;
    const auto places = offsets(*r);
    ASSERT_TRUE(std::is_sorted(places.begin(), places.end())) << a.text();
    std::vector<std::int64_t> all;
    for (const std::int64_t begin : places)
      for (const std::int64_t offset : distinct(a)) all.push_back(begin + offset);
    std::ranges::sort(all);
    // Each offset once, from 0 to the size or beyond.
    for (std::size_t k = 0; k < all.size(); ++k)
      ASSERT_EQ(all[k], static_cast<std::int64_t>(k)) << a.text() << " " << r->text();
    ASSERT_GE(static_cast<std::int64_t>(all.size()), size);
  }
  EXPECT_GT(found, 1000);
}

TEST(LayoutAlgebra, DividedHasEveryElementOnce) {
  Random random;
  int found = 0;
  for (int i = 0; i < 6000; ++i) {
    const NestedLayout a = random.layout(), tile = random.layout(1);
    const auto r = logical_divide(a, tile);
    if (!r) continue;
    ++found;
    ASSERT_EQ(r->rank(), 2u);
    for (std::int64_t k = 0; k < tile.size(); ++k)  // the first tile
      ASSERT_EQ((*r)({k, 0}), a(tile(k))) << a.text() << " / " << tile.text();
    if (distinct(tile).size() != static_cast<std::size_t>(tile.size()) || r->size() != a.size())
      continue;
    auto all = offsets(*r), own = offsets(a);
    std::ranges::sort(all), std::ranges::sort(own);
    ASSERT_EQ(all, own) << a.text() << " / " << tile.text();
  }
  EXPECT_GT(found, 500);
}

TEST(LayoutAlgebra, DividedAxisByAxis) {
  Random random;
  int found = 0;
  for (int i = 0; i < 6000; ++i) {
    const NestedLayout a = NestedLayout::tuple({random.layout(1), random.layout(1)});
    const Tiler tiler{NestedLayout(1 + random.below(4), 1), NestedLayout(1 + random.below(4), 1)};
    const auto logical = logical_divide(a, tiler), r = zipped_divide(a, tiler),
               flat = tiled_divide(a, tiler);
    ASSERT_EQ(bool(logical), bool(r));
    ASSERT_EQ(bool(logical), bool(flat));
    if (!r) continue;
    ++found;
    const std::int64_t rows = tiler[0].size(), cols = tiler[1].size();
    const std::int64_t down = (*r)[1][0].size(), across = (*r)[1][1].size();
    for (std::int64_t y = 0; y < rows * down; ++y)
      for (std::int64_t x = 0; x < cols * across; ++x) {
        const std::int64_t in = y % rows + x % cols * rows, which = y / rows + x / cols * down;
        ASSERT_EQ((*r)({in, which}), a({y, x})) << a.text() << " " << r->text();
        ASSERT_EQ((*flat)({in, y / rows, x / cols}), a({y, x})) << a.text() << flat->text();
        ASSERT_EQ((*logical)({y, x}), a({y, x})) << a.text() << logical->text();
      }
  }
  EXPECT_GT(found, 1000);
}

TEST(LayoutAlgebra, ProductsRepeatDisjointly) {
  Random random;
  int found = 0;
  for (int i = 0; i < 4000; ++i) {
    const NestedLayout a = random.layout(1), b = random.layout(1);
    const auto r = logical_product(a, b);
    const auto blocks = blocked_product(a, b), rakes = raked_product(a, b);
    if (!r) continue;
    ++found;
    ASSERT_TRUE(blocks && rakes);
    for (std::int64_t k = 0; k < a.size(); ++k) ASSERT_EQ((*r)({k, 0}), a(k));
    if (distinct(a).size() == static_cast<std::size_t>(a.size()) &&
        distinct(b).size() == static_cast<std::size_t>(b.size())) {
      ASSERT_EQ(distinct(*r).size(), static_cast<std::size_t>(r->size()))
          << a.text() << " x " << b.text();
    }
    ASSERT_EQ(distinct(*blocks), distinct(*r)) << a.text() << " x " << b.text();
    ASSERT_EQ(distinct(*rakes), distinct(*r)) << a.text() << " x " << b.text();
  }
  EXPECT_GT(found, 500);
}

TEST(LayoutAlgebra, Inverses) {
  Random random;
  int left = 0, right = 0;
  for (int i = 0; i < 4000; ++i) {
    const NestedLayout a = random.layout();
    const auto all = distinct(a);
    const bool injective = all.size() == static_cast<std::size_t>(a.size());
    const auto r = right_inverse(a);
    ASSERT_TRUE(r) << text(r);
    for (std::int64_t k = 0; k < r->size(); ++k) ASSERT_EQ(a((*r)(k)), k) << a.text();
    right += r->size() > 1;
    std::int64_t gap = 0;
    while (all.contains(gap)) ++gap;
    if (injective) {
      ASSERT_EQ(r->size(), gap) << a.text() << " " << r->text();
    }
    const auto l = left_inverse(a);
    if (!l) continue;
    ++left;
    ASSERT_TRUE(injective) << a.text();
    for (std::int64_t k = 0; k < a.size(); ++k) ASSERT_EQ((*l)(a(k)), k) << a.text();
  }
  EXPECT_GT(left, 500);
  EXPECT_GT(right, 500);
}

}  // namespace
}  // namespace tartan
