// SPDX-License-Identifier: Apache-2.0
// bindings/c/handles.h - what is behind the handles of tartan/c.h, and the frame of its functions:
// diagnostics and exceptions become errors, null arguments are refused.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <type_traits>

#include "tartan/c.h"
#include "tartan/runtime/device.h"

struct tartan_error {
  std::string text, json;
  std::string_view rule;
};

struct tartan_device {
  tartan::Device device;
  std::string name, arch, gpu;
};

struct tartan_buffer {
  tartan::Buffer buffer;
};

namespace tartan::TARTAN_ABI::c {

/// An error of the caller's, or the one for when there is no memory for it.
tartan_error* error_of(const Diags& diags) noexcept;

/// An argument of a function: its name, and whether it is null.
struct Given {
  template <typename T>
  Given(const char* of, T* given) : name(of), value(static_cast<const void*>(given)) {}
  const char* name;
  const void* value;
};

/// A usage error for each null.
Diags refuse_nulls(const char* function, std::initializer_list<Given> given);

/// A copy for tartan_string_free().
char* copy_of(const std::string& text);

/// Calls `body`, which returns a Status. No exception leaves it.
template <typename Body>
tartan_error* guarded(const char* function, std::initializer_list<Given> given,
                      const Body& body) noexcept {
  try {
    if (const Diags nulls = refuse_nulls(function, given); !nulls.ok()) return error_of(nulls);
    const Status status = body();
    return status ? nullptr : error_of(status.diags());
  } catch (const std::bad_alloc&) {
    return error_of({});
  } catch (const std::exception& failure) {
    try {
      return error_of(
          Diags::one("codegen"_rule, {}, std::string(function) + ": " + failure.what()));
    } catch (...) {
      return error_of({});
    }
  }
}

}  // namespace tartan::TARTAN_ABI::c
