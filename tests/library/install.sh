#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh CMAKE BUILD_DIRECTORY TO: installs, and moves the result to TO: tests that use it find
# nothing where it was installed first.
set -eu
cmake=$1 build=$2 to=$3
rm -rf "$to" "$to.first"
"$cmake" --install "$build" --prefix "$to.first" --strip >/dev/null
mv "$to.first" "$to"
