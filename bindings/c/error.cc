// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "bindings/c/handles.h"
#include "tartan/version.h"

namespace tartan::TARTAN_ABI::c {
namespace {

// Made before it is needed, and never freed.
tartan_error* no_memory() noexcept {
  static tartan_error error = [] {
    const Diags diags =
        Diags::one("out-of-memory"_rule, {}, "the host has no memory for this call");
    return tartan_error{diags.text(), diags.json(), "out-of-memory"};
  }();
  return &error;
}

const bool made = no_memory() != nullptr;

}  // namespace

tartan_error* error_of(const Diags& diags) noexcept {
  (void)made;
  if (diags.empty()) return no_memory();
  try {
    auto error = std::make_unique<tartan_error>();
    error->text = diags.text();
    error->json = diags.json();
    for (const Diag& each : diags) {
      if (each.level != Level::Error) continue;
      error->rule = each.id;
      break;
    }
    return error.release();
  } catch (...) {
    return no_memory();
  }
}

Diags refuse_nulls(const char* function, std::initializer_list<Given> given) {
  Diags out;
  for (const Given& each : given)
    if (!each.value)
      out.report("usage"_rule, {}, fmt::format("{}: the argument {} is null", function, each.name));
  return out;
}

char* copy_of(const std::string& text) {
  auto* out = static_cast<char*>(std::malloc(text.size() + 1));
  if (!out) throw std::bad_alloc();
  std::memcpy(out, text.c_str(), text.size() + 1);
  return out;
}

}  // namespace tartan::TARTAN_ABI::c

using namespace tartan;

const char* tartan_version(void) { return version().data(); }
int tartan_c_version(void) { return TARTAN_C_VERSION; }

const char* tartan_error_text(const tartan_error* error) {
  return error ? error->text.c_str() : "";
}
const char* tartan_error_json(const tartan_error* error) {
  return error ? error->json.c_str() : "";
}
const char* tartan_error_rule(const tartan_error* error) { return error ? error->rule.data() : ""; }
void tartan_error_free(tartan_error* error) {
  if (error != c::no_memory()) delete error;
}

void tartan_string_free(char* string) { std::free(string); }
