// SPDX-License-Identifier: Apache-2.0
// tartan::ptx: parse, check, print.
#include <tartan/tartan.h>

#include <cstdio>

#if TARTAN_HAS_LLVM
#error "tartan::ptx shows the headers of code generation"
#endif

int main() {
  const auto source = std::make_shared<const tartan::Source>(
      "wrong.ptx",
      ".version 7.0\n.target sm_70\n.address_size 64\n"
      ".visible .entry e() {\n  .reg .b32 %r<2>;\n  redux.sync.add.s32 %r1, %r1, -1;\n"
      "  ret;\n}\n");
  const tartan::Diags found = tartan::verify::check(source);
  std::puts(found.text().c_str());
  for (const tartan::Diag& each : found)
    if (each.id == "target-support") return 0;
  std::puts("expected target-support: redux.sync requires sm_80");
  return 1;
}
