// SPDX-License-Identifier: Apache-2.0
#include "tartan/kernels/gate.h"

#include <fmt/format.h>

#include "kernels/common/epilogue.h"
#include "kernels/common/keys.h"

namespace tartan::TARTAN_ABI::kernels {

static Kernel described_gate(const Gate& options) {
  constexpr int threads = 256;
  return kernel("gate", {.block = threads}, [=](Builder& k) {
    const Type type = options.type;
    if (!k.require(TypeSet{f16, bf16, f32}.has(type),
                   fmt::format("unsupported type {}: expected f16, bf16 or f32", name(type))))
      return;
    const bool packed = bits(type) == 16;  // two elements in a word
    const int words_of_thread = gate_elements(type) / threads / (packed ? 2 : 1);
    const Type word = packed ? u32 : type;
    const auto count = k.param("count", u32, packed ? 2 : 1), words = packed ? count / 2 : count;
    auto gates = k.global("gate", word, row_major(1, words)),
         ups = k.global("up", word, row_major(1, words)),
         out = k.global("out", word, row_major(1, words));
    const auto product = [&](const Scalar& gate, const Scalar& up) {
      const Scalar x = k.convert(gate, f32);
      return k.convert(detail::activated(k, options.activation, x) * k.convert(up, f32), type);
    };
    const Scalar first = k.block_x() * (threads * words_of_thread) + k.thread();
    const auto at = [&](int i) { return first + i * threads; };
    std::vector<Scalar> gate, up;
    for (int i = 0; i < words_of_thread; ++i) {
      const Scalar word = at(i);
      gate.push_back(k.read_if(gates, 0, word, word < words));
      up.push_back(k.read_if(ups, 0, word, word < words));
    }
    for (int i = 0; i < words_of_thread; ++i) {
      const auto number = static_cast<std::size_t>(i);
      k.when(at(i) < words, [&] {
        if (!packed) return k.write(out, 0, at(i), product(gate[number], up[number]));
        const auto [gate_low, gate_high] = k.halves(gate[number], type);
        const auto [up_low, up_high] = k.halves(up[number], type);
        k.write(out, 0, at(i), k.word(product(gate_low, up_low), product(gate_high, up_high)));
      });
    }
  });
}

Kernel gate(const Gate& options) { return described_gate(options).keyed(key_of(options)); }

}  // namespace tartan::TARTAN_ABI::kernels
