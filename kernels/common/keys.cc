// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/keys.h"

#include <fmt/format.h>

#include "kernels/common/options.h"

namespace tartan::TARTAN_ABI::kernels {

template <typename Options>
std::string key_of(const Options& options) {
  std::string own, of_structs;
  detail::each_member(
      [&]<typename Of, typename Value>(const detail::OptionRow<Of>&, const Value& value) {
        std::string& out = std::is_same_v<Of, Options> ? own : of_structs;
        if constexpr (std::is_same_v<Value, detail::SizesOf<const int>>)
          for (const int* each : value.each) out += fmt::format("{} ", *each);
        else out += fmt::format("{} ", static_cast<int>(value));
      },
      options);
  return own + of_structs;
}

template std::string key_of(const Gemm&);
template std::string key_of(const BlockScaled&);
template std::string key_of(const ScaledGemm&);
template std::string key_of(const KGroupedGemm&);
template std::string key_of(const MixedGemm&);
template std::string key_of(const Attention&);
template std::string key_of(const AttentionBackward&);
template std::string key_of(const Decode&);
template std::string key_of(const MlaDecode&);
template std::string key_of(const DeltaRule&);
template std::string key_of(const DeltaRuleDecode&);
template std::string key_of(const SmallProducts&);
template std::string key_of(const Gate&);

}  // namespace tartan::TARTAN_ABI::kernels
