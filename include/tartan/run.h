// SPDX-License-Identifier: Apache-2.0
// tartan/run.h - compiles a kernel and runs one grid of it on host data, in one call.
//
//   std::vector<host::f16> a(m * depth), b(depth * n);           // tartan/runtime/host_types.h
//   std::vector<float> c(m * n);
//   const Status done = run(device, product(), {tile.blocks(m, n)}, in(a), in(b), out(c));
//   if (!done) std::cerr << done.diags().text();
//
// Arguments are those of the description's parameters, in its order; arg("B", in(b)) names its
// parameter and may stand anywhere. Buffers are allocated, written, read back and freed by the
// call: a program that launches more than once holds Buffers, and calls launch() (tartan/launch.h).
#pragma once

#include <concepts>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tartan/launch.h"
#include "tartan/runtime/host_types.h"

namespace tartan::TARTAN_ABI {

/// What a kernel does with a matrix of the host.
enum class Use : std::uint8_t {
  in,      // it reads what the host has
  out,     // it writes all of it
  in_out,  // it reads it, or writes a part of it: the rest keeps what the host has
};

/// A matrix of the host, as its elements in memory.
struct HostMatrix {
  Use use = Use::in;
  Type type = Type::none;  // b8: bytes of any type
  std::span<const std::byte> from;
  std::byte* to = nullptr;  // the same memory; null for `in`
};

/// An argument of run(): a number for a scalar parameter, a matrix or a Buffer for a pointer. It
/// must not outlive the data.
class RunArgument {
 public:
  template <std::integral T>
  requires(!std::same_as<T, bool>) RunArgument(T value)
      : value_(std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>{value}) {}
  template <std::floating_point T>
  RunArgument(T value) : value_(static_cast<double>(value)) {}
  RunArgument(HostMatrix matrix) : value_(matrix) {}
  RunArgument(const Buffer& buffer) : value_(buffer) {}

  using Value = std::variant<std::int64_t, std::uint64_t, double, HostMatrix, Buffer>;
  const Value& value() const { return value_; }
  /// Of the parameter it is for; empty: the next one that none is named for.
  const std::string& name() const { return name_; }

 private:
  friend RunArgument arg(std::string name, RunArgument argument);
  std::string name_;
  Value value_;
};

/// The argument of the parameter `name`.
inline RunArgument arg(std::string name, RunArgument argument) {
  argument.name_ = std::move(name);
  return argument;
}

/// Contiguous elements of the host: a vector, an array or a span of float, double, integers,
/// std::byte or the types of tartan/runtime/host_types.h.
template <typename R>
concept HostElements = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    host::type_of<std::remove_cv_t<std::ranges::range_value_t<R>>>
!= Type::none;

template <HostElements R>
HostMatrix in(const R& elements) {
  return {Use::in, host::type_of<std::ranges::range_value_t<R>>,
          std::as_bytes(std::span(elements))};
}
template <HostElements R>
HostMatrix in_out(R&& elements) {
  const auto bytes = std::as_writable_bytes(std::span(elements));
  return {Use::in_out, host::type_of<std::ranges::range_value_t<R>>, bytes, bytes.data()};
}
/// On the emulator with Checks::all, an element that the kernel does not write is an error;
/// elsewhere it keeps its value.
template <HostElements R>
HostMatrix out(R&& elements) {
  HostMatrix matrix = in_out(elements);
  matrix.use = Use::out;
  return matrix;
}

/// Compiles `kernel` for the device, runs it and waits for it. Before anything runs, each argument
/// is compared with its parameter:
///
///   - a matrix has the parameter's element type (std::byte is any) and as many elements as the
///     layout spans, as far as constants and other arguments say; one that the kernel writes is no
///     in();
///   - an integer fits its parameter's type; a floating-point number is for f32 (rounded) or f64;
///   - every parameter has one argument, and names are those of parameters.
///
/// After the run, what the kernel did wrong is an error: a fault, and each finding of the emulator.
/// Results are copied to the host only without one.
Status run_arguments(Device& device, const Compiled& compiled, Dim3 grid,
                     std::span<const RunArgument> arguments);

template <std::convertible_to<RunArgument>... Arguments>
Status run(Device& device, const Compiled& compiled, Dim3 grid, const Arguments&... arguments) {
  const std::vector<RunArgument> all{RunArgument(arguments)...};
  return run_arguments(device, compiled, grid, all);
}
namespace detail {
void tell_warnings(const Compiled& compiled);
}

/// Warnings of compile() go to std::cerr.
template <std::convertible_to<RunArgument>... Arguments>
Status run(Device& device, const Kernel& kernel, Dim3 grid, const Arguments&... arguments) {
  const Result<Compiled> compiled = compile(kernel, device.arch());
  if (!compiled) return compiled.diags();
  detail::tell_warnings(*compiled);
  return run(device, *compiled, grid, arguments...);
}

}  // namespace tartan::TARTAN_ABI
