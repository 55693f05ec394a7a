// SPDX-License-Identifier: Apache-2.0
// Runs forms on a device.
#include <fmt/format.h>

#include <algorithm>

#include "tests/emulator/scalar_sweep.h"

namespace tartan::scalar_sweep {
namespace {

constexpr std::size_t most_sources = 4, forms_of_module = 64;
constexpr std::size_t buffer_bytes = 8 * row_count;

std::string kernel(const Form& form, std::size_t index) {
  std::string out = fmt::format(
      ".visible .entry k{}(.param .u64 in, .param .u64 out)\n{{\n"
      ".reg .pred p, q, r;\n.reg .b16 h, i;\n.reg .b32 lane, s, t, u;\n"
      ".reg .b64 at, to, wide, x, y, z;\n.reg .b{} d;\n",
      index, form.d);
  for (std::size_t s = 0; s < form.sources.size(); ++s)
    out += fmt::format(".reg .b{} {};\n", bits(form.sources[s]), "abce"[s]);
  out +=
      "mov.u32 lane, %tid.x;\nmul.wide.u32 wide, lane, 8;\n"
      "ld.param.u64 at, [in];\nadd.s64 at, at, wide;\n"
      "ld.param.u64 to, [out];\nadd.s64 to, to, wide;\n";
  for (std::size_t s = 0; s < form.sources.size(); ++s)
    out += fmt::format("ld.global.b{} {}, [at+{}];\n", bits(form.sources[s]), "abce"[s],
                       s * buffer_bytes);
  return out +
         fmt::format("mov.b{0} d, 0;\n{1}\nst.global.b{0} [to], d;\nret;\n}}\n", form.d, form.text);
}

class Runner {
 public:
  explicit Runner(detail::Engine& engine)
      : engine_(engine),
        in_(engine.allocate(most_sources * buffer_bytes)),
        out_(engine.allocate(buffer_bytes)) {}
  ~Runner() {
    if (in_) engine_.free(*in_);
    if (out_) engine_.free(*out_);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Loads these forms as one module; if it is rejected, each form separately.
  void run(const std::vector<Form>& forms, std::vector<Run>& runs) {
    const auto module = engine_.load(module_text(forms), "sweep.ptx");
    if (!module && forms.size() > 1) {
      for (const Form& form : forms) run({form}, runs);
      return;
    }
    for (std::size_t i = 0; i < forms.size(); ++i) {
      Run& result = runs.emplace_back();
      result.results.resize(row_count);
      const Status done =
          module ? run_one(**module, forms[i], i, result.results) : Status(module.diags());
      if (done) continue;
      result.results.clear();
      result.complaint = done.diags().text();
    }
  }

 private:
  Status run_one(detail::EngineModule& module, const Form& form, std::size_t index,
                 std::vector<std::uint64_t>& results) {
    if (!in_) return in_.diags();
    if (!out_) return out_.diags();
    const auto kernel = module.kernel("k" + std::to_string(index));
    if (!kernel) return kernel.diags();
    std::vector<std::uint64_t> inputs = inputs_of(form);
    inputs.resize(most_sources * row_count);
    if (Status s = engine_.write(*in_, std::as_bytes(std::span(inputs))); !s) return s;
    if (Status s = engine_.fill(*out_, buffer_bytes, 0); !s) return s;
    if (Status s = (*kernel)->launch({.grid = {1}, .block = {row_count}},
                                     Arguments().add(*in_).add(*out_), nullptr);
        !s)
      return s;
    if (Status s = engine_.synchronize(); !s) return s;
    return engine_.read(*out_, std::as_writable_bytes(std::span(results)));
  }

  detail::Engine& engine_;
  Result<std::uint64_t> in_, out_;
};

}  // namespace

std::vector<Form> all_forms() {
  std::vector<Form> out = integer_forms();
  for (const auto& topic : {float_forms(), conversion_forms(), video_forms()})
    out.insert(out.end(), topic.begin(), topic.end());
  return out;
}

std::string module_text(const std::vector<Form>& forms) {
  std::string out = ".version 8.6\n.target sm_90\n.address_size 64\n";
  for (std::size_t i = 0; i < forms.size(); ++i) out += kernel(forms[i], i);
  return out;
}

std::vector<Run> run_forms(detail::Engine& engine, const std::vector<Form>& forms) {
  std::vector<Run> out;
  Runner runner(engine);
  for (std::size_t first = 0; first < forms.size(); first += forms_of_module) {
    const auto begin = forms.begin() + static_cast<std::ptrdiff_t>(first);
    const auto count = std::min(forms_of_module, forms.size() - first);
    runner.run(std::vector<Form>(begin, begin + static_cast<std::ptrdiff_t>(count)), out);
  }
  return out;
}

}  // namespace tartan::scalar_sweep
