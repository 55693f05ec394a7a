// SPDX-License-Identifier: Apache-2.0
// compiler/support/fmt.cc - {fmt}'s own code, compiled once.
//
// Debian has {fmt} as headers and as a shared library. The library would be one more thing that a
// program of ours needs where it runs; the headers alone compile all of {fmt} in each of our files,
// which takes longer than our own code does.
#include <fmt/format-inl.h>
#include <fmt/format.h>

template fmt::detail::thousands_sep_result<char> fmt::detail::thousands_sep_impl<char>(
    fmt::detail::locale_ref);
template char fmt::detail::decimal_point_impl<char>(fmt::detail::locale_ref);
template std::locale fmt::detail::locale_ref::get<std::locale>() const;
