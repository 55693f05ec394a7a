#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# headers_test.sh INCLUDE CONFIG [each]: every public header below INCLUDE compiles without a warning
# by each compiler of docs/cmake.md that this machine has: all in one file; with `each`, which takes
# minutes, also alone. CONFIG is the folder of the generated tartan/config.h.
set -eu
include=$1 config=$2 each=${3-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$include"
find tartan -name '*.h' | sort >"$work/headers"
test "$(wc -l <"$work/headers")" -ge 40
sed 's/.*/#include "&"/' "$work/headers" >"$work/all.cc"

# compiles CXX FILE: the file has no error and no warning.
compiles() {
  "$1" -std=c++20 -fsyntax-only -Wall -Wextra -Wshadow -Werror -I "$include" -I "$config" "$2"
}
found=0
for cxx in g++-11 g++-12 g++-13 g++-14 clang++-16 clang++-17 clang++-18 clang++-19; do
  command -v "$cxx" >/dev/null || { echo "$cxx: not here"; continue; }
  compiles "$cxx" "$work/all.cc"
  if test -n "$each"; then
    while read -r header; do
      echo "#include \"$header\"" >"$work/one.cc"
      compiles "$cxx" "$work/one.cc" || { echo "$cxx: $header does not stand alone"; exit 1; }
    done <"$work/headers"
  fi
  echo "$cxx: $(wc -l <"$work/headers") headers"
  found=$((found + 1))
done
test "$found" -ge 1 || { echo "no compiler found"; exit 77; }
