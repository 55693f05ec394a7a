// SPDX-License-Identifier: Apache-2.0
// Linked to a part of a Tartan that is a subproject.
#include <tartan/tartan.h>

int main() { return tartan::version() == TARTAN_VERSION && TARTAN_HAS_LLVM == 0 ? 0 : 1; }
