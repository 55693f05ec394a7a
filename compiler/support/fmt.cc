// SPDX-License-Identifier: Apache-2.0
// compiler/support/fmt.cc - {fmt}'s own code, compiled once.
//
// Debian has {fmt} as headers and as a shared library. The shared library would be another run-time
// dependency of our programs; the headers alone would compile all of {fmt} in each source file,
// which takes longer than our own code.
#include <fmt/format-inl.h>
#include <fmt/format.h>

template fmt::detail::thousands_sep_result<char> fmt::detail::thousands_sep_impl<char>(
    fmt::detail::locale_ref);
template char fmt::detail::decimal_point_impl<char>(fmt::detail::locale_ref);
template std::locale fmt::detail::locale_ref::get<std::locale>() const;
