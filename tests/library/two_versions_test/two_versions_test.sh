#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# two_versions_test.sh BUILD WORK: two versions of Tartan in one process. The first is that of BUILD, the second is made here: this
# source with the next version's number, as a release changes it, and with larger Buffers, so that one version's objects are wrong in
# the other's functions. It has no LLVM. A program links a plugin of each, so that the dynamic linker could take any symbol
# from either: every symbol of Tartan must come from the plugin's own library, and each version must answer for itself.
set -eu
build=$(cd "$1" && pwd) work=$2
root=$(cd "$(dirname "$0")/../../.." && pwd)
here=$root/tests/library/two_versions_test
mkdir -p "$work"
work=$(cd "$work" && pwd)
source=$work/source

version=$(sed -n 's/^project(tartan VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
major=${version%%.*} minor=${version#*.} minor=${minor%%.*}
next=$((minor + 1))
name=v${major}_$minor next_name=v${major}_$next

change() { # FILE EXPRESSION: sed, which must change something
  sed "$2" "$source/$1" >"$work/changed"
  ! cmp -s "$work/changed" "$source/$1" || { echo "$1: nothing to change for $2"; exit 1; }
  mv "$work/changed" "$source/$1"
}
rm -rf "$source"
mkdir "$source"
for part in CMakeLists.txt cmake compiler runtime bindings library tools include; do cp -r "$root/$part" "$source"; done
change CMakeLists.txt "s/VERSION $version/VERSION $major.$next.0/"
change include/tartan/abi.h "s/$name/$next_name/"
change library/public_names.txt "s/${#name}$name/${#next_name}$next_name/g"
change include/tartan/runtime/device.h 's/^  std::size_t size_ = 0;$/&\n  std::uint64_t of_the_next_version_[16] = {};/'

launcher=
if command -v ccache >/dev/null; then
  launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CCACHE_BASEDIR="$source" CCACHE_SLOPPINESS=pch_defines,time_macros
fi
cmake -S "$source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTARTAN_LLVM=OFF -DTARTAN_TESTS=OFF -DTARTAN_BENCHMARKS=OFF \
  -DTARTAN_INSTALL=OFF $launcher >"$work/log" 2>&1 && cmake --build "$work/build" --target tartan >>"$work/log" 2>&1 || { tail -30 "$work/log"; exit 1; }

plugin() { # NAME SOURCE BUILD
  c++ -std=c++20 -O1 -fPIC -shared -Wall -Wextra -Werror "-DPLUGIN=$1" -DTARTAN_HAS_LLVM=0 "-I$2/include" "-I$3/include" "$here/plugin.cc" -o "$work/lib$1.so" \
    "-L$3/lib" -ltartan "-Wl,-rpath,$3/lib"
}
plugin first "$root" "$build"
plugin second "$source" "$work/build"

for order in "first second" "second first"; do
  libraries=
  for each in $order; do libraries="$libraries -l$each"; done
  # shellcheck disable=SC2086  # one word an option
  c++ -std=c++20 -O1 "$here/host.cc" -o "$work/host" "-L$work" $libraries "-Wl,-rpath,$work" -pthread
  rm -f "$work"/bindings.*
  LD_BIND_NOW=1 LD_DEBUG=bindings LD_DEBUG_OUTPUT="$work/bindings" "$work/host"
  # binding file USER [0] to OWNER [0]: normal symbol `NAME' [VERSION]
  awk -v old="libtartan.so.$major.$minor" -v new="libtartan.so.$major.$next" '
    BEGIN { family[old] = family["libfirst.so"] = old; family[new] = family["libsecond.so"] = new }
    /binding file/ && (/6tartan/ || /`tartan_/) {
      user = $4; owner = $7
      sub(/.*\//, "", user); sub(/.*\//, "", owner)
      if (user == owner || user == "host") next
      ++count[user, owner]
      if (family[user] == "" || family[user] != family[owner]) print "the other version: " $0
    }
    END {
      if (count["libfirst.so", old] < 20 || count["libsecond.so", new] < 20) print "too few symbols come from the libraries"
    }' "$work"/bindings.* >"$work/wrong"
  test ! -s "$work/wrong" || { head "$work/wrong"; exit 1; }
done
