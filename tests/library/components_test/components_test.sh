#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# components_test.sh CMAKE INSTALLED GENERATOR CXX: the parts of an installed Tartan, alone and
# together; a part that is not there, or does not exist, is a message of find_package().
set -eu
cmake=$1 installed=$2 generator=$3 cxx=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" -S "$here" -B "$work/build" -G "$generator" -DCMAKE_PREFIX_PATH="$installed" \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON >/dev/null
"$cmake" --build "$work/build" >/dev/null
CTEST_OUTPUT_ON_FAILURE=1 "$cmake" --build "$work/build" --target test

# asks COMPONENTS EXPECTED: a project that wants them is told so.
asks() {
  mkdir -p "$work/ask"
  printf 'cmake_minimum_required(VERSION 3.25)\nproject(ask LANGUAGES CXX)\nfind_package(tartan REQUIRED COMPONENTS %s)\n' "$1" \
    >"$work/ask/CMakeLists.txt"
  rm -rf "$work/asked"
  if "$cmake" -S "$work/ask" -B "$work/asked" -G "$generator" -DCMAKE_PREFIX_PATH="$work/partial" \
    -DCMAKE_CXX_COMPILER="$cxx" >"$work/said" 2>&1; then
    echo "COMPONENTS $1 were found, though they are not there"; exit 1
  fi
  tr -s ' \n' ' ' <"$work/said" | grep -qF "$2" || { echo "COMPONENTS $1: expected \"$2\""; cat "$work/said"; exit 1; }
}
cp -r "$installed" "$work/partial"
find "$work/partial" -name 'libtartan-emulator.so*' -delete
asks "ptx emulator" "emulator: this component is not installed in"
asks "ptx tables" "tables: no such component; there are tartan, emulator, ptx and command"

if command -v pkg-config >/dev/null; then
  library=$(dirname "$(find "$installed" -name libtartan-ptx.so)")
  # shellcheck disable=SC2046  # one word an option
  "$cxx" "$here/checker.cc" $(PKG_CONFIG_PATH="$library/pkgconfig" pkg-config --cflags --libs tartan-ptx) -o "$work/checker"
  LD_LIBRARY_PATH=$library "$work/checker"
fi
