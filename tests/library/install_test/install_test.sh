#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install_test.sh CMAKE INSTALLED GENERATOR CXX: an installed copy serves a program outside of this tree, its build and its tests:
# through find_package, and through pkg-config where there is one. So it does a lesson among the installed examples.
set -eu
cmake=$1 installed=$2 generator=$3 cxx=$4
here=$(cd "$(dirname "$0")" && pwd)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$installed/bin/tartan" --version

# The licences of everything inside go along: each file that the notices link is there, and each shared library that ours needs is named.
notices=$(find "$installed" -name THIRD_PARTY_NOTICES.md)
texts=$(grep -o '](\(LICENSE\|licenses/[^)]*\))' "$notices" | tr -d '])(' | sort -u)
test "$(echo "$texts" | wc -l)" -ge 5
for text in $texts; do
  test -s "$(dirname "$notices")/$text" || { echo "not installed: $text"; exit 1; }
done
library=$(find "$installed" -name libtartan.so)
needed=$(objdump -p "$library" | sed -n 's/^ *NEEDED *//p')
test -n "$needed"
for name in $needed; do
  grep -qF "\`$name\`" "$notices" || { echo "THIRD_PARTY_NOTICES.md does not name $name, which libtartan.so needs"; exit 1; }
done

mkdir "$work/consumer"
cp "$here/CMakeLists.txt" "$here"/*.cc "$work/consumer"
"$cmake" -S "$work/consumer" -B "$work/build" -G "$generator" -DCMAKE_PREFIX_PATH="$installed" \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON >/dev/null
"$cmake" --build "$work/build" >/dev/null
CTEST_OUTPUT_ON_FAILURE=1 "$cmake" --build "$work/build" --target test

examples=$installed/share/doc/tartan/examples
if test -d "$examples"; then
  "$cmake" -S "$examples" -B "$work/examples" -G "$generator" -DCMAKE_PREFIX_PATH="$installed" -DCMAKE_CXX_COMPILER="$cxx" >/dev/null
  "$cmake" --build "$work/examples" --target 01_one_mma >/dev/null
  (cd "$work/examples" && ctest --output-on-failure -R '^example_01_one_mma$' --no-tests=error)
fi

if command -v pkg-config >/dev/null; then
  library=$(dirname "$library")
  export PKG_CONFIG_PATH="$library/pkgconfig"
  # shellcheck disable=SC2046  # one word an option
  "$cxx" "$here/consumer.cc" $(pkg-config --cflags --libs tartan) -o "$work/consumer/by_pkg_config"
  LD_LIBRARY_PATH=$library "$work/consumer/by_pkg_config"
fi
