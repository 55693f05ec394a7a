// SPDX-License-Identifier: Apache-2.0
#include "runtime/results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>

#include "runtime/buffer_name.h"
#include "runtime/element.h"
#include "runtime/npy.h"

namespace tartan::TARTAN_ABI {
namespace {

constexpr std::uint64_t most_printed = 1024;  // elements of a part
constexpr std::uint64_t at_edge = 3;          // of each dimension, where there are more
constexpr std::uint64_t in_line = 8;          // elements of an array of one dimension

const std::vector<std::byte>* results_of(const Outcome& outcome, const std::string& name) {
  for (const auto& [buffer, bytes] : outcome.results)
    if (buffer == name) return &bytes;
  return nullptr;
}

// The indices of a dimension that are shown; none: those left out are there.
using Shown = std::vector<std::optional<std::uint64_t>>;

Shown shown_of(const IndexRange& range, bool all) {
  Shown out;
  const std::uint64_t count = range.last - range.first;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!all && count > 2 * at_edge + 1 && i == at_edge) {
      out.emplace_back();
      i = count - at_edge;
    }
    out.emplace_back(range.first + i);
  }
  return out;
}

// One part of a buffer as text.
class Printed {
 public:
  Printed(const ManifestBuffer& buffer, const std::vector<std::byte>& bytes,
          const std::vector<std::pair<std::size_t, std::size_t>>& unwritten)
      : buffer_(buffer), bytes_(bytes), unwritten_(unwritten), shape_(buffer.extents()) {}

  std::string operator()(const Slice& slice) {
    const auto ranges = slice.of(shape_);
    if (!ranges) return {};  // the manifest's reader has refused it
    std::uint64_t elements = 1;
    for (const IndexRange& each : *ranges) elements *= each.last - each.first;
    for (const IndexRange& each : *ranges)
      shown_.push_back(shown_of(each, elements <= most_printed));
    out_ = fmt::format("{}[{}], {}:\n", printable(buffer_.name),
                       slice.text().empty() ? ":" : slice.text(),
                       detail::shape_text(buffer_.type, shape_));
    if (shape_.size() == 1) row_of_one();
    else matrices({});
    return out_;
  }

 private:
  std::string element(std::uint64_t index) const {
    const std::size_t size = element_size(buffer_.type), at = index * size;
    for (const auto& [first, count] : unwritten_)
      if (first < at + size && at < first + count) return "?";
    return element_text(buffer_.type, load_element(bytes_, index, size));
  }

  // The elements of one row, "..." for those left out.
  std::vector<std::string> row(const std::vector<std::uint64_t>& outer) const {
    std::uint64_t first = 0;
    for (std::size_t i = 0; i < outer.size(); ++i) first = (first + outer[i]) * shape_[i + 1];
    std::vector<std::string> out;
    for (const auto& index : shown_.back()) out.push_back(index ? element(first + *index) : "...");
    return out;
  }

  void row_of_one() {
    const std::vector<std::string> all = row({});
    std::vector<std::pair<std::string, std::vector<std::string>>> lines;
    for (std::size_t i = 0; i < all.size(); i += in_line) {
      const std::size_t end = std::min<std::size_t>(i + in_line, all.size());
      const auto& first = shown_.back()[i];
      lines.push_back({first ? fmt::format("{}", *first) : "...",
                       {all.begin() + static_cast<std::ptrdiff_t>(i),
                        all.begin() + static_cast<std::ptrdiff_t>(end)}});
    }
    write(lines);
  }

  // Matrices of the last two dimensions, one for each index of the others.
  void matrices(const std::vector<std::uint64_t>& outer) {
    const std::size_t dimension = outer.size();
    if (dimension + 2 < shape_.size()) {
      for (const auto& index : shown_[dimension]) {
        if (!index) {
          out_ += " ...\n";
          continue;
        }
        std::vector<std::uint64_t> inner = outer;
        inner.push_back(*index);
        matrices(inner);
      }
      return;
    }
    if (!outer.empty()) out_ += fmt::format(" [{}]\n", fmt::join(outer, ","));
    std::vector<std::pair<std::string, std::vector<std::string>>> lines;
    for (const auto& index : shown_[dimension]) {
      std::vector<std::uint64_t> of_row = outer;
      if (!index) {
        lines.emplace_back("...", std::vector<std::string>{});
        continue;
      }
      of_row.push_back(*index);
      lines.emplace_back(fmt::format("{}", *index), row(of_row));
    }
    write(lines);
  }

  // Labels and columns, to the right.
  void write(const std::vector<std::pair<std::string, std::vector<std::string>>>& lines) {
    std::size_t label = 0;
    std::vector<std::size_t> widths;
    for (const auto& [name, cells] : lines) {
      label = std::max(label, name.size());
      widths.resize(std::max(widths.size(), cells.size()));
      for (std::size_t i = 0; i < cells.size(); ++i)
        widths[i] = std::max(widths[i], cells[i].size());
    }
    for (const auto& [name, cells] : lines) {
      out_ += fmt::format("  {:>{}}{}", name, label, cells.empty() ? "" : ":");
      for (std::size_t i = 0; i < cells.size(); ++i)
        out_ += fmt::format("  {:>{}}", cells[i], widths[i]);
      out_ += '\n';
    }
  }

  const ManifestBuffer& buffer_;
  const std::vector<std::byte>& bytes_;
  const std::vector<std::pair<std::size_t, std::size_t>>& unwritten_;
  const std::vector<std::uint64_t> shape_;
  std::vector<Shown> shown_;  // by dimension
  std::string out_;
};

}  // namespace

Diags save_results(const Manifest& manifest, const Outcome& outcome) {
  Diags out;
  for (const ManifestBuffer* each : manifest.all_buffers()) {
    if (each->save.empty()) continue;
    const std::vector<std::byte>* results = results_of(outcome, each->name);
    if (!results) {
      if (!outcome.device.empty())
        out.add({.level = Level::Warning,
                 .id = "file"_rule.id,
                 .place = {manifest.name, 0, 0},
                 .message = fmt::format("{} is not written: the run did not end, and buffer {} has "
                                        "no results",
                                        each->save, each->name)});
      continue;
    }
    const std::string_view raw(reinterpret_cast<const char*>(results->data()), results->size());
    const Status written = write_file(
        each->save,
        each->type == Type::none ? std::string(raw) : npy_text(each->type, each->shape, *results));
    if (!written) out.append(written.diags());
  }
  return out;
}

std::string printed_results(const Manifest& manifest, const Outcome& outcome) {
  static const std::vector<std::pair<std::size_t, std::size_t>> all_written;
  std::string out;
  for (const ManifestBuffer* each : manifest.all_buffers()) {
    const std::vector<std::byte>* results = results_of(outcome, each->name);
    const auto unwritten = outcome.unwritten.find(each->name);
    for (const Slice& slice : each->prints)
      if (results)
        out +=
            Printed(*each, *results,
                    unwritten == outcome.unwritten.end() ? all_written : unwritten->second)(slice);
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI
