// SPDX-License-Identifier: Apache-2.0
// The C++ sources and the PTX, and which line is made by which.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "tools/explore/page.h"

namespace tartan::tools::explore {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_source_bytes = 512 << 10;

// A text may name any file of this machine: only what looks like a program's source is shown.
bool is_source(const fs::path& path) {
  constexpr std::string_view kinds[] = {".cc", ".cpp", ".cxx", ".c",   ".cu", ".h",
                                        ".hh", ".hpp", ".cuh", ".inl", ".py"};
  return std::ranges::find(kinds, path.extension().string()) != std::end(kinds);
}

std::string_view of_built_in_kernel(std::string_view name) {
  constexpr std::string_view root = "tartan/";  // as TartanFloor.cmake names it
  const std::size_t at = name.rfind("tartan/kernels/");
  return at == std::string_view::npos ? std::string_view()
                                      : embedded(name.substr(at + root.size()));
}

std::optional<std::string> read(const fs::path& path) {
  std::error_code error;
  if (!is_source(path) || !fs::is_regular_file(path, error)) return std::nullopt;
  if (fs::file_size(path, error) > most_source_bytes || error) return std::nullopt;
  const auto source = read_source(path.string());
  if (!source) return std::nullopt;
  return std::string(source->text());
}

// The text of a source that the PTX names: from where it was compiled, or beside the PTX.
std::optional<std::string> text_of(const std::string& name, const fs::path& folder) {
  if (const std::string_view text = of_built_in_kernel(name); !text.empty())
    return std::string(text);
  for (const fs::path& path : {fs::path(name), folder / name, folder / fs::path(name).filename()})
    if (auto text = read(path)) return text;
  return std::nullopt;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The files that lines of the text come from, each once.
class Sources {
 public:
  explicit Sources(fs::path folder) : folder_(std::move(folder)) {}

  int index(const std::string& name) {
    const auto [at, is_new] = known_.emplace(name, list_.size());
    if (!is_new) return static_cast<int>(at->second);
    const auto text = text_of(name, folder_);
    list_.push_back({{"name", last_part(name)}, {"path", name}, {"text", nullptr}});
    if (text) list_.back()["text"] = *text;
    return static_cast<int>(at->second);
  }
  // The file of a comment or a finding, which may have only the last part of its name.
  std::optional<int> find(const std::string& name) const {
    for (const auto& [known, index] : known_)
      if (known == name || last_part(known) == name) return static_cast<int>(index);
    return std::nullopt;
  }
  Json take() { return std::move(list_); }

 private:
  fs::path folder_;
  std::map<std::string, std::size_t> known_;
  Json list_ = Json::array();
};

using Origin = std::pair<std::uint32_t, std::uint32_t>;  // number of the file, line; 0: unknown

// Where each line of the text comes from, as its .loc directives say.
std::vector<Origin> origins(const ptx::Module& module) {
  const Source& text = *module.source;
  std::vector<Origin> out(
      static_cast<std::size_t>(text.line(static_cast<std::uint32_t>(text.text().size())) + 1));
  const auto mark = [&](std::uint32_t offset, std::uint32_t end, Origin from) {
    for (int line = text.line(offset), last = text.line(end ? end - 1 : 0); line <= last; ++line)
      out[static_cast<std::size_t>(line)] = from;
  };
  for (const ptx::Function& function : module.functions) {
    Origin now;
    for (const ptx::Statement& statement : function.statements) {
      if (statement.kind == ptx::StatementKind::Location) {
        const ptx::Location& at = module.locations[statement.index];
        now = {at.file, at.line};
        mark(at.offset, at.offset + 1, now);
      } else if (statement.kind == ptx::StatementKind::Instruction) {
        const ptx::Instruction& instruction = module.instructions[statement.index];
        mark(instruction.offset, instruction.end, now);
      }
    }
  }
  return out;
}

std::optional<Decision> decision_of(std::string_view comment) {
  // "// gemm.cc:80: shared A: 32x128:(128,1) swizzle<3,3,4>"
  comment.remove_prefix(std::min<std::size_t>(3, comment.size()));
  const std::size_t colon = comment.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  Decision out{.file = std::string(comment.substr(0, colon))};
  comment.remove_prefix(colon + 1);
  const auto [end, error] =
      std::from_chars(comment.data(), comment.data() + comment.size(), out.line);
  comment.remove_prefix(static_cast<std::size_t>(end - comment.data()));
  if (error != std::errc() || !comment.starts_with(": ")) return std::nullopt;
  comment.remove_prefix(2);
  const std::size_t split = comment.find(": ");
  if (split == std::string_view::npos) return std::nullopt;
  out.what = comment.substr(0, split);
  out.taken = comment.substr(split + 2);
  return out;
}

}  // namespace

std::vector<Decision> decisions_of_comments(std::string_view ptx) {
  std::vector<Decision> out;
  if (!ptx.starts_with("// Generated by Tartan")) return out;
  while (ptx.starts_with("//")) {
    const std::size_t end = ptx.find('\n');
    if (auto decision = decision_of(ptx.substr(0, end))) out.push_back(std::move(*decision));
    ptx.remove_prefix(end == std::string_view::npos ? ptx.size() : end + 1);
  }
  return out;
}

Code code_part(const Subject& subject, const ptx::Module& module) {
  Sources sources(fs::path(subject.ptx->name()).parent_path());
  Json at = Json::array();
  const auto lines = origins(module);
  for (std::size_t line = 1; line < lines.size(); ++line) {
    const auto [file, from] = lines[line];
    const std::string name = std::string(module.file_name(file));
    if (!from || name.empty()) at.push_back(0);
    else at.push_back({sources.index(name), from});
  }
  Json choices = Json::array();
  for (const Decision& each : subject.decisions) {
    const auto file = sources.find(each.file);
    choices.push_back({{"file", file ? Json(*file) : Json()},
                       {"name", last_part(each.file)},
                       {"line", each.line},
                       {"what", each.what},
                       {"taken", each.taken},
                       {"reason", each.reason},
                       {"refused", each.refused}});
  }
  return {{{"name", subject.ptx->name()}, {"text", subject.ptx->text()}, {"at", std::move(at)}},
          sources.take(),
          std::move(choices)};
}

}  // namespace tartan::tools::explore
