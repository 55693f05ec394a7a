// SPDX-License-Identifier: Apache-2.0
#include "tartan/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iostream>
#include <limits>

#include "compiler/support/counted.h"
#include "library/call_checks.h"
#include "runtime/buffer_name.h"
#include "runtime/device_access.h"
#include "runtime/engine.h"

namespace tartan::TARTAN_ABI {
namespace {

// The arguments of a run, by parameter, and the buffers that hold its matrices.
class Run {
 public:
  Run(Device& device, const Compiled& compiled) : device_(device), compiled_(compiled) {}

  Status operator()(Dim3 grid, std::span<const RunArgument> arguments) {
    match(arguments);
    if (!diags_.ok()) return diags_;
    for (std::size_t i = 0; i < matched_.size(); ++i) check(i);
    if (!diags_.ok()) return diags_;
    check_memory();
    if (!diags_.ok()) return diags_;
    if (Status status = send(); !status) return status;
    if (Status status = execute(grid); !status) return status;
    return receive();
  }

 private:
  const CompiledParam& param(std::size_t i) const { return compiled_.params[i]; }
  const RunArgument::Value& value(std::size_t i) const { return matched_[i]->value(); }
  const HostMatrix* matrix(std::size_t i) const { return std::get_if<HostMatrix>(&value(i)); }

  void report(std::size_t i, const std::string& what) {
    detail::report_argument(compiled_, i, what, diags_);
  }

  // Named arguments find their parameters, the others take those that are left, in order.
  void match(std::span<const RunArgument> arguments) {
    matched_.assign(compiled_.params.size(), nullptr);
    std::vector<std::string_view> names;
    for (const CompiledParam& each : compiled_.params) names.push_back(each.name);
    for (const RunArgument& each : arguments) {
      if (each.name().empty()) continue;
      const auto at = std::ranges::find(names, each.name());
      if (at == names.end()) {
        diags_.report("launch-arguments"_rule, {},
                      fmt::format("kernel {} has no parameter {}; it has {}", compiled_.name,
                                  each.name(), fmt::join(names, ", ")));
        continue;
      }
      const auto i = static_cast<std::size_t>(at - names.begin());
      if (matched_[i]) report(i, "two arguments have its name");
      matched_[i] = &each;
    }
    std::size_t next = 0, too_many = 0;
    for (const RunArgument& each : arguments) {
      if (!each.name().empty()) continue;
      while (next < matched_.size() && matched_[next]) ++next;
      if (next < matched_.size()) matched_[next] = &each;
      else ++too_many;
    }
    if (too_many)
      diags_.report("launch-arguments"_rule, {},
                    fmt::format("wrong number of arguments: kernel {} expects {} ({}), found {}",
                                compiled_.name, detail::counted(names.size(), "argument"),
                                fmt::join(names, ", "), arguments.size()));
    if (!diags_.ok()) return;
    for (std::size_t i = 0; i < matched_.size(); ++i)
      if (!matched_[i]) report(i, "it has no argument");
  }

  void check(std::size_t i) {
    const bool is_number = !matrix(i) && !std::holds_alternative<Buffer>(value(i));
    const std::string_view type = name(param(i).type);
    if (param(i).pointer && is_number)
      return report(i, fmt::format("expected a matrix of {}, found a number", type));
    if (!param(i).pointer && !is_number)
      return report(i, fmt::format("expected a number of type {}, found a matrix", type));
    if (is_number) return check_number(i);
    if (const HostMatrix* given = matrix(i)) {
      check_type(i, given->type);
      if (given->use == Use::in && param(i).writes)
        report(i, "the kernel writes it: expected out() or in_out(), found in()");
    }
  }

  void check_type(std::size_t i, Type given) {
    const Type wanted = param(i).type;
    if (detail::elements_fit(wanted, given)) return;
    report(i, fmt::format("wrong element type: expected {}, found {}; std::byte is for elements of "
                          "any type",
                          name(wanted), name(given)));
  }

  // The bytes of a number, or nothing if it does not fit its parameter.
  template <typename To>
  std::optional<std::vector<std::byte>> bytes_as(std::size_t i) const {
    return std::visit(
        [](const auto& from) -> std::optional<std::vector<std::byte>> {
          using From = std::decay_t<decltype(from)>;
          To number{};
          if constexpr (std::is_arithmetic_v<From>) {
            if constexpr (std::is_integral_v<To>) {
              if constexpr (!std::is_integral_v<From>) return std::nullopt;
              else if (!std::in_range<To>(from)) return std::nullopt;
            } else if constexpr (std::is_integral_v<From>) {
              // Only integers that the parameter's type has.
              constexpr auto most = std::int64_t{1} << std::numeric_limits<To>::digits;
              if (std::cmp_greater(from, most) || std::cmp_less(from, -most)) return std::nullopt;
            }
            number = static_cast<To>(from);
          }
          const auto bytes = std::as_bytes(std::span(&number, 1));
          return std::vector<std::byte>(bytes.begin(), bytes.end());
        },
        value(i));
  }
  std::optional<std::vector<std::byte>> number_bytes(std::size_t i) const {
    switch (param(i).type) {
      case u32: return bytes_as<std::uint32_t>(i);
      case s32: return bytes_as<std::int32_t>(i);
      case u64: return bytes_as<std::uint64_t>(i);
      case s64: return bytes_as<std::int64_t>(i);
      case f32: return bytes_as<float>(i);
      case f64: return bytes_as<double>(i);
      default: return std::nullopt;
    }
  }
  void check_number(std::size_t i) {
    if (number_bytes(i)) return;
    const std::string found = std::visit(
        [](const auto& each) {
          if constexpr (std::is_arithmetic_v<std::decay_t<decltype(each)>>)
            return fmt::format("{}", each);
          else return std::string();
        },
        value(i));
    const Type wanted = param(i).type;
    if (std::holds_alternative<double>(value(i)) && !info(wanted).floating)
      return report(i, fmt::format("expected an integer ({}), found the floating-point number {}",
                                   name(wanted), found));
    report(i, fmt::format("{} does not fit {}", found, name(wanted)));
  }

  // The matrices of the host have no addresses yet.
  void check_memory() {
    Arguments arguments;
    for (std::size_t i = 0; i < matched_.size(); ++i) {
      if (const HostMatrix* given = matrix(i)) arguments.add_memory(0, given->from.size());
      else if (param(i).pointer) arguments.add(std::get<Buffer>(value(i)));
      else arguments.add_bytes(*number_bytes(i));
    }
    detail::check_memory(compiled_, arguments, diags_);
  }

  Status send() {
    buffers_.resize(matched_.size());
    for (std::size_t i = 0; i < matched_.size(); ++i) {
      const HostMatrix* given = matrix(i);
      if (!given) {
        if (const auto number = number_bytes(i); number && !param(i).pointer)
          arguments_.add_bytes(*number);
        else arguments_.add(std::get<Buffer>(value(i)));
        continue;
      }
      auto buffer = device_.allocate(std::max<std::size_t>(given->from.size(), 1));
      if (!buffer) return buffer.diags();
      // An output counts as unwritten where the device keeps account of that.
      if (given->use != Use::out || !buffer->unwritten())
        if (Status status = buffer->write(given->from); !status) return status;
      arguments_.add(*buffer);
      buffers_[i] = *buffer;
    }
    name_buffers();
    return Done{};
  }

  // For findings: "C[4,0]" where rows are contiguous and without a gap, else "C[256]".
  void name_buffers() {
    for (std::size_t i = 0; i < matched_.size(); ++i) {
      const HostMatrix* given = matrix(i);
      if (!given) continue;
      detail::BufferName name{.name = param(i).name,
                              .type = bits(param(i).type) % 8 == 0 ? param(i).type : Type::none,
                              .bytes = given->from.size()};
      if (const auto& span = param(i).span) {
        const std::int64_t cols = number(span->cols);
        if (number(span->col_stride) == 1 && number(span->row_stride) == cols)
          name.shape = {static_cast<std::uint64_t>(number(span->rows)),
                        static_cast<std::uint64_t>(cols)};
      }
      detail::DeviceAccess::engine(device_).set_name(buffers_[i].address(), std::move(name));
    }
  }

  std::int64_t number(const MapNumber& x) const {
    return detail::computed(compiled_, arguments_, x);
  }

  Status execute(Dim3 grid) {
    grid_ = grid;
    const auto module = device_.load(compiled_.ptx, compiled_.name);
    if (!module) return module.diags();
    auto kernel = module->kernel(compiled_.name);
    if (!kernel) return kernel.diags();
    const std::size_t before = device_.findings().size();
    Status status = launch(*kernel, compiled_, grid, arguments_);
    if (status) status = device_.synchronize();
    const std::vector<Finding> all = device_.findings();
    const std::span<const Finding> own = std::span(all).subspan(before);
    const Diags found = diags_of(own, Level::Error);
    if (!found.ok()) return found;
    if (const Diags warnings = diags_of(own, Level::Warning); !warnings.empty())
      std::cerr << warnings.text();
    return status;
  }

  // The findings of a launch that are of a level: of one kind at one line of C++ the first, and how
  // many more.
  static Diags diags_of(std::span<const Finding> findings, Level level) {
    Diags out;
    const auto alike = [](const Finding& x, const Finding& y) {
      return x.id == y.id && !x.source.empty() && x.source == y.source;
    };
    for (auto at = findings.begin(); at != findings.end(); ++at) {
      const Rule* rule = find_rule(at->id);
      if (!rule || at->level != level) continue;
      const auto same = [&](const Finding& other) { return alike(*at, other); };
      if (std::any_of(findings.begin(), at, same)) continue;
      std::string message = at->source.empty() ? "" : at->source + ": ";
      message += at->message;
      if (at->block != no_block)
        message += fmt::format(", block ({}, {}, {})", at->block.x, at->block.y, at->block.z);
      if (at->lane >= 0) message += fmt::format(", thread {}", at->lane);
      if (const auto more = std::count_if(at + 1, findings.end(), same))
        message += fmt::format("; {} more at this line", more);
      out.add({.level = level, .id = rule->id, .message = std::move(message)});
    }
    return out;
  }

  // The row and column of an element, of a matrix of contiguous rows or columns.
  std::string place_of(std::size_t i, std::int64_t element) const {
    const auto& span = param(i).span;
    if (!span) return {};
    const std::int64_t down = number(span->row_stride), across = number(span->col_stride);
    if (std::min(down, across) != 1 || down == across) return {};
    const std::int64_t line = std::max(down, across), first = element / line,
                       second = element % line;
    const std::int64_t row = across == 1 ? first : second, col = across == 1 ? second : first;
    if (row >= number(span->rows) || col >= number(span->cols)) return {};  // of a batch
    return fmt::format(" (row {}, column {})", row, col);
  }

  Status receive() {
    for (std::size_t i = 0; i < matched_.size(); ++i) {
      const HostMatrix* given = matrix(i);
      if (!given || !given->to || given->from.empty()) continue;
      const auto left = given->use == Use::out ? buffers_[i].unwritten() : std::nullopt;
      if (left && left->bytes) {
        const auto width = static_cast<std::size_t>(bits(param(i).type));
        const std::size_t first = left->first * 8 / width;
        report(i, fmt::format("the kernel did not write {} of {} elements, the first of them "
                              "element {}{}, in a grid of {} x {} x {} blocks; in_out() is for a "
                              "matrix of which it writes a part",
                              left->bytes * 8 / width, given->from.size() * 8 / width, first,
                              place_of(i, static_cast<std::int64_t>(first)), grid_.x, grid_.y,
                              grid_.z));
        continue;
      }
      if (Status status = buffers_[i].read({given->to, given->from.size()}); !status) return status;
    }
    if (!diags_.ok()) return diags_;
    return Done{};
  }

  Device& device_;
  const Compiled& compiled_;
  std::vector<const RunArgument*> matched_;  // by parameter
  std::vector<Buffer> buffers_;              // by parameter; of host matrices
  Arguments arguments_;
  Dim3 grid_;
  Diags diags_;
};

}  // namespace

void detail::tell_warnings(const Compiled& compiled) {
  if (!compiled.warnings.empty()) std::cerr << compiled.warnings.text();
}

Status run_arguments(Device& device, const Compiled& compiled, Dim3 grid,
                     std::span<const RunArgument> arguments) {
  return Run(device, compiled)(grid, arguments);
}

}  // namespace tartan::TARTAN_ABI
