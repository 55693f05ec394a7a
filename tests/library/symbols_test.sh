#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# symbols_test.sh LIBRARY NM VERSION: the library shows names of this version's namespace tartan only, as symbols of that version, and
# nothing of LLVM even in their signatures.
set -eu
library=$1 nm=$2 version=$3
namespace=v$(echo "$version" | tr . _)

shown=$("$nm" --dynamic --defined-only --demangle "$library" | cut -d ' ' -f 3-)
# "typeinfo for tartan::", "guard variable for tartan::" and the like; a template function starts with its return type.
foreign=$("$nm" --dynamic --defined-only "$library" | cut -d ' ' -f 3 |
  grep -vE "^_Z(T[ISVT]|TL?h[^_]*_|Tv[^_]*_[^_]*_|GV)?Z?N[KRO]*6tartan${#namespace}$namespace.*@@TARTAN_$version\$|^TARTAN_$version\$" || true)
llvm=$(echo "$shown" | grep -i llvm || true)

test "$(echo "$shown" | wc -l)" -ge 20 || { echo "only these names are exported:"; echo "$shown"; exit 1; }
test -z "$foreign" || { echo "exported, but not of namespace tartan::$namespace and version $version:"; echo "$foreign"; exit 1; }
test -z "$llvm" || { echo "exported, and mentions LLVM (declare it with hidden visibility):"; echo "$llvm"; exit 1; }
