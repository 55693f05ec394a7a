// SPDX-License-Identifier: Apache-2.0
// compiler/support/nearest.h - for messages: the word nearest to a misspelled one.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "tartan/abi.h"

namespace tartan::inline TARTAN_ABI {

/// The number of letters to insert, delete or replace (Levenshtein).
std::size_t edit_distance(std::string_view x, std::string_view y);

/// The first of the words with the smallest edit distance; empty if none.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> words);

}  // namespace tartan::inline TARTAN_ABI
