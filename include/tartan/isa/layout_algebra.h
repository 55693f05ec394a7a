// SPDX-License-Identifier: Apache-2.0
// tartan/isa/layout_algebra.h - operations on layouts: CuTe's algebra.
//
// A layout is a function from indices to offsets, and each operation states the function of its
// result. If that function is not a layout, the operation gives a diagnostic that names the extents
// and strides that prevent it. An index beyond a layout's size continues in its last mode.
//
// In the examples, L("8:2") is what tartan::NestedLayout::parse() makes of "8:2".
#pragma once

#include "tartan/isa/nested_layout.h"

namespace tartan::TARTAN_ABI {

/// The same function of an index with as few modes as possible: modes of extent 1 are removed, and
/// modes that continue each other are merged.
///   coalesce(L("(2,(1,6)):(1,(6,2))"))               12:1
NestedLayout coalesce(const NestedLayout& layout);
/// Coalesces each axis separately: the same function of indices (i, j, ...).
///   coalesce_axes(L("(2,(1,6)):(1,(6,2))"))          (2,6):(1,2)
NestedLayout coalesce_axes(const NestedLayout& layout);

/// R(i) = a(b(i)), with b's shape: b selects elements of `a`, in b's order. `a` may have a swizzle,
/// b may not.
///   composition(L("(6,2):(8,2)"), L("(4,3):(3,1)"))  ((2,2),3):((24,2),8)
/// Fails if a step of b ends within a mode of `a` that it has not traversed evenly, as 6:1 does in
/// (4,3):(1,8), or if b's modes together leave a mode of `a`: (2,2):(3,1) reaches 4.
Result<NestedLayout> composition(const NestedLayout& a, const NestedLayout& b);
/// The same for each axis; axes beyond the tiler's stay unchanged.
///   composition(L("(12,(4,8)):(59,(13,1))"), *parse_tiler("<3:4,8:2>"))
///                                                    (3,(2,4)):(236,(26,1))
Result<NestedLayout> composition(const NestedLayout& a, const Tiler& tiler);
/// The same elements in another shape (only the extents of `shape` count), the first axis fastest.
///   with_shape(L("(4,6):(6,1)"), L("(2,12)"))        (2,(2,6)):(6,(12,1))
Result<NestedLayout> with_shape(const NestedLayout& layout, const NestedLayout& shape);

/// The offsets at which copies of the layout must begin, in ascending order, so that together they
/// cover 0 .. size - 1 exactly once (and more, if `size` is not a multiple).
///   complement(L("(2,2):(1,6)"), 24)                 (3,2):(2,12)
/// Fails if offsets of the layout coincide or interleave, as those of (4,2):(1,2). Modes of stride
/// 0 do not count.
Result<NestedLayout> complement(const NestedLayout& layout, std::int64_t size);

/// ((tile), (rest)): the element of a tile, and which tile. `tile` selects the elements of the
/// first tile, as offsets into the layout's indices.
///   logical_divide(L("(4,2,3):(2,1,8)"), L("4:2"))   ((2,2),(2,3)):((4,1),(2,8))
Result<NestedLayout> logical_divide(const NestedLayout& layout, const NestedLayout& tile);
/// The same for each axis: ((tile0, rest0), (tile1, rest1), further axes).
///   logical_divide(L("(9,(4,8)):(59,(13,1))"), *parse_tiler("<3:3,(2,4):(1,8)>"))
///                                  ((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))
Result<NestedLayout> logical_divide(const NestedLayout& layout, const Tiler& tiler);
/// The same with the modes sorted: ((tile0, tile1), (rest0, rest1, further axes)). The element of a
/// tile, and which tile.
///   zipped_divide(the same)        ((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))
Result<NestedLayout> zipped_divide(const NestedLayout& layout, const Tiler& tiler);
/// ((tile0, tile1), rest0, rest1, further axes).
///   tiled_divide(the same)         ((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))
Result<NestedLayout> tiled_divide(const NestedLayout& layout, const Tiler& tiler);

/// ((layout), (copies)): disjoint copies of the layout, in the order of `copies`.
///   logical_product(L("(2,2):(4,1)"), L("6:1"))      ((2,2),(2,3)):((4,1),(2,8))
Result<NestedLayout> logical_product(const NestedLayout& layout, const NestedLayout& copies);
/// For each axis, ((layout0, copies0), (layout1, copies1)): blocks, arranged as `copies`.
///   blocked_product(L("(2,5):(5,1)"), L("(3,4):(1,3)"))   ((2,3),(5,4)):((5,10),(1,30))
Result<NestedLayout> blocked_product(const NestedLayout& block, const NestedLayout& copies);
/// ((copies0, layout0), (copies1, layout1)): the copies interleaved.
///   raked_product(the same)                               ((3,2),(4,5)):((10,5),(30,1))
Result<NestedLayout> raked_product(const NestedLayout& block, const NestedLayout& copies);

/// R with layout(R(i)) = i: the element at offset i, from offset 0 up to the first offset without
/// an element (earlier, if offsets of the layout coincide). 1:0 if that is offset 1.
///   right_inverse(L("(8,4):(4,1)"))                  (4,8):(8,1)
Result<NestedLayout> right_inverse(const NestedLayout& layout);
/// L with L(layout(i)) = i: the element at each offset that has one.
///   left_inverse(L("(4,8):(1,5)"))                   (5,8):(1,4)
/// Fails if offsets of the layout coincide, or if a stride does not divide the next larger one, as
/// in (3,2):(2,7).
Result<NestedLayout> left_inverse(const NestedLayout& layout);

}  // namespace tartan::TARTAN_ABI
