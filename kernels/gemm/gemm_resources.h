// SPDX-License-Identifier: Apache-2.0
// kernels/gemm/gemm_resources.h - how a configuration of gemm() multiplies and copies, and how many
// registers and CTAs follow from that: for the kernel and for what chooses among configurations.
// Not installed.
#pragma once

#include "kernels/common/gpus.h"
#include "tartan/kernels/gemm.h"

namespace tartan::TARTAN_ABI::kernels::detail {

/// How the kernel multiplies and copies.
bool by_wgmma(const Gemm& options, const Target& target);
bool by_tensor(const Gemm& options, const Target& target);  // by tcgen05
/// Whether pairs of CTAs multiply by tcgen05: clusters whose CTAs would share B otherwise.
bool by_pairs(const Gemm& options, const Target& target);
bool by_tma(const Gemm& options, const Target& target);
/// Whether all rows of B begin on 128-byte lines.
bool begins_on_lines(const Gemm& options);
/// Whether an element of C is a sum over at least 64 of such lines.
bool has_long_sums(const Gemm& options);
/// Bytes of an access of threads that copy: of the divisor's size, at least an element.
int copied_bytes(const Gemm& options);
/// 32-bit registers of the accumulators of a thread, and those that a thread has.
int accumulators(const Gemm& options);
int thread_registers(const Gemm& options, const Target& target);
/// CTAs that a multiprocessor holds at a time, by shared memory, accumulators and threads.
int resident_ctas(const Gemm& options, const Target& target, const isa::GpuRow& gpu);
/// KernelOptions::min_blocks of gemm(): how many CTAs a multiprocessor holds at a time, by shared
/// memory and accumulators. Without that bound the assembler takes fewer registers than there are:
/// it spills some, and has fewer loads in flight. 0 with producers, which move registers.
int ctas_at_a_time(const Gemm& options, const Target& target);
/// KernelOptions::max_registers of gemm(): a bound where consumers have enough without those that
/// producers could give them, which setmaxnreg would move: with it a CTA starts with all registers
/// that fit, so that no second one does, and producers have few for the copies that they make. 0:
/// no bound.
int most_registers(const Gemm& options, const Target& target);

}  // namespace tartan::TARTAN_ABI::kernels::detail
