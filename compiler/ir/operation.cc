// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/operation.h"

#include <iterator>

namespace tartan::TARTAN_ABI::codegen {
namespace {

using enum OperationKind;

constexpr OperationRow rows[] = {
    {param, "param", Effect::frame, false},
    {pointer_param, "pointer_param", Effect::frame, false},
    {add_param, "add_param", Effect::frame, false},
    {add_pointer_param, "add_pointer_param", Effect::frame, false},
    {add_tensor_map, "add_tensor_map", Effect::frame, false},
    {special, "special", Effect::none, false},
    {constant, "constant", Effect::none, true},
    {real_constant, "real_constant", Effect::none, true},
    {undefined, "undefined", Effect::none, true},
    {add, "add", Effect::none, true},
    {subtract, "subtract", Effect::none, true},
    {multiply, "multiply", Effect::none, true},
    {divide, "divide", Effect::none, true},
    {remainder, "remainder", Effect::none, true},
    {bit_and, "and", Effect::none, true},
    {bit_or, "or", Effect::none, true},
    {bit_xor, "xor", Effect::none, true},
    {shift_left, "shift_left", Effect::none, true},
    {shift_right, "shift_right", Effect::none, true},
    {minimum, "minimum", Effect::none, false},
    {maximum, "maximum", Effect::none, false},
    {fma, "fma", Effect::none, false},
    {negate, "negate", Effect::none, true},
    {absolute, "absolute", Effect::none, false},
    {floor, "floor", Effect::none, false},
    {approximate, "approximate", Effect::none, false},
    {compare, "compare", Effect::none, true},
    {select, "select", Effect::none, true},
    {convert, "convert", Effect::none, true},
    {convert_pair, "convert_pair", Effect::none, false},
    {bitcast, "bitcast", Effect::none, true},
    {pack, "pack", Effect::none, true},
    {unpack, "unpack", Effect::none, true},
    {offset, "offset", Effect::none, true},
    {constant_offset, "constant_offset", Effect::none, true},
    {shared, "shared", Effect::frame, true},
    {dynamic_shared, "dynamic_shared", Effect::frame, true},
    {shared_address, "shared_address", Effect::none, true},
    {global_address, "global_address", Effect::none, true},
    {shared_of_block, "shared_of_block", Effect::none, false},
    {shared_pointer, "shared_pointer", Effect::none, true},
    {load, "load", Effect::reads, false},
    {load_if, "load_if", Effect::reads, false},
    {load_vector, "load_vector", Effect::reads, false},
    {store, "store", Effect::acts, false},
    {store_vector, "store_vector", Effect::acts, false},
    {copy_async, "copy_async", Effect::acts, false},
    {copy_async_commit, "copy_async_commit", Effect::acts, false},
    {copy_async_wait, "copy_async_wait", Effect::acts, false},
    {copy_async_arrive, "copy_async_arrive", Effect::acts, false},
    {mbarrier_init, "mbarrier_init", Effect::acts, false},
    {mbarrier_init_fence, "mbarrier_init_fence", Effect::acts, false},
    {mbarrier_expect, "mbarrier_expect", Effect::acts, false},
    {mbarrier_arrive, "mbarrier_arrive", Effect::acts, false},
    {mbarrier_arrive_if, "mbarrier_arrive_if", Effect::acts, false},
    {mbarrier_arrive_in_block, "mbarrier_arrive_in_block", Effect::acts, false},
    {mbarrier_arrive_in_block_if, "mbarrier_arrive_in_block_if", Effect::acts, false},
    {mbarrier_wait, "mbarrier_wait", Effect::acts, false},
    {cluster_mbarrier_arrive, "cluster_mbarrier_arrive", Effect::acts, false},
    {cluster_mbarrier_wait, "cluster_mbarrier_wait", Effect::acts, false},
    {prefetch_tensor_map, "prefetch_tensor_map", Effect::acts, false},
    {tensor_load, "tensor_load", Effect::acts, false},
    {pixels_load, "pixels_load", Effect::acts, false},
    {tensor_store, "tensor_store", Effect::acts, false},
    {bulk_commit, "bulk_commit", Effect::acts, false},
    {bulk_wait_read, "bulk_wait_read", Effect::acts, false},
    {proxy_fence, "proxy_fence", Effect::acts, false},
    {elect, "elect", Effect::exchange, false},
    {set_max_registers, "set_max_registers", Effect::acts, false},
    {variable, "variable", Effect::frame, false},
    {get, "get", Effect::variable, false},
    {set, "set", Effect::variable, false},
    {if_then, "if", Effect::structure, false},
    {if_else, "if_else", Effect::structure, false},
    {for_range, "for", Effect::structure, false},
    {while_loop, "while", Effect::structure, false},
    {mark, "mark", Effect::structure, false},
    {by_role, "by_role", Effect::structure, false},
    {if_of_role, "if_of_role", Effect::structure, false},
    {split, "split", Effect::structure, false},
    {barrier, "barrier", Effect::acts, false},
    {barrier_of_some, "barrier_of_some", Effect::acts, false},
    {cluster_barrier, "cluster_barrier", Effect::acts, false},
    {warp_sync, "warp_sync", Effect::exchange, false},
    {shuffle_xor, "shuffle_xor", Effect::exchange, false},
    {shuffle, "shuffle", Effect::exchange, false},
    {matrix, "matrix", Effect::acts, false},
    {warpgroup_product, "warpgroup_product", Effect::acts, false},
    {warpgroup_wait, "warpgroup_wait", Effect::acts, false},
    {statement, "statement", Effect::acts, false},
    {pure_statement, "pure_statement", Effect::none, false},
    {print, "print", Effect::acts, false},
    {fail_assertion, "fail_assertion", Effect::acts, false},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(rows); ++i)
    if (rows[i].kind != static_cast<OperationKind>(i)) return false;
  return rows[std::size(rows) - 1].kind == fail_assertion;
}
static_assert(in_order(), "each kind of operation has its row");

}  // namespace

const OperationRow& row_of(OperationKind kind) { return rows[static_cast<std::size_t>(kind)]; }

}  // namespace tartan::TARTAN_ABI::codegen
