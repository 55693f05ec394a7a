#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# symbols_test.sh LIBRARY NM VERSION [HEADER]: the library shows names of this version's namespace tartan, as symbols of its own version
# (TARTAN_0.1 of libtartan, TARTAN_PTX_0.1 of libtartan-ptx), and the functions of the C interface (HEADER), as symbols of TARTAN_C_1;
# nothing else, and nothing of LLVM even in their signatures.
set -eu
library=$1 nm=$2 version=$3 header=${4-/dev/null}
node=$(basename "$library" | sed 's/^lib//; s/\.so.*//' | tr a-z- A-Z_)_$version
namespace=v$(echo "$version" | tr . _)

shown=$("$nm" --dynamic --defined-only --demangle "$library" | cut -d ' ' -f 3-)
# "typeinfo for tartan::", "guard variable for tartan::" and the like; a template function starts with its return type.
foreign=$("$nm" --dynamic --defined-only "$library" | cut -d ' ' -f 3 |
  grep -v "@@TARTAN_C_1$" |
  grep -vE "^_Z(T[ISVT]|TL?h[^_]*_|Tv[^_]*_[^_]*_|GV)?Z?N[KRO]*6tartan${#namespace}$namespace.*@@$node\$|^($node|TARTAN_C_1)\$" || true)
llvm=$(echo "$shown" | grep -i llvm || true)
declared=$(grep -oE '\btartan_[a-z_]+\(' "$header" | tr -d '(' | sort -u || true)
c_interface=$("$nm" --dynamic --defined-only "$library" | cut -d ' ' -f 3 | sed -n 's/@@TARTAN_C_1$//p' | sort -u)

test "$(echo "$shown" | wc -l)" -ge 20 || { echo "only these names are exported:"; echo "$shown"; exit 1; }
test -z "$foreign" || { echo "exported, but not of namespace tartan::$namespace and version $node:"; echo "$foreign"; exit 1; }
test -z "$llvm" || { echo "exported, and mentions LLVM (declare it with hidden visibility):"; echo "$llvm"; exit 1; }
test "$declared" = "$c_interface" || { echo "of the C interface, declared:"; echo "$declared"; echo "and exported:"; echo "$c_interface"; exit 1; }
