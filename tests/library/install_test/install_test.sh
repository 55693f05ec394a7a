#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install_test.sh CMAKE BUILD_DIRECTORY GENERATOR CXX: an installed copy, moved elsewhere, serves a program outside of this tree, its build and its tests:
# through find_package, and through pkg-config where there is one.
set -eu
cmake=$1 build=$2 generator=$3 cxx=$4
here=$(cd "$(dirname "$0")" && pwd)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/first" --strip >/dev/null
mv "$work/first" "$work/installed"
"$work/installed/bin/tartan" --version

mkdir "$work/consumer"
cp "$here/CMakeLists.txt" "$here/consumer.cc" "$work/consumer"
"$cmake" -S "$work/consumer" -B "$work/build" -G "$generator" -DCMAKE_PREFIX_PATH="$work/installed" \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON >/dev/null
"$cmake" --build "$work/build" >/dev/null
CTEST_OUTPUT_ON_FAILURE=1 "$cmake" --build "$work/build" --target test

if command -v pkg-config >/dev/null; then
  library=$(dirname "$(find "$work/installed" -name libtartan.so)")
  export PKG_CONFIG_PATH="$library/pkgconfig"
  # shellcheck disable=SC2046  # one word an option
  "$cxx" "$here/consumer.cc" $(pkg-config --cflags --libs tartan) -o "$work/consumer/by_pkg_config"
  LD_LIBRARY_PATH=$library "$work/consumer/by_pkg_config"
fi
