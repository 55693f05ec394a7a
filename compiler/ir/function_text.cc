// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/function_text.h"

#include <fmt/format.h>

#include <bit>
#include <map>

namespace tartan::TARTAN_ABI::ir {
namespace {

class Text {
 public:
  explicit Text(const Function& function) : function_(function) {}

  std::string write() {
    std::string params;
    for (const Param& each : function_.params)
      params +=
          fmt::format("{}{} {}", params.empty() ? "" : ", ",
                      each.type == Type::none ? name(each.space) : name(each.type), each.name);
    out_ =
        fmt::format("kernel {}({}) {}\nframe\n", function_.name, params, function_.target.text());
    write(Function::frame);
    out_ += "body\n";
    write(Function::body);
    return std::move(out_);
  }

 private:
  void write(std::uint32_t region) {
    ++depth_;
    for (const std::uint32_t each : function_.regions[region].operations)
      write(function_.operations[each]);
    --depth_;
  }

  void write(const Operation& operation) {
    if (is_literal(operation)) {
      literals_[function_.results[operation.results.first].id] = literal(operation);
      return;
    }
    std::string line(static_cast<std::size_t>(2 * depth_), ' ');
    std::string results;
    for (const Operand& each : Function::part(function_.results, operation.results))
      results += (results.empty() ? "" : ", ") + defined(each);
    if (!results.empty()) line += results + " = ";
    line += row_of(operation.kind).name;
    if (operation.form != Operation::none)
      line += " " + isa::spell(function_.forms[operation.form]);
    else if (operation.type != Type::none && results.empty())
      line += fmt::format(".{}", name(operation.type));
    for (const Operand& each : Function::part(function_.operands, operation.operands))
      line += " " + used(each.id);
    for (const std::int64_t each : Function::part(function_.numbers, operation.numbers))
      line += fmt::format(" #{}", each);
    for (const std::string& each : Function::part(function_.texts, operation.texts))
      line += fmt::format(" \"{}\"", each);
    write(line, operation.place);
    for (std::uint32_t i = 0; i < operation.regions.count; ++i)
      write(operation, operation.regions.first + i, i);
  }

  // Constants are written where they are used.
  static bool is_literal(const Operation& operation) {
    return operation.kind == OperationKind::constant ||
           operation.kind == OperationKind::real_constant;
  }

  std::string literal(const Operation& operation) const {
    const std::int64_t number = function_.numbers[operation.numbers.first];
    return operation.kind == OperationKind::constant
               ? fmt::format("{}", number)
               : fmt::format("{:#}", std::bit_cast<double>(number));
  }

  std::string used(int id) const {
    if (id < 0) return "-";
    const auto found = literals_.find(id);
    return found == literals_.end() ? fmt::format("%{}", id) : found->second;
  }

  // A line, and its C++ place where that is another than the line's before.
  void write(const std::string& line, std::uint32_t place) {
    out_ += line;
    const std::source_location& at = function_.places[place];
    const std::source_location& before = function_.places[place_];
    if (place && (at.line() != before.line() || at.file_name() != before.file_name())) {
      const std::string_view file = at.file_name();
      out_ += fmt::format("  // {}:{}", file.substr(file.rfind('/') + 1), at.line());
    }
    if (place) place_ = place;
    out_ += '\n';
  }

  // A region after its operation, which each further one names again.
  void write(const Operation& operation, std::uint32_t region, std::uint32_t number) {
    const Region& here = function_.regions[region];
    const std::string indent(static_cast<std::size_t>(2 * depth_), ' ');
    if (number > 0)
      out_ +=
          fmt::format("{}{}\n", indent, operation.kind == OperationKind::if_else ? "else" : "do");
    for (const Operand& each : here.arguments)
      out_ += fmt::format("{}  {}\n", indent, defined(each));
    write(region);
    if (here.result.id >= 0) out_ += fmt::format("{}  -> {}\n", indent, used(here.result.id));
  }

  static std::string defined(const Operand& result) {
    const std::string_view what =
        result.type == Type::none ? name(result.space) : name(result.type);
    return what.empty() ? fmt::format("%{}", result.id) : fmt::format("%{}: {}", result.id, what);
  }

  const Function& function_;
  std::map<int, std::string> literals_;  // by id
  std::string out_;
  int depth_ = 0;
  std::uint32_t place_ = 0;
};

}  // namespace

std::string text(const Function& function) { return Text(function).write(); }

}  // namespace tartan::TARTAN_ABI::ir
