#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# size_test.sh LIBRARY STRIP: stripped, the library is smaller than 40 MB.
set -eu
library=$1 strip=$2

copy=$(mktemp)
trap 'rm -f "$copy"' EXIT
"$strip" -o "$copy" "$library"
bytes=$(wc -c <"$copy")
echo "$bytes bytes stripped"
test "$bytes" -gt 0
test "$bytes" -lt 40000000
