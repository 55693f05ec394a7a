#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# subproject_test.sh CMAKE SOURCE GENERATOR CXX LLVM: as a subproject, Tartan leaves its parent as it
# is, and installs nothing; tests are refused there. So it does when FetchContent brings it, and kernels are compiled in the build,
# with make.
set -eu
cmake=$1 source=$2 generator=$3 cxx=$4 llvm=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
configure() {
  "$cmake" -S "$(dirname "$0")" -B "$work/build" -G "$generator" -DCMAKE_CXX_COMPILER="$cxx" -DTARTAN_SOURCE="$source" \
    -DTARTAN_LLVM="$llvm" "$@" >"$work/said" 2>&1
}
configure || { cat "$work/said"; exit 1; }
"$cmake" --install "$work/build" --prefix "$work/installed" >/dev/null
test ! -e "$work/installed" || { echo "a parent's installation has files of Tartan:"; find "$work/installed"; exit 1; }

if configure -DTARTAN_TESTS=ON; then echo "TARTAN_TESTS is taken in a subproject"; exit 1; fi
grep -q "top-level project" "$work/said"

"$cmake" -S "$(dirname "$0")/fetched" -B "$work/fetched" -G "Unix Makefiles" -DCMAKE_CXX_COMPILER="$cxx" \
  -DFETCHCONTENT_SOURCE_DIR_TARTAN="$source" -DTARTAN_URL=file:///none -DTARTAN_LLVM="$llvm" >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
"$cmake" --install "$work/fetched" --prefix "$work/installed" >/dev/null
test ! -e "$work/installed"
test "$llvm" = OFF || grep -rqF -e "--depfile $work/fetched/kernels/kernels.d" "$work/fetched/CMakeFiles/kernels_files.dir"
