// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/operation.h"

#include <iterator>

namespace tartan::TARTAN_ABI::ir {
namespace {

using enum OperationKind;

constexpr OperationRow rows[] = {
    {param, "param", Effect::frame, false, Uniform::yes},
    {pointer_param, "pointer_param", Effect::frame, false, Uniform::yes},
    {add_param, "add_param", Effect::frame, false, Uniform::yes},
    {add_pointer_param, "add_pointer_param", Effect::frame, false, Uniform::yes},
    {add_tensor_map, "add_tensor_map", Effect::frame, false, Uniform::yes},
    {special, "special", Effect::none, false, Uniform::special},
    {constant, "constant", Effect::none, true, Uniform::operands},
    {real_constant, "real_constant", Effect::none, true, Uniform::operands},
    {undefined, "undefined", Effect::none, true, Uniform::operands},
    {add, "add", Effect::none, true, Uniform::operands},
    {subtract, "subtract", Effect::none, true, Uniform::operands},
    {multiply, "multiply", Effect::none, true, Uniform::operands},
    {divide, "divide", Effect::none, true, Uniform::operands},
    {remainder, "remainder", Effect::none, true, Uniform::operands},
    {bit_and, "and", Effect::none, true, Uniform::operands},
    {bit_or, "or", Effect::none, true, Uniform::operands},
    {bit_xor, "xor", Effect::none, true, Uniform::operands},
    {shift_left, "shift_left", Effect::none, true, Uniform::operands},
    {shift_right, "shift_right", Effect::none, true, Uniform::operands},
    {minimum, "minimum", Effect::none, false, Uniform::operands},
    {maximum, "maximum", Effect::none, false, Uniform::operands},
    {fma, "fma", Effect::none, false, Uniform::operands},
    {negate, "negate", Effect::none, true, Uniform::operands},
    {absolute, "absolute", Effect::none, false, Uniform::operands},
    {signum, "signum", Effect::none, false, Uniform::operands},
    {floor, "floor", Effect::none, false, Uniform::operands},
    {approximate, "approximate", Effect::none, false, Uniform::operands},
    {compare, "compare", Effect::none, true, Uniform::operands},
    {select, "select", Effect::none, true, Uniform::operands},
    {convert, "convert", Effect::none, true, Uniform::operands},
    {convert_pair, "convert_pair", Effect::none, false, Uniform::operands},
    {bitcast, "bitcast", Effect::none, true, Uniform::operands},
    {pack, "pack", Effect::none, true, Uniform::operands},
    {unpack, "unpack", Effect::none, true, Uniform::operands},
    {offset, "offset", Effect::none, true, Uniform::operands},
    {constant_offset, "constant_offset", Effect::none, true, Uniform::operands},
    {shared, "shared", Effect::frame, true, Uniform::yes},
    {dynamic_shared, "dynamic_shared", Effect::frame, true, Uniform::yes},
    {shared_address, "shared_address", Effect::none, true, Uniform::operands},
    {global_address, "global_address", Effect::none, true, Uniform::operands},
    {shared_of_block, "shared_of_block", Effect::none, false, Uniform::operands},
    {shared_pointer, "shared_pointer", Effect::none, true, Uniform::operands},
    {load, "load", Effect::reads, false, Uniform::no, 0},
    {load_if, "load_if", Effect::reads, false, Uniform::no, 1},
    {load_vector, "load_vector", Effect::reads, false, Uniform::no, 0},
    {store, "store", Effect::acts, false, Uniform::no, no_operand, 0},
    {store_vector, "store_vector", Effect::acts, false, Uniform::no, no_operand, 0},
    {copy_async, "copy_async", Effect::acts, false, Uniform::no, 1, 0},
    {copy_async_commit, "copy_async_commit", Effect::acts, false, Uniform::no},
    {copy_async_wait, "copy_async_wait", Effect::acts, false, Uniform::no},
    {copy_async_arrive, "copy_async_arrive", Effect::acts, false, Uniform::no},
    {mbarrier_init, "mbarrier_init", Effect::acts, false, Uniform::no},
    {mbarrier_init_fence, "mbarrier_init_fence", Effect::acts, false, Uniform::no},
    {mbarrier_expect, "mbarrier_expect", Effect::acts, false, Uniform::no},
    {mbarrier_arrive, "mbarrier_arrive", Effect::acts, false, Uniform::no},
    {mbarrier_arrive_if, "mbarrier_arrive_if", Effect::acts, false, Uniform::no},
    {mbarrier_arrive_in_block, "mbarrier_arrive_in_block", Effect::acts, false, Uniform::no},
    {mbarrier_arrive_in_block_if, "mbarrier_arrive_in_block_if", Effect::acts, false, Uniform::no},
    {mbarrier_wait, "mbarrier_wait", Effect::acts, false, Uniform::no},
    {cluster_mbarrier_arrive, "cluster_mbarrier_arrive", Effect::acts, false, Uniform::no},
    {cluster_mbarrier_wait, "cluster_mbarrier_wait", Effect::acts, false, Uniform::no},
    {prefetch_tensor_map, "prefetch_tensor_map", Effect::acts, false, Uniform::no},
    {tensor_load, "tensor_load", Effect::acts, false, Uniform::no, no_operand, 0},
    {pixels_load, "pixels_load", Effect::acts, false, Uniform::no, no_operand, 0},
    {tensor_store, "tensor_store", Effect::acts, false, Uniform::no, 1},
    {bulk_commit, "bulk_commit", Effect::acts, false, Uniform::no},
    {bulk_wait_read, "bulk_wait_read", Effect::acts, false, Uniform::no},
    {proxy_fence, "proxy_fence", Effect::acts, false, Uniform::no},
    {elect, "elect", Effect::exchange, false, Uniform::no},
    {set_max_registers, "set_max_registers", Effect::acts, false, Uniform::no},
    {variable, "variable", Effect::frame, false, Uniform::no},
    {get, "get", Effect::variable, false, Uniform::no},
    {set, "set", Effect::variable, false, Uniform::no},
    {if_then, "if", Effect::structure, false, Uniform::no},
    {if_else, "if_else", Effect::structure, false, Uniform::no},
    {for_range, "for", Effect::structure, false, Uniform::no},
    {while_loop, "while", Effect::structure, false, Uniform::no},
    {mark, "mark", Effect::structure, false, Uniform::no},
    {by_role, "by_role", Effect::structure, false, Uniform::no},
    {if_of_role, "if_of_role", Effect::structure, false, Uniform::no},
    {split, "split", Effect::structure, false, Uniform::no},
    {barrier, "barrier", Effect::acts, false, Uniform::no},
    {barrier_of_some, "barrier_of_some", Effect::acts, false, Uniform::no},
    {cluster_barrier, "cluster_barrier", Effect::acts, false, Uniform::no},
    {warp_sync, "warp_sync", Effect::exchange, false, Uniform::no},
    {shuffle_xor, "shuffle_xor", Effect::exchange, false, Uniform::no},
    {shuffle, "shuffle", Effect::exchange, false, Uniform::no},
    {matrix, "matrix", Effect::acts, false, Uniform::no, any_operand, any_operand},
    {warpgroup_product, "warpgroup_product", Effect::acts, false, Uniform::no, any_operand},
    {warpgroup_wait, "warpgroup_wait", Effect::acts, false, Uniform::no},
    {statement, "statement", Effect::acts, false, Uniform::no, any_operand, any_operand},
    {pure_statement, "pure_statement", Effect::none, false, Uniform::no},
    {print, "print", Effect::acts, false, Uniform::no},
    {fail_assertion, "fail_assertion", Effect::acts, false, Uniform::no},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(rows); ++i)
    if (rows[i].kind != static_cast<OperationKind>(i)) return false;
  return rows[std::size(rows) - 1].kind == fail_assertion;
}
static_assert(in_order(), "each kind of operation has its row");

}  // namespace

const OperationRow& row_of(OperationKind kind) { return rows[static_cast<std::size_t>(kind)]; }

}  // namespace tartan::TARTAN_ABI::ir
