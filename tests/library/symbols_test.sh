#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# symbols_test.sh LIBRARY NM VERSION BUILD [HEADER]: the library shows names of this version's namespace tartan, as symbols of its own
# version (TARTAN_0.1 of libtartan, TARTAN_PTX_0.1 of libtartan-ptx), and the functions of the C interface (HEADER), as symbols of
# TARTAN_C_0.1; nothing else, and nothing of LLVM even in their signatures. Of the namespace it shows what public headers declare, as
# clang reads them, and nothing of what is inside. For libtartan, with HEADER, clang is asked anew, and a program that calls each function
# of each header links; the others are compared with the list.
set -eu
library=$1 nm=$2 version=$3 build=$4 header=${5-/dev/null}
root=$(cd "$(dirname "$0")/../.." && pwd)
node=$(basename "$library" | sed 's/^lib//; s/\.so.*//' | tr a-z- A-Z_)_$version
namespace=v$(echo "$version" | tr . _)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

shown=$("$nm" --dynamic --defined-only --demangle "$library" | cut -d ' ' -f 3-)
foreign=$("$nm" --dynamic --defined-only "$library" | cut -d ' ' -f 3 |
  grep -v "@@TARTAN_C_$version\$" |
  grep -vE "^_ZN[KRO]*6tartan${#namespace}$namespace.*@@$node\$|^($node|TARTAN_C_$version)\$" || true)
llvm=$(echo "$shown" | grep -i llvm || true)
declared=$(grep -oE '\btartan_[a-z_]+\(' "$header" | tr -d '(' | sort -u || true)
c_interface=$("$nm" --dynamic --defined-only "$library" | cut -d ' ' -f 3 | sed -n "s/@@TARTAN_C_$version\$//p" | sort -u)

test "$(echo "$shown" | wc -l)" -ge 20 || { echo "only these names are exported:"; echo "$shown"; exit 1; }
test -z "$foreign" || { echo "exported, but not of namespace tartan::$namespace and version $node:"; echo "$foreign"; exit 1; }
test -z "$llvm" || { echo "exported, and mentions LLVM (declare it with hidden visibility):"; echo "$llvm"; exit 1; }
test "$declared" = "$c_interface" || { echo "of the C interface, declared:"; echo "$declared"; echo "and exported:"; echo "$c_interface"; exit 1; }

grep -v '^#' "$root/library/public_names.txt" | LC_ALL=C sort >"$work/declared"
"$nm" --dynamic --defined-only "$library" | cut -d ' ' -f 3 | sed -n "s/@@$node\$//p" | LC_ALL=C sort >"$work/shown"
inside=$(LC_ALL=C comm -23 "$work/shown" "$work/declared" | c++filt)
test -z "$inside" || { echo "exported, but no public header declares it:"; echo "$inside"; exit 1; }

test "$header" != /dev/null || exit 0
command -v clang++-22 >/dev/null || { echo "skipped: no clang++-22, which says what the headers declare"; exit 77; }
"$root/scripts/exports" --print "$build" | LC_ALL=C sort | diff "$work/declared" - >"$work/stale" ||
  { echo "library/public_names.txt is not what the headers declare: run scripts/exports"; cat "$work/stale"; exit 1; }

grep -q '^#define TARTAN_HAS_LLVM 1' "$build/include/tartan/config.h" || exit 0
# Of functions: their demangled names have parentheses. A constant of a header is in each program that uses it.
c++filt <"$work/declared" | paste "$work/declared" - | grep '(' | cut -f 1 >"$work/functions"
{
  awk '{ printf "extern const char f%d __asm__(\"%s\");\n", NR, $0 }' "$work/functions"
  echo "const void* const called[] = {"
  awk '{ printf "  &f%d,\n", NR }' "$work/functions"
  echo "};"
  echo "int main(void) { return called[0] == 0; }"
} >"$work/calls.c"
test "$(wc -l <"$work/functions")" -ge 300
cc -fPIC -o "$work/calls" "$work/calls.c" "$library" -Wl,-z,now && LD_LIBRARY_PATH=$(dirname "$library") "$work/calls"
