// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/scopes.h"

#include "compiler/isa/special_registers.h"

namespace tartan::TARTAN_ABI::verify {

std::string_view base_name(std::string_view name) {
  if (name.starts_with("generic(") && name.ends_with(')')) return name.substr(8, name.size() - 9);
  return name.substr(0, name.find('.'));
}

namespace {

Opaque opaque_of(const ptx::Variable& variable) {
  if (variable.type != Type::none) return Opaque::No;
  const auto says = [&](std::string_view word) {
    return variable.attributes.find(word) != std::string_view::npos;
  };
  return says(".texref")       ? Opaque::Texture
         : says(".samplerref") ? Opaque::Sampler
         : says(".surfref")    ? Opaque::Surface
                               : Opaque::No;
}

NameInfo info_of(const ptx::Variable& variable) {
  return {.kind = variable.space == StateSpace::reg ? NameKind::Register : NameKind::Variable,
          .type = variable.type,
          .vector = variable.vector,
          .space = variable.space,
          .opaque = opaque_of(variable),
          .variable = &variable};
}

}  // namespace

ModuleNames::ModuleNames(const ptx::Module& module) {
  for (const ptx::Item& item : module.items) {
    if (item.kind == ptx::ItemKind::Variable) {
      const ptx::Variable& variable = module.variables[item.index];
      NameInfo info = info_of(variable);
      info.offset = variable.offset;
      if (variable.numbered) rows_.try_emplace(variable.name, Row{*variable.numbered, info});
      else names_.try_emplace(variable.name, info);
    } else if (item.kind == ptx::ItemKind::Function) {
      const ptx::Function& function = module.functions[item.index];
      names_.try_emplace(function.name,
                         NameInfo{.kind = NameKind::Function, .offset = function.offset});
    }
  }
}

NameInfo ModuleNames::find(std::string_view name) const {
  if (const auto at = names_.find(name); at != names_.end()) return at->second;
  const auto numbered = rows_.empty() ? std::nullopt : ptx::numbered_name(name);
  if (!numbered || !numbered->plain) return {};
  const auto row = rows_.find(numbered->row);
  return row != rows_.end() && numbered->number < row->second.count ? row->second.info : NameInfo{};
}

Scopes::Scopes(const ptx::Module& module, const ModuleNames& names, const ptx::Function& function)
    : module_(module), module_names_(names), function_(function) {
  collect_labels();
  show_labels(0);
  restart();
}

void Scopes::collect_labels() {
  std::vector<std::uint32_t> around{0};
  block_labels_.resize(1);
  for (const ptx::Statement& statement : function_.statements) {
    if (statement.kind == ptx::StatementKind::BlockBegin) {
      around.push_back(static_cast<std::uint32_t>(block_labels_.size()));
      block_labels_.emplace_back();
    } else if (statement.kind == ptx::StatementKind::BlockEnd && around.size() > 1) {
      around.pop_back();
    } else if (statement.kind == ptx::StatementKind::Label) {
      block_labels_[around.back()].push_back(statement.index);
    }
  }
}

// If a block declares a name twice, the first declaration counts.
void Scopes::show_labels(std::uint32_t block) {
  const auto& labels = block_labels_[block];
  for (auto at = labels.rbegin(); at != labels.rend(); ++at)
    labels_[module_.labels[*at].name].push_back(*at);
}

void Scopes::hide_labels(std::uint32_t block) {
  for (const std::uint32_t label : block_labels_[block])
    labels_[module_.labels[label].name].pop_back();
}

void Scopes::restart() {
  while (!blocks_.empty()) leave_block();
  row_order_.clear();
  rows_.clear();
  last_rows_ = nullptr;
  plain_order_.clear();
  plain_.clear();
  plain_rows_.clear();
  hidden_rows_ = false;
  begun_ = 0;
  for (const auto* list : {&function_.results, &function_.params})
    for (const std::uint32_t index : *list) {
      const ptx::Variable& variable = module_.variables[index];
      NameInfo info = info_of(variable);
      info.constant = function_.entry;
      declare(variable.name, info);
    }
}

void Scopes::declare(std::string_view name, NameInfo info) {
  plain_order_.emplace_back(name, info);
  plain_[name].push_back(info);
  if (const auto numbered = ptx::numbered_name(name)) {
    plain_rows_.insert(numbered->row);
    hidden_rows_ = hidden_rows_ || rows_.contains(numbered->row);
  }
}

void Scopes::declare_row(std::string_view name, Row row) {
  row_order_.push_back(name);
  rows_[name].push_back(row);
  last_rows_ = nullptr;
  hidden_rows_ = hidden_rows_ || plain_rows_.contains(name);
}

void Scopes::enter(const ptx::Statement& statement) {
  switch (statement.kind) {
    case ptx::StatementKind::Registers: {
      const ptx::Registers& registers = module_.registers[statement.index];
      const NameInfo info{.kind = NameKind::Register,
                          .type = registers.type,
                          .vector = registers.vector,
                          .space = StateSpace::reg};
      if (registers.numbered) declare_row(registers.name, {registers.count, info});
      else declare(registers.name, info);
      break;
    }
    case ptx::StatementKind::Variable: {
      const ptx::Variable& variable = module_.variables[statement.index];
      NameInfo info = info_of(variable);
      info.local_param = variable.space == StateSpace::param;
      if (variable.numbered) declare_row(variable.name, {*variable.numbered, info});
      else declare(variable.name, info);
      break;
    }
    case ptx::StatementKind::BlockBegin: enter_block(); break;
    case ptx::StatementKind::BlockEnd:
      if (!blocks_.empty()) leave_block();
      break;
    default: break;
  }
}

void Scopes::enter_block() {
  blocks_.push_back({row_order_.size(), plain_order_.size(), ++begun_});
  show_labels(begun_);
}

void Scopes::leave_block() {
  const Block block = blocks_.back();
  blocks_.pop_back();
  while (row_order_.size() > block.rows) {
    rows_[row_order_.back()].pop_back();
    row_order_.pop_back();
  }
  while (plain_order_.size() > block.plain) {
    plain_[plain_order_.back().first].pop_back();
    plain_order_.pop_back();
  }
  hide_labels(block.number);
}

const std::vector<Scopes::Row>& Scopes::rows_named(std::string_view name) const {
  static const std::vector<Row> none;
  if (last_rows_ && last_name_ == name) return *last_rows_;
  const auto found = rows_.find(name);
  last_name_ = name;
  last_rows_ = found == rows_.end() ? &none : &found->second;
  return *last_rows_;
}

const Scopes::Row* Scopes::row_of(std::string_view name) const {
  const auto numbered = ptx::numbered_name(name);
  if (!numbered || !numbered->plain) return nullptr;
  const std::vector<Row>& rows = rows_named(numbered->row);
  for (auto row = rows.rbegin(); row != rows.rend(); ++row)
    if (numbered->number < row->count) return &*row;
  return nullptr;
}

NameInfo Scopes::find(std::string_view name) const {
  const Row* row = row_of(name);
  if (row && !hidden_rows_) return row->info;
  if (const auto at = plain_.find(name); at != plain_.end() && !at->second.empty())
    return at->second.back();
  if (row) return row->info;
  if (label(name)) return {.kind = NameKind::Label};
  if (isa::find_special_register(name)) return {.kind = NameKind::Special};
  return module_names_.find(name);
}

std::optional<std::uint32_t> Scopes::label(std::string_view name) const {
  const auto found = labels_.find(name);
  if (found == labels_.end() || found->second.empty()) return std::nullopt;
  return found->second.back();
}

}  // namespace tartan::TARTAN_ABI::verify
