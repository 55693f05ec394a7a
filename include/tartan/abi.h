// SPDX-License-Identifier: Apache-2.0
// tartan/abi.h - the inline namespace of this version. `tartan::Target` is `tartan::v0_1::Target`
// to the linker: two versions of Tartan in one process share no function and no table.
#pragma once

#define TARTAN_ABI v0_1
