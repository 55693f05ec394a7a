// SPDX-License-Identifier: Apache-2.0
// tartan/abi.h - the inline namespace of this version. `tartan::Target` is `tartan::v0_1::Target`
// to the linker: two versions of Tartan in one process share no function and no table.
// The macro has the word `inline`, so that ctags and others that index sources without a
// preprocessor read `namespace tartan::TARTAN_ABI {` and find what is in it.
#pragma once

#define TARTAN_ABI inline v0_1
