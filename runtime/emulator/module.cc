// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <unordered_set>

#include "compiler/ptx/constant.h"
#include "runtime/emulator/numbers/small_float.h"
#include "runtime/emulator/observers.h"
#include "runtime/emulator/profile/profile.h"
#include "runtime/emulator/races/predecessor.h"
#include "runtime/emulator/schedules/exploration.h"
#include "runtime/emulator/trial.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// The bytes of a constant as an element of `type`.
std::uint64_t constant_bits(const ptx::Operand& operand, Type type) {
  if (operand.kind != ptx::OperandKind::Float) return operand.value;
  const double value =
      operand.type == Type::f64
          ? std::bit_cast<double>(operand.value)
          : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(operand.value)));
  switch (type) {
    case Type::f64: return operand.value;  // 0f...: its 32 bits as they are
    case Type::f16: return from_double<Half>(value).bits;
    case Type::bf16: return from_double<Bfloat>(value).bits;
    default:
      return operand.type == Type::f32 ? operand.value
                                       : std::bit_cast<std::uint32_t>(static_cast<float>(value));
  }
}

// What `generic(name)` or `name` names.
std::string_view bare_name(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == text.npos) return text;
  constexpr std::string_view around = " \t\r\n()";
  text.remove_prefix(text.find_first_not_of(around, open));
  return text.substr(0, text.find_first_of(around));
}

// 0xFF00(name): the bits of an address that the mask has.
std::uint64_t masked(std::string_view text, std::uint64_t address) {
  const auto mask = ptx::parse_literal(text.substr(0, text.find_first_of(" \t\r\n(")));
  return mask && mask->value ? (address & mask->value) >> std::countr_zero(mask->value) : 0;
}

}  // namespace

std::optional<std::uint64_t> Machine::allocate(std::uint64_t bytes, bool constant) {
  const std::unique_lock alone(running_);
  return memory_.allocate(bytes, constant);
}

std::optional<std::uint64_t> Machine::allocate_buffer(std::uint64_t bytes) {
  const std::unique_lock alone(running_);
  const auto address = memory_.allocate(bytes);
  if (address && options.checks == Checks::all && !memory_.set_undefined(*address)) {
    memory_.free(*address);
    return std::nullopt;
  }
  return address;
}

std::optional<Unwritten> Machine::unwritten(std::uint64_t address, std::uint64_t bytes) {
  const std::unique_lock alone(running_);
  const Allocation* const found = memory_.find(address, bytes);
  if (!found || !found->undefined) return std::nullopt;
  const std::span<const std::byte> shadow{found->undefined + (address - found->address), bytes};
  const auto nobody_wrote = [](std::byte bits) { return bits != std::byte{0}; };
  const auto first = std::ranges::find_if(shadow, nobody_wrote);
  return Unwritten{static_cast<std::size_t>(std::ranges::count_if(shadow, nobody_wrote)),
                   static_cast<std::size_t>(first - shadow.begin())};
}

void Machine::free(std::uint64_t address) {
  const std::unique_lock alone(running_);
  memory_.free(address);
}

void Machine::set_name(std::uint64_t address, detail::BufferName name) {
  const std::unique_lock alone(running_);
  memory_.set_name(address, std::move(name));
}

bool Machine::open_heap() {
  const std::unique_lock alone(running_);
  if (heap.is_open()) return true;
  const auto address = memory_.allocate(Heap::bytes);
  if (address) heap.open(*address);
  return address.has_value();
}

// The later a level stands in Trust, the less it is trusted; -1: nothing is in question.
static int rank(const NumericTrust& trust) {
  for (int level = 0; level < trust_count; ++level)
    if (emulator::name(static_cast<Trust>(level)) == trust.level) return level;
  return -1;
}

void Machine::add(const Report& report, const std::optional<NumericBasis>& basis) {
  const std::scoped_lock lock(mutex_);
  report_.seconds += report.seconds;
  report_.warp_instructions += report.warp_instructions;
  report_.lane_instructions += report.lane_instructions;
  report_.multiply_adds += report.multiply_adds;
  emulator::add(report_.instructions, report.instructions);
  if (basis && rank(report_.trust) < static_cast<int>(basis->trust))
    report_.trust = {std::string(emulator::name(basis->trust)), basis->instruction,
                     std::string(basis->source)};
  if (rank(report_.trust) < rank(report.trust)) report_.trust = report.trust;
}

void Machine::add(const Finding& finding, Diag failure) {
  const std::scoped_lock lock(mutex_);
  findings_.push_back(finding);
  failures_.add(std::move(failure));
}

Status Machine::take_failures() {
  const std::scoped_lock lock(mutex_);
  predecessor_.reset();
  if (failures_.ok()) return Done{};
  return std::exchange(failures_, {});
}

std::shared_ptr<Predecessor> Machine::take_predecessor() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(predecessor_, nullptr);
}

void Machine::set_predecessor(std::shared_ptr<Predecessor> launch) {
  const std::scoped_lock lock(mutex_);
  predecessor_ = std::move(launch);
}

std::vector<Finding> Machine::findings() const {
  const std::scoped_lock lock(mutex_);
  return findings_;
}

void Machine::clear_findings() {
  const std::scoped_lock lock(mutex_);
  findings_.clear();
}

Report Machine::report() const {
  const std::scoped_lock lock(mutex_);
  return report_;
}

Module::Module(std::shared_ptr<Machine> machine, ptx::Module tree, Arch target)
    : machine_(std::move(machine)),
      tree_(std::make_shared<ptx::Module>(std::move(tree))),
      names_(*tree_),
      target_(target) {}

Module::~Module() {
  for (const std::uint64_t address : addresses_) machine_->free(address);
}

Result<std::optional<Symbol>> Module::place(const ptx::Variable& variable) {
  const bool constant = variable.space == StateSpace::constant;
  if (variable.space != StateSpace::global && !constant) return std::optional<Symbol>();
  // Only another module could say the size. With a size the assembler ignores .extern.
  if (variable.linkage == ".extern" && variable.unsized) return std::optional<Symbol>();
  std::uint64_t bytes = size_with_row(variable);
  if (variable.unsized && variable.initialiser) {
    const ptx::Operand& value = tree_->operands[*variable.initialiser];
    bytes = static_cast<std::uint64_t>(std::max(bits(variable.type), 8)) / 8 *
            std::max<std::uint64_t>(value.count, 1);
  }
  const auto address = machine_->allocate(bytes, constant);
  if (!address)
    return {"out-of-memory"_rule,
            fmt::format("out of host memory: variable {} needs {} bytes", variable.name, bytes)};
  addresses_.push_back(*address);
  return std::optional<Symbol>({constant ? Window::constant : Window::global, *address,
                                variable.numbered ? size_of(variable) : bytes});
}

Status Module::place_variables() {
  Diags diags;
  std::vector<const ptx::Variable*> variables, placed;
  std::unordered_set<std::string_view> defined;
  for (const ptx::Item& item : tree_->items) {
    if (item.kind != ptx::ItemKind::Variable) continue;
    variables.push_back(&tree_->variables[item.index]);
    if (variables.back()->linkage != ".extern") defined.insert(variables.back()->name);
  }
  for (const ptx::Variable* each : variables) {
    const ptx::Variable& variable = *each;
    if (variable.linkage == ".extern" && !defined.insert(variable.name).second) continue;
    auto symbol = place(variable);
    if (!symbol) return symbol.diags();
    if (!*symbol) continue;
    globals_.named.add(variable, **symbol);
    placed.push_back(&variable);
  }
  for (const ptx::Variable* variable : placed)
    if (variable->initialiser)
      if (const Status status = initialise(*variable, *globals_.named.find(variable->name), {});
          !status)
        diags.append(status.diags());
  for (const ptx::Function& function : tree_->functions)
    if (const Status status = place_nested(function); !status) diags.append(status.diags());
  if (!diags.ok()) return diags;
  return Done{};
}

// Variables inside a function are known from their declaration to the end of the block.
Status Module::place_nested(const ptx::Function& function) {
  Diags diags;
  std::vector<Symbols> scopes(1);
  for (const ptx::Statement& statement : function.statements) {
    if (statement.kind == ptx::StatementKind::BlockBegin) scopes.emplace_back();
    if (statement.kind == ptx::StatementKind::BlockEnd) scopes.pop_back();
    if (statement.kind != ptx::StatementKind::Variable) continue;
    const ptx::Variable& variable = tree_->variables[statement.index];
    auto symbol = place(variable);
    if (!symbol) return symbol.diags();
    if (!*symbol) continue;
    globals_.nested[statement.index] = **symbol;
    scopes.back().add(variable, **symbol);
    if (variable.initialiser)
      if (const Status status = initialise(variable, **symbol, scopes); !status)
        diags.append(status.diags());
  }
  if (!diags.ok()) return diags;
  return Done{};
}

std::optional<Symbol> Module::find(std::string_view name, std::span<const Symbols> scopes) const {
  for (std::size_t i = scopes.size(); i > 0; --i)
    if (const auto found = scopes[i - 1].find(name)) return found;
  if (const auto found = globals_.named.find(name)) return found;
  if (const ptx::Function* function = names_.find(name))
    return Symbol{Window::global, address_of(*tree_, *function), 0};
  return std::nullopt;
}

// {1, 2, {3, 4}, name+8, generic(name), 0xFF(name)}: elements in order, nested braces flattened by
// rows.
Status Module::initialise(const ptx::Variable& variable, const Symbol& symbol,
                          std::span<const Symbols> scopes) {
  std::vector<std::byte> bytes(symbol.bytes);
  std::byte* at = bytes.data();
  std::byte* const end = at + symbol.bytes;
  const std::size_t size = static_cast<std::size_t>(std::max(bits(variable.type), 8)) / 8;
  Diags diags;
  const auto write = [&](const ptx::Operand& operand, const auto& self) -> void {
    if (operand.kind == ptx::OperandKind::Vector) {
      for (const ptx::Operand& child : tree_->children(operand)) self(child, self);
      return;
    }
    std::uint64_t value = 0;
    if (operand.kind == ptx::OperandKind::Name) {
      const bool is_masked = operand.count != 0;
      const ptx::Operand& address = is_masked ? tree_->children(operand)[0] : operand;
      const std::string_view name = bare_name(address.text);
      const auto found = find(name, scopes);
      if (!found) {
        diags.report("unsupported-instruction"_rule, tree_->source->place(operand.offset),
                     fmt::format("the initializer of {} names {}, which is neither a variable in "
                                 "memory nor a function",
                                 variable.name, name));
        return;
      }
      value = found->address + address.value;
      // Without generic() it counts from the start of the variable's space.
      if (found->window == Window::constant && name.size() == address.text.size())
        value -= constant_window;
      if (is_masked) value = masked(operand.text, value);
    } else {
      value = constant_bits(operand, variable.type);
    }
    if (at + size <= end) std::memcpy(at, &value, std::min<std::size_t>(size, 8));
    at += size;
  };
  write(tree_->operands[*variable.initialiser], write);
  if (!diags.ok()) return diags;
  machine_->access(symbol.address, symbol.bytes,
                   [&](std::byte* host) { std::ranges::copy(bytes, host); });
  return Done{};
}

std::vector<std::string> Module::kernels() const {
  std::vector<std::string> out;
  for (std::string_view name : tree_->kernels()) out.emplace_back(name);
  return out;
}

Decoder Module::decoder(Diags& diags) const {
  Decoder made(*tree_, globals_, hardware_of(hardware()).value_or(Hardware::sm_70), diags);
  made.set_deadline(detail::deadline_of(machine_->options, detail::Clock::now()));
  return made;
}

Result<detail::EngineVariable> Module::variable(const std::string& name) {
  const auto found = globals_.named.find(name);
  if (!found)
    return detail::unknown_variable(tree_->source->name(), name, tree_->global_variables());
  return detail::EngineVariable{found->address, found->bytes};
}

Diags Module::warnings() {
  Diags diags, out;
  decoder(diags).survey();
  std::set<std::pair<int, std::string>> known;
  for (Diag diag : diags) {
    if (diag.id == "time-limit"_rule.id) continue;  // it says nothing of the text
    if (!known.emplace(diag.place.line, diag.message).second) continue;
    diag.level = Level::Warning;
    out.add(std::move(diag));
  }
  return out;
}

Result<std::shared_ptr<detail::EngineKernel>> Module::kernel(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<const Program>& program = programs_[name];
  if (!program) {
    const ptx::Function* function = tree_->function(name);
    if (!function || !function->entry || !function->body)
      return {"unknown-kernel"_rule, fmt::format("unknown kernel {}; the module has {}", name,
                                                 fmt::join(kernels(), ", "))};
    Diags diags;
    Decoder one = decoder(diags);
    const DeviceOptions& options = machine_->options;
    observe(one, options, machine_->algebra);
    if (!options.schedule.empty() || (options.exploration && options.exploration->schedule))
      one.set_scheduled();
    auto decoded = std::make_shared<Program>(one.decode(*function));
    if (!diags.ok()) return diags;
    if (decoded->uses_heap && !machine_->open_heap())
      return {"out-of-memory"_rule, "out of host memory for the device heap"};
    program = std::move(decoded);
  }
  return std::shared_ptr<detail::EngineKernel>(
      std::make_shared<Kernel>(shared_from_this(), program));
}

// A grid of clusters as one of blocks. NVIDIA's driver 580 multiplies twice where it compares with
// the largest grid.
Status Kernel::count_blocks(Dim3& grid) const {
  const Dim3 cluster = program_->grid_unit;
  if (cluster.count() <= 1) return Done{};
  Diags diags;
  const auto count = [&](char axis, std::uint32_t& extent, std::uint32_t size,
                         std::uint32_t largest) {
    const std::uint32_t most = largest / size / size;
    if (extent > most)
      diags.report("launch-arguments"_rule, {},
                   fmt::format("grid.{}: expected 1 to {} clusters of {} x {} x {} blocks "
                               "(.blocksareclusters), found {}",
                               axis, most, cluster.x, cluster.y, cluster.z, extent));
    else extent *= size;
  };
  count('x', grid.x, cluster.x, detail::largest_grid.x);
  count('y', grid.y, cluster.y, detail::largest_grid.y);
  count('z', grid.z, cluster.z, detail::largest_grid.z);
  if (!diags.ok()) return diags;
  return Done{};
}

}  // namespace tartan::TARTAN_ABI::emulator
