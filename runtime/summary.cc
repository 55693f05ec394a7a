// SPDX-License-Identifier: Apache-2.0
#include "runtime/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "compiler/support/counted.h"
#include "compiler/support/demangle.h"
#include "runtime/element.h"

namespace tartan::TARTAN_ABI {
namespace {

// "65,536"
std::string grouped(std::uint64_t number) {
  std::string out = fmt::format("{}", number);
  for (std::size_t at = out.size(); at > 3; at -= 3) out.insert(at - 3, ",");
  return out;
}

std::string grouped(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(number), noun, number == 1 ? "" : "s");
}

std::string device_of(const Outcome& outcome) {
  const bool named = outcome.device.find('(') != outcome.device.npos;  // "emulator (sm_90)"
  if (outcome.emulated && !named && !outcome.hardware.empty())
    return fmt::format("{} ({})", outcome.device, outcome.hardware);
  return outcome.device;
}

std::string findings_of(const Outcome& outcome) {
  std::size_t errors = 0, warnings = 0;
  for (const Finding& each : outcome.findings) {
    const auto level = outcome.level(each);
    errors += level == Level::Error;
    warnings += level == Level::Warning;
  }
  if (errors + warnings == 0) return "no findings";
  std::string out = errors ? detail::counted(errors, "error") : "";
  if (warnings)
    out += fmt::format("{}{}", out.empty() ? "" : ", ", detail::counted(warnings, "warning"));
  return out;
}

std::string text_of(const Expectation& expectation) {
  const Difference& difference = expectation.difference;
  const Comparison& by = expectation.comparison;
  const bool bytes = by.type == Type::b8;
  const std::string size = grouped(difference.elements, bytes ? "byte" : "element");
  const std::string buffer = printable(expectation.buffer);
  if (!expectation.ok())
    return fmt::format("{} differs from the reference in {} of {}", buffer,
                       grouped(difference.mismatched), size);
  if (is_bits(by.type) || (by.max_rel == 0 && by.max_abs == 0))
    return fmt::format("{} equals the reference ({})", buffer, size);
  return fmt::format("{} agrees with the reference ({}, {})", buffer, size, by.text());
}

}  // namespace

std::string summary(const Outcome& outcome, double seconds) {
  if (outcome.device.empty()) return {};
  std::string out = fmt::format(
      "{}: {}, {}, {:.2f} s, {}", printable(detail::demangled_name(outcome.kernel)),
      device_of(outcome), grouped(outcome.blocks, "CTA"), seconds, findings_of(outcome));
  for (const Expectation& each : outcome.expectations) out += ", " + text_of(each);
  if (!outcome.ended) out += ", not finished";
  else if (outcome.expectations.empty()) out += ", nothing compared";
  return out + '\n';
}

bool compared_nothing(const Outcome& outcome) {
  return outcome.ended && outcome.expectations.empty() && !outcome.has_errors();
}

void report_nothing_compared(Outcome& outcome) {
  if (!compared_nothing(outcome)) return;
  const Rule& rule = "nothing-compared"_rule;
  const auto level = outcome.levels.overridden(rule).value_or(rule.level);
  if (!level) return;
  outcome.warnings.add({.level = *level,
                        .id = rule.id,
                        .place = {outcome.manifest, 0, 0},
                        .message =
                            "nothing compared: the run shows only that the kernel ends; "
                            "compare by --reference or --expect, or by \"expect\" of a manifest"});
  outcome.unchecked = *level == Level::Error;
}

}  // namespace tartan::TARTAN_ABI
