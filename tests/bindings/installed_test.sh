#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# installed_test.sh INSTALLED CC PYTHON RUSTC: the examples of an installed Tartan, as docs/c.md and
# docs/python.md build and run them. What is missing (python3, rustc, pkg-config) is left out, and said.
set -eu
installed=$1 cc=$2 python=$3 rustc=$4
examples=$installed/share/doc/tartan/examples
library=$(dirname "$(find "$installed" -name libtartan.so)")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset TARTAN_LIBRARY
export PYTHONDONTWRITEBYTECODE=1

if command -v pkg-config >/dev/null; then
  # shellcheck disable=SC2046  # one word an option
  "$cc" "$examples/c/gemm.c" -o "$work/gemm" $(PKG_CONFIG_PATH="$library/pkgconfig" pkg-config --cflags --libs tartan-c) -Wall -Wextra -Wpedantic -Werror -lm
  LD_LIBRARY_PATH=$library "$work/gemm" 64 32 16
else
  echo "no pkg-config: the example in C is left out"
fi
if command -v "$rustc" >/dev/null; then
  "$rustc" "$examples/rust/gemm.rs" -L "$library" -l tartan -o "$work/gemm_rs"
  LD_LIBRARY_PATH=$library "$work/gemm_rs"
else
  echo "no rustc: the example in Rust is left out"
fi
if command -v "$python" >/dev/null; then
  PYTHONPATH=$installed/lib/python3/dist-packages "$python" -c 'import tartan
kernel = tartan.compile("gemm", "sm_90a")
print(tartan.__version__, kernel)'
  PYTHONPATH=$installed/lib/python3/dist-packages "$python" "$examples/python/linear.py" || test $? = 77
else
  echo "no python3: the package is left out"
fi
