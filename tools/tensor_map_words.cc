// SPDX-License-Identifier: Apache-2.0
#include "tools/tensor_map_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>
#include <vector>

#include "compiler/support/nearest.h"
#include "tartan/isa/type.h"
#include "tools/argument_words.h"

namespace tartan::tools {
namespace {

constexpr std::string_view known_words[] = {"swizzle", "promotion", "fill",    "flush",
                                            "type",    "shape",     "strides", "offset"};

std::vector<std::uint64_t> reversed(std::vector<std::uint64_t> extents) {
  std::ranges::reverse(extents);
  return extents;
}

// The words behind the box, one after the other.
class TensorMapWords {
 public:
  Result<Json> operator()(const std::string& text) {
    std::istringstream parts(text);
    std::string buffer, box;
    std::getline(parts, buffer, ':');
    std::getline(parts, box, ':');
    const auto extents = extents_of(box);
    if (buffer.empty() || !extents)
      return wrong("expected tensormap:BUFFER:BOX, such as tensormap:x:64x32");
    out_ = {{"tensor_map", buffer}, {"box", reversed(*extents)}};
    for (std::string word; std::getline(parts, word, ':');)
      if (const Status done = add(word); !done) return done.diags();
    if (const Status done = add_layout(); !done) return done.diags();
    return out_;
  }

 private:
  static Diags wrong(std::string why) { return Diags::one("usage"_rule, {}, std::move(why)); }

  Status add(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (std::ranges::find(known_words, key) == std::end(known_words))
      return wrong(fmt::format("unknown word {}: expected one of {}{}", word,
                               fmt::join(known_words, ", "), nearest_hint(key, known_words)));
    if ((key == "flush") != value.empty())
      return wrong(fmt::format("{}: expected {}", word, key == "flush" ? "flush" : key + "=..."));
    if (key == "flush") out_["flush_subnormals"] = true;
    else if (key == "type" || key == "fill") out_[key] = value;
    else if (key == "shape" || key == "strides") return extents(key, word, value);
    else return number(key, word, value);
    return Done{};
  }

  Status number(const std::string& key, const std::string& word, const std::string& value) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size())
      return wrong(fmt::format("{}: expected a number of bytes", word));
    out_[key] = number;
    return Done{};
  }

  Status extents(const std::string& key, const std::string& word, const std::string& value) {
    const auto read = extents_of(value);
    if (!read) return wrong(fmt::format("{}: expected numbers such as 512x256", word));
    (key == "shape" ? shape_ : strides_) = *read;
    return Done{};
  }

  // A manifest counts strides in bytes, and leaves out that of the innermost dimension.
  Status add_layout() {
    if (shape_.empty() && strides_.empty()) return Done{};
    if (shape_.empty() || !out_.contains("type"))
      return wrong("shape and strides require type= and shape=");
    const auto type = parse_type(out_["type"].get<std::string>());
    if (!type || bits(*type) < 8)
      return wrong(fmt::format("unknown type {}", out_["type"].get<std::string>()));
    if (strides_.empty()) {
      strides_.assign(shape_.size(), 1);
      for (std::size_t i = shape_.size() - 1; i > 0; --i) strides_[i - 1] = strides_[i] * shape_[i];
    }
    if (strides_.size() != shape_.size() || strides_.back() != 1)
      return wrong(fmt::format("strides={}: expected {} numbers, the last one 1",
                               fmt::join(strides_, ","), shape_.size()));
    std::vector<std::uint64_t> bytes = reversed(strides_);
    bytes.erase(bytes.begin());
    for (std::uint64_t& each : bytes) each *= static_cast<std::uint64_t>(bits(*type)) / 8;
    out_["extents"] = reversed(shape_);
    out_["strides"] = bytes;
    return Done{};
  }

  Json out_;
  std::vector<std::uint64_t> shape_, strides_;
};

}  // namespace

Result<Json> tensor_map_json(const std::string& text) { return TensorMapWords()(text); }

}  // namespace tartan::tools
