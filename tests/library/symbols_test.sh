#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# symbols_test.sh LIBRARY NM: the library shows names of namespace tartan only, and nothing of LLVM even in their signatures.
set -eu
library=$1 nm=$2

shown=$("$nm" --dynamic --defined-only --demangle "$library" | cut -d ' ' -f 3-)
# "typeinfo for tartan::", "guard variable for tartan::" and the like; a template function starts with its return type.
foreign=$("$nm" --dynamic --defined-only "$library" | cut -d ' ' -f 3 |
  grep -vE '^_Z(T[ISVT]|TL?h[^_]*_|Tv[^_]*_[^_]*_|GV)?Z?N[KRO]*6tartan' || true)
llvm=$(echo "$shown" | grep -i llvm || true)

test "$(echo "$shown" | wc -l)" -ge 20 || { echo "only these names are exported:"; echo "$shown"; exit 1; }
test -z "$foreign" || { echo "exported, but not of namespace tartan:"; echo "$foreign"; exit 1; }
test -z "$llvm" || { echo "exported, and mentions LLVM (declare it with hidden visibility):"; echo "$llvm"; exit 1; }
