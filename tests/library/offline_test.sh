#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# offline_test.sh CMAKE INSTALLED GENERATOR CXX KERNELS: kernels compiled in the build of a program that uses an installed Tartan and
# does not need it at run time: examples/offline. The files are those of KERNELS, made in this tree's build, though folders differ.
set -eu
cmake=$1 installed=$2 generator=$3 cxx=$4 same=$5
here=$(cd "$(dirname "$0")" && pwd)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here/../../examples/offline" "$work/source"
configure() {
  "$cmake" -S "$work/source" -G "$generator" -DCMAKE_PREFIX_PATH="$installed" -DCMAKE_CXX_COMPILER="$cxx" "$@"
}
configure -B "$work/program" >/dev/null
"$cmake" --build "$work/program" >/dev/null
made=$work/program/kernels
test "$("$work/program/offline" "$made/kernels.fatbin" /no/libcuda.so.1)" = "skipped: no driver"
if objdump -p "$work/program/offline" | grep -i "NEEDED.*tartan"; then exit 1; fi
for file in kernels.h kernels.fatbin kernels.sm_80.ptx kernels.sm_90a.ptx; do
  if grep -qaF "$work" "$made/$file"; then echo "$file names a folder of the build" && exit 1; fi
  test ! -d "$same" || cmp "$made/$file" "$same/$file"
done

# Nothing is written anew until something changes.
if "$cmake" --build "$work/program" | grep "Generating PTX"; then exit 1; fi
touch "$work/program/kernels_generator"
"$cmake" --build "$work/program" | grep "Generating PTX" >/dev/null

# A generator for another system is not run: the configuration says what to do.
if configure -B "$work/cross" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$(uname -m)" >"$work/log" 2>&1; then exit 1; fi
tr -s ' \n' '  ' <"$work/log" | grep -q "must run here: set CMAKE_CROSSCOMPILING_EMULATOR" || { cat "$work/log"; exit 1; }
configure -B "$work/cross" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$(uname -m)" \
  -Dkernels_GENERATOR="$work/program/kernels_generator" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
