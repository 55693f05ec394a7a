// SPDX-License-Identifier: Apache-2.0
// compiler/support/nearest.h - for messages: the words nearest to a misspelled one.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI {

/// The number of letters to insert, delete, replace, or exchange with the next one. Upper and lower
/// case are alike.
std::size_t edit_distance(std::string_view x, std::string_view y);

/// The distance of a known word from a misspelled one; nothing if it is more than a third of the
/// misspelled word's length: then it is another word.
std::optional<std::size_t> steps_to(std::string_view word, std::string_view known);

/// The words with the smallest distance, in their order; empty if none is near.
std::vector<std::string_view> nearest_words(std::string_view word,
                                            std::span<const std::string_view> words);

/// "; the nearest is mov", "; the nearest are .v2, .v4 and .v8"; empty for no words and for more
/// than four, which say nothing.
std::string nearest_text(std::span<const std::string> words);

/// The same of nearest_words(), each with `prefix` in front.
std::string nearest_hint(std::string_view word, std::span<const std::string_view> words,
                         std::string_view prefix = {});

}  // namespace tartan::TARTAN_ABI
