// SPDX-License-Identifier: Apache-2.0
#include "runtime/buffer_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/support/counted.h"

namespace tartan::TARTAN_ABI::detail {

std::string index_text(const std::vector<std::uint64_t>& shape, std::uint64_t element) {
  std::vector<std::uint64_t> indices(shape.size());
  std::uint64_t rest = element;
  for (std::size_t i = shape.size(); i-- > 0;) {
    indices[i] = rest % shape[i];
    rest /= shape[i];
  }
  return rest || shape.empty() ? fmt::format("{}", element)
                               : fmt::format("{}", fmt::join(indices, ","));
}

std::string shape_text(Type type, const std::vector<std::uint64_t>& shape) {
  return fmt::format("{} {}", tartan::name(type), fmt::join(shape, "x"));
}

std::string BufferName::element(std::uint64_t offset) const {
  const auto size = static_cast<std::uint64_t>(bits(type)) / 8;
  if (size == 0) return offset ? fmt::format("{}+{}", name, offset) : name;
  const std::string at = fmt::format("{}[{}]", name, index_text(shape, offset / size));
  return offset % size ? fmt::format("{} (byte {})", at, offset % size) : at;
}

std::string BufferName::extent() const {
  const auto size = static_cast<std::uint64_t>(bits(type)) / 8;
  if (size == 0) return counted(bytes, "byte");
  return fmt::format("{}, {}", counted(bytes / size, "element"),
                     shape.empty() ? std::string(tartan::name(type)) : shape_text(type, shape));
}

}  // namespace tartan::TARTAN_ABI::detail
