// SPDX-License-Identifier: Apache-2.0
// tartan/function.h - a compiled kernel as a C++ function with typed parameters.
//
//   using Product = Function<void(int, int, int, GlobalArg<f16>, GlobalArg<f16>, GlobalArg<f32>)>;
//   Result<Product> product = Product::make(device, *compiled);  // gemm(): m, n, k, A, B, C
//   if (!product) return product.diags();                        // each parameter that differs
//   Status launched = (*product)({blocks}, m, n, depth, a, b, c);  // a, b, c: Buffers
//
// What does not fit is said before the driver sees it. make() compares the signature with the
// kernel's parameters: their number, which are pointers, the types of elements and numbers. Each
// call compares values: addresses and sizes of matrices with what their layouts span, numbers with
// the multiples that the description promises, grid and cluster with its tiles, shared memory with
// the device. All mistakes are reported, with the parameters' names.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "tartan/launch.h"
#include "tartan/runtime/host_types.h"

namespace tartan::TARTAN_ABI {

/// A matrix in device memory, as an argument for a pointer to `element`; GlobalArg<Type::b8>,
/// bytes, is for elements of any type. It does not own the memory: that must live until the launch
/// is done.
template <Type element>
class GlobalArg {
 public:
  static constexpr Type type = element;

  GlobalArg(const Buffer& buffer) : address_(buffer.address()), bytes_(buffer.size()) {}
  /// `elements` of them lie at `address`.
  GlobalArg(std::uint64_t address, std::uint64_t elements)
      : address_(address), bytes_(bytes_of(elements)) {}

  std::uint64_t address() const { return address_; }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t bytes_of(std::uint64_t elements) {
    constexpr auto width = static_cast<std::uint64_t>(bits(element));
    return elements / 8 * width + (elements % 8 * width + 7) / 8;
  }

  std::uint64_t address_ = 0;
  std::size_t bytes_ = 0;
};

namespace detail {

/// What a signature says of a parameter.
struct SignatureParam {
  Type type = Type::none;  // of a number, or of a pointer's elements
  bool pointer = false;
};

template <typename T>
inline constexpr SignatureParam signature_param{host::type_of<T>, false};
template <Type element>
inline constexpr SignatureParam signature_param<GlobalArg<element>>{element, true};

/// A kernel and what its calls are checked against.
class TypedKernel {
 public:
  static Result<TypedKernel> make(Device& device, const Compiled& compiled,
                                  std::span<const SignatureParam> signature);
  static Result<TypedKernel> make(LoadedKernel kernel, const Compiled& compiled,
                                  std::span<const SignatureParam> signature);
  /// `signature` is that of make().
  Status launch(std::span<const SignatureParam> signature, Dim3 grid, const Arguments& arguments,
                const Stream* stream);

 private:
  TypedKernel(LoadedKernel kernel, const Compiled& compiled);
  LoadedKernel kernel_;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace detail

/// A type that a Function's signature may have: GlobalArg, numbers, and the element types of
/// tartan/runtime/host_types.h. Integers may differ from the parameter in sign; calls then refuse
/// numbers that it does not have.
template <typename T>
concept FunctionParam = detail::signature_param<T>
.type != Type::none;

template <typename Signature>
class Function;
/// A loaded kernel that is called with arguments of these types.
template <FunctionParam... Params>
class Function<void(Params...)> {
 public:
  /// Loads the kernel on the device, if the signature is its own.
  static Result<Function> make(Device& device, const Compiled& compiled) {
    return from(detail::TypedKernel::make(device, compiled, signature));
  }
  /// `kernel` is `compiled`, loaded.
  static Result<Function> make(LoadedKernel kernel, const Compiled& compiled) {
    return from(detail::TypedKernel::make(std::move(kernel), compiled, signature));
  }

  /// Starts the kernel with a grid of so many blocks, in the device's own stream.
  Status operator()(Dim3 grid, const Params&... arguments) {
    return call(grid, nullptr, arguments...);
  }
  Status operator()(const Stream& stream, Dim3 grid, const Params&... arguments) {
    return call(grid, &stream, arguments...);
  }

 private:
  static constexpr std::array<detail::SignatureParam, sizeof...(Params)> signature{
      detail::signature_param<Params>...};

  explicit Function(detail::TypedKernel kernel) : kernel_(std::move(kernel)) {}
  static Result<Function> from(Result<detail::TypedKernel> made) {
    if (!made) return made.diags();
    return Function(std::move(*made));
  }

  template <typename T>
  static void pack(Arguments& out, const T& argument) {
    if constexpr (detail::signature_param<T>.pointer)
      out.add_memory(argument.address(), argument.bytes());
    else out.add(argument);
  }
  Status call(Dim3 grid, const Stream* stream, const Params&... arguments) {
    Arguments packed;
    (pack(packed, arguments), ...);
    return kernel_.launch(signature, grid, packed, stream);
  }

  detail::TypedKernel kernel_;
};

}  // namespace tartan::TARTAN_ABI
