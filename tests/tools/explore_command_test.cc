// SPDX-License-Identifier: Apache-2.0
// `tartan explore`: the page is one file that loads nothing, and what it says is what the other
// commands say. That it works in a browser, tests/explore/page_test.py sees.
#include <fmt/format.h>
#include <unistd.h>

#include "tests/tools/layout_command.h"

namespace tartan::layout_test {
namespace {

namespace fs = std::filesystem;

const std::string museum = std::string(SOURCE_ROOT) + "/tests/museum/";
const std::string recorded = std::string(TEST_DATA) + "/explore/";

class ExploreCommand : public testing::Test {
 protected:
  ExploreCommand() : folder_(fs::path(testing::TempDir()) / fmt::format("explore_{}", getpid())) {
    fs::create_directories(folder_ / "bin");
  }
  ~ExploreCommand() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  // A tool of NVIDIA's that does as it says, from CUDA_HOME; without one, none is found.
  void write_tool(const std::string& name, const std::string& script) const {
    write("bin/" + name, "#!/bin/sh\n" + script);
    fs::permissions(folder_ / "bin" / name, fs::perms::owner_all);
  }

  // The page of what `words` say. Its exit code must be `code`.
  std::string page(const std::string& words, int code = 0) const {
    const Ran ran = test::shell(fmt::format("CUDA_HOME={} {} explore {} -o {} 2>&1", path(""),
                                            TARTAN_COMMAND, words, path("page.html")));
    EXPECT_EQ(ran.code, code) << words << ": " << ran.out;
    if (code == 0) EXPECT_EQ(ran.out, "") << words;
    else EXPECT_TRUE(ran.out.starts_with(path("page.html") + ": ")) << words << ran.out;
    return read_file(folder_ / "page.html");
  }
  static json model_of(const std::string& page) {
    static const std::string begin = "<script type=\"application/json\" id=\"model\">";
    const std::size_t from = page.find(begin) + begin.size();
    return json::parse(page.substr(from, page.find("</script>", from) - from), nullptr, false);
  }
  json model(const std::string& words, int code = 0) const { return model_of(page(words, code)); }

 private:
  fs::path folder_;
};

bool generates_code() { return run("emit --list", true).code == 0; }
#define NEEDS_CODE_GENERATION() \
  if (!generates_code()) GTEST_SKIP() << "this build has no code generation"

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t out = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++out;
  return out;
}

// With single spaces, none at the ends.
std::string squeezed(const std::string& text) {
  std::string out;
  for (const std::string& word : split(text)) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::string without_model(const std::string& page) {
  const std::size_t from = page.find("id=\"model\">"), to = page.find("</script>", from);
  return page.substr(0, from) + page.substr(to);
}

TEST_F(ExploreCommand, GemmIsOneSmallFileThatLoadsNothing) {
  NEEDS_CODE_GENERATION();
  for (const std::string words : {"gemm --target sm_80", "gemm --target sm_90a --type bf16"}) {
    const std::string text = page(words);
    EXPECT_LT(text.size(), std::size_t{2} << 20) << words;
    EXPECT_NE(text.find("default-src 'none'"), std::string::npos);
    const std::string own = without_model(text);
    for (const std::string load : {"http://", "https://", " src=", "url(", "@import", "fetch(",
                                   "XMLHttpRequest", "WebSocket", "import("})
      EXPECT_EQ(own.find(load), std::string::npos) << load;
    EXPECT_EQ(count(text, "</script>"), 2u) << "the model, and the scripts";
    EXPECT_EQ(text.find("{{"), text.find("{{", text.find("id=\"model\">"))) << "all is filled in";
  }
}

TEST_F(ExploreCommand, EveryIdThatScriptsUseExists) {
  const std::string text = page(museum + "cp-async-without-barrier/right.json");
  const std::string own = without_model(text);
  static const std::regex use("byId\\('([\\w-]+)'\\)"),
      made("(?:id=\"|id: '|addPart\\(')([\\w-]+)['\"]");
  std::set<std::string> used, known;
  for (std::sregex_iterator at(own.begin(), own.end(), use), end; at != end; ++at)
    used.insert((*at)[1]);
  for (std::sregex_iterator at(own.begin(), own.end(), made), end; at != end; ++at)
    known.insert((*at)[1]);
  known.insert("model");
  EXPECT_GE(used.size(), 10u);
  for (const std::string& id : used) EXPECT_TRUE(known.contains(id)) << id;
}

// A file is shown as it is: what only a built-in kernel takes would be ignored.
TEST_F(ExploreCommand, RefusesOptionsOfBuiltInKernelsForFiles) {
  NEEDS_CODE_GENERATION();
  const std::string manifest = museum + "cp-async-without-barrier/right.json";
  write("empty.ptx", ".version 8.0\n.target sm_80\n");
  for (const std::string& file : {manifest, path("empty.ptx"), std::string("- < /dev/null")})
    for (const auto& [option, value] : {std::pair{"gpu", "H200"},
                                        {"target", "sm_90a"},
                                        {"ptx", "8.0"},
                                        {"m", "256"},
                                        {"swap", ""}}) {
      const Ran ran = run(
          fmt::format("explore --{} {} -o {} {}", option, value, path("none.html"), file), true);
      EXPECT_EQ(ran.code, 2) << file << option;
      EXPECT_NE(ran.out.find(fmt::format("--{}: an option of built-in kernels; ", option)),
                std::string::npos)
          << ran.out;
      EXPECT_FALSE(fs::exists(path("none.html")));
    }
}

// The line's origin as its last .loc says, read here word by word.
TEST_F(ExploreCommand, LinksEachLineAsItsLocSays) {
  NEEDS_CODE_GENERATION();
  const json page = model("gemm --target sm_80");
  const Words lines = lines_of(page["ptx"]["text"]);
  std::map<std::string, std::string> files;  // number -> name
  for (const std::string& line : lines)
    if (const Words words = split(line); words.size() == 3 && words[0] == ".file")
      files[words[1]] = words[2].substr(1, words[2].size() - 2);
  std::string file, number;
  int linked = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Words words = split(lines[i]);
    if (words.empty()) continue;
    if (words[0] == ".loc") file = words[1], number = words[2];
    if (!lines[i].ends_with(';') || words[0][0] == '.' || file.empty() || number == "0") continue;
    const json& at = page["ptx"]["at"][i];
    ASSERT_TRUE(at.is_array()) << lines[i];
    EXPECT_EQ(page["sources"][at[0].get<std::size_t>()]["path"], files[file]) << lines[i];
    EXPECT_EQ(std::to_string(at[1].get<int>()), number) << lines[i];
    ++linked;
  }
  EXPECT_GT(linked, 200);
  for (const json& source : page["sources"])
    EXPECT_EQ(source["text"],
              read_file(fs::path(SOURCE_ROOT) / source["path"].get<std::string>().substr(7)));
}

TEST_F(ExploreCommand, HasTheMatricesInSharedMemory) {
  NEEDS_CODE_GENERATION();
  const json small = model("one_mma")["tiles"];
  ASSERT_EQ(small.size(), 2u);
  EXPECT_EQ(small[0]["name"], "sa");
  EXPECT_EQ(small[0]["rows"],
            (json{0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240}));
  EXPECT_EQ(small[0]["first"], 0);
  EXPECT_EQ(small[1]["name"], "sb");
  EXPECT_EQ(small[1]["cols"], (json{0, 16, 32, 48, 64, 80, 96, 112}));
  EXPECT_EQ(small[1]["first"], 512) << "behind sa";
  const json product = model("gemm --target sm_80 --tile 64x64x32 --stages 3");
  const json& tiles = product["tiles"];
  ASSERT_EQ(tiles.size(), 2u);
  for (const json& tile : tiles) {
    EXPECT_EQ(tile["stages"], 3);
    EXPECT_EQ(tile["apart"], 64 * 32 * 2);
    EXPECT_EQ(tile["size"], 2);
  }
  EXPECT_EQ(tiles[1]["first"], 3 * 64 * 32 * 2) << "behind sA";
  // The choice at its line names the same layout.
  std::set<std::string> chosen;
  for (const json& choice : product["choices"])
    if (choice["what"].get<std::string>().starts_with("shared ")) chosen.insert(choice["taken"]);
  EXPECT_EQ(chosen, (std::set<std::string>{tiles[0]["layout"], tiles[1]["layout"]}));
}

// A text may say anything.
TEST_F(ExploreCommand, TakesNoMatrixThatCannotBe) {
  const std::string head = ".version 8.0\n.target sm_80\n.address_size 64\n";
  const std::string ptx = head + ".visible .entry k() {\n\tret;\n}\n";
  for (const char* wrong :
       {"sA", "sA: ", "sA: f16", "sA: f99 4x4:(4,1)", "sA: f16 4x4", "sA: f16 4:1",
        "sA: f16 4x4:(4,1), 0 stages 16 elements apart", "sA: f16 4x4:(4,1), 2 stages",
        "sA: f16 4x4:(4,1), 2 stages 9223372036854775807 elements apart",
        "sA: f16 999999x999999:(1,999999)", "sA: e2m1 4x4:(4,1)"}) {
    write("k.ptx", fmt::format("// shared matrix {}\n{}", wrong, ptx));
    EXPECT_EQ(model(path("k.ptx"))["tiles"], json::array()) << wrong;
  }
  write("k.ptx", "// shared matrix sA: f16 4x4:(4,1)\n" + ptx);
  EXPECT_EQ(model(path("k.ptx"))["tiles"].size(), 1u);
}

// One variable of dynamic shared memory holds several matrices.
TEST_F(ExploreCommand, HasThePartsOfDynamicSharedMemory) {
  NEEDS_CODE_GENERATION();
  const json page = model(
      "gemm --target sm_90a --type bf16 --tile 64x32x64 --warps 4x1 --producers 4 --stages 4");
  const json &parts = page["report"]["shared"][0]["parts"], &tiles = page["tiles"];
  ASSERT_GE(parts.size(), 3u);
  ASSERT_EQ(tiles.size(), 2u);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    EXPECT_EQ(parts[i]["name"], tiles[i]["name"]);
    EXPECT_EQ(parts[i]["first"], tiles[i]["first"]) << "where the emulator had it";
  }
  EXPECT_EQ(parts[1]["first"], tiles[0]["stages"].get<int>() * tiles[0]["apart"].get<int>());
}

TEST_F(ExploreCommand, ShowsEveryChoiceAtItsLine) {
  NEEDS_CODE_GENERATION();
  const json page = model("gemm --target sm_80");
  const Ran explained = test::shell(std::string(TARTAN_COMMAND) +
                                    " emit gemm --target sm_80 --explain 2>&1 >/dev/null");
  std::string text;
  for (const json& choice : page["choices"]) {
    text += fmt::format("{}:{}: {}: {}\n    because {}\n", choice["name"].get<std::string>(),
                        choice["line"].get<int>(), choice["what"].get<std::string>(),
                        choice["taken"].get<std::string>(), choice["reason"].get<std::string>());
    for (const json& refused : choice["refused"])
      text += fmt::format("    not {}\n", refused.get<std::string>());
    EXPECT_TRUE(choice["file"].is_number()) << choice;
  }
  EXPECT_EQ(text, explained.out);
  // From the text alone, what its comments keep.
  test::shell(fmt::format("{} emit gemm --target sm_80 -o {}", TARTAN_COMMAND, path("gemm.ptx")));
  const json of_text = model(path("gemm.ptx"));
  ASSERT_EQ(of_text["choices"].size(), page["choices"].size());
  for (std::size_t i = 0; i < page["choices"].size(); ++i)
    for (const char* field : {"file", "line", "what", "taken"})
      EXPECT_EQ(of_text["choices"][i][field], page["choices"][i][field]);
}

void expect_finding(const json& page, const json& wanted, const std::string& by) {
  for (const json& each : page["findings"])
    if (each["id"] == wanted["id"] && each["line"] == wanted["line"] &&
        each["message"] == wanted["message"]) {
      EXPECT_EQ(each["by"], by) << wanted;
      return;
    }
  ADD_FAILURE() << "not on the page: " << wanted;
}

TEST_F(ExploreCommand, ShowsWhatRunFindsAtItsLine) {
  for (const std::string name : {"cp-async-without-barrier", "tile-refilled-while-read",
                                 "global-exchange-without-barrier"}) {
    const std::string manifest = museum + name + "/wrong.json";
    const json page = model(manifest, 1);
    const json said = json::parse(run("run " + manifest + " --json --device emulator").out);
    ASSERT_FALSE(said["findings"].empty()) << name;
    EXPECT_EQ(page["findings"].size(), said["findings"].size()) << name;
    for (const json& each : said["findings"]) expect_finding(page, each, "run");
  }
}

TEST_F(ExploreCommand, ShowsBothAccessesOfARace) {
  const json page = model(museum + "cp-async-without-barrier/wrong.json", 1);
  const json& race = page["findings"][0];
  EXPECT_EQ(race["id"], "asynchronous-race");
  const Words lines = lines_of(page["ptx"]["text"]);
  EXPECT_EQ(split(lines[race["line"].get<std::size_t>() - 1])[0], "cp.async.cg.shared.global");
  ASSERT_EQ(race["others"].size(), 1u);
  EXPECT_EQ(split(lines[race["others"][0].get<std::size_t>() - 1])[0], "ld.shared.v4.u32");
}

TEST_F(ExploreCommand, ShowsWhichResultsDiffer) {
  const json page = model(museum + "row-blocks-swapped/wrong.json", 1);
  ASSERT_EQ(page["findings"].size(), 1u);
  const json& finding = page["findings"][0];
  const json said = json::parse(
      run("run " + museum + "row-blocks-swapped/wrong.json --json --device emulator").out);
  const json& wrong = said["expectations"][0];
  std::size_t differing = 0;
  for (const json& range : finding["differing"])
    differing += range[1].get<std::size_t>() - range[0].get<std::size_t>() + 1;
  EXPECT_EQ(differing, wrong["mismatched"]);
  EXPECT_EQ(finding["elements"], wrong["elements"]);
  EXPECT_EQ(finding["differing"][0][0], wrong["first"]["index"]);
}

TEST_F(ExploreCommand, TextThatDoesNotCheckHasAPageOfItsErrors) {
  for (const auto& entry : fs::directory_iterator(fs::path(TEST_DATA) / "check")) {
    if (!entry.path().filename().string().starts_with("bad-") || entry.path().extension() != ".ptx")
      continue;
    const json said = json::parse(run("check --json --max-errors 0 " + entry.path().string()).out);
    bool failed = false;
    for (const json& each : said["diagnostics"]) failed |= each["level"] == "error";
    const json page = model(entry.path().string(), failed ? 2 : 0);
    EXPECT_EQ(page["findings"].size(), said["diagnostics"].size()) << entry.path();
    for (const json& each : said["diagnostics"]) expect_finding(page, each, "check");
  }
}

TEST_F(ExploreCommand, TextIsNeverMarkup) {
  write("evil.ptx",
        ".version 8.0\n.target sm_80\n.address_size 64\n// </script><script>alert(1)"
        "</script> <!-- \xff\xfe {{script}}\n.visible .entry k() { ret; }\n");
  const std::string text = page(path("evil.ptx"), 2);  // which is not ASCII
  EXPECT_EQ(count(text, "</script>"), 2u);
  EXPECT_EQ(text.find("<script>alert"), std::string::npos);
  EXPECT_NE(model_of(text)["ptx"]["text"].get<std::string>().find("</script><script>alert(1)"),
            std::string::npos);
}

TEST_F(ExploreCommand, FragmentsAreThoseOfLayout) {
  const json page = model(std::string(TEST_DATA) + "/programs/kernels_sm90.ptx");
  ASSERT_GE(page["matrices"]["forms"].size(), 3u);
  for (const json& form : page["matrices"]["forms"]) {
    const json layout = layout_json(form["instruction"].get<std::string>());
    ASSERT_EQ(form["operands"].size(), layout["operands"].size()) << form["instruction"];
    for (std::size_t i = 0; i < layout["operands"].size(); ++i) {
      const json& drawn = form["operands"][i];
      const json& operand = layout["operands"][i];
      const int elements = drawn["registers"].get<int>() * drawn["per_register"].get<int>();
      ASSERT_EQ(drawn["at"].size(), operand["cells"].size());
      for (const json& cell : operand["cells"]) {
        const int element = cell["register"].get<int>() * drawn["per_register"].get<int>() +
                            cell["position"].get<int>();
        const int place =
            (cell["matrix"].get<int>() * operand["rows"].get<int>() + cell["row"].get<int>()) *
                operand["cols"].get<int>() +
            cell["col"].get<int>();
        const auto at = static_cast<std::size_t>(cell["lane"].get<int>() * elements + element);
        ASSERT_EQ(drawn["at"][at], place) << form["instruction"] << " " << cell;
      }
    }
  }
}

TEST_F(ExploreCommand, RegistersAreThoseOfTheInstruction) {
  NEEDS_CODE_GENERATION();
  const json page = model("one_mma");
  const Words lines = lines_of(page["ptx"]["text"]);
  int vectors = 0;
  for (const json& use : page["matrices"]["uses"]) {
    std::string statement;
    for (std::size_t i = use["line"].get<std::size_t>() - 1; !statement.ends_with(';'); ++i)
      statement += " " + squeezed(lines[i]);
    for (const auto& [operand, registers] : use["registers"].items()) {
      std::string list;
      for (const json& each : registers)
        list += (list.empty() ? "" : ", ") + each.get<std::string>();
      EXPECT_NE(statement.find("{" + list + "}"), std::string::npos) << statement << operand;
      ++vectors;
    }
  }
  EXPECT_EQ(vectors, 6) << "of two ldmatrix and an mma with d, a, b and c";
}

TEST_F(ExploreCommand, NumbersAreThoseOfRun) {
  const std::string manifest = museum + "ldmatrix-without-trans/right.json";
  const json page = model(manifest);
  const json said =
      json::parse(run("run " + manifest + " --report --json --device emulator").out)["report"];
  const json& numbers = page["report"]["run"];
  for (const char* field :
       {"device", "warp_instructions", "lane_instructions", "multiply_adds", "instructions"})
    EXPECT_EQ(numbers[field], said[field]) << field;
  ASSERT_FALSE(page["accesses"].empty());
  for (const json& access : page["accesses"])
    for (const json& each : said["instructions"])
      if (each["line"] == access["line"] && each["executions"] == 1 && each.contains("shared")) {
        EXPECT_EQ(access["wavefronts"], each["shared"]["wavefronts"]) << access;
        EXPECT_EQ(access["wavefronts"].get<int>() - access["minimum"].get<int>(),
                  each["shared"]["conflicts"])
            << access;
      }
}

TEST_F(ExploreCommand, MachineCodeIsLinkedByItsLines) {
  NEEDS_CODE_GENERATION();
  const json without = model("one_mma");
  EXPECT_NE(without["machine"]["missing"].get<std::string>().find("ptxas"), std::string::npos);
  write_tool("ptxas", fmt::format("cat {}one_mma.ptxas.txt >&2\nexit 0\n", recorded));
  write_tool("nvdisasm", fmt::format("exec cat {}one_mma.sass\n", recorded));
  const json page = model("one_mma");
  const json& machine = page["machine"];
  EXPECT_TRUE(machine["missing"].is_null()) << machine["missing"];
  EXPECT_EQ(machine["resources"][0]["kernel"], "one_mma");
  EXPECT_EQ(machine["resources"][0]["registers"], 26);
  ASSERT_EQ(machine["lines"].size(), machine["at"].size());
  std::map<std::string, json> lines;
  for (std::size_t i = 0; i < machine["lines"].size(); ++i)
    lines[split(
        machine["lines"][i])[machine["lines"][i].get<std::string>().ends_with(':') ? 0 : 1]] =
        machine["at"][i];
  EXPECT_EQ(lines.at("HMMA.16816.F32"), (json{0, 18}));
  EXPECT_EQ(lines.at("LDSM.16.M88.4"), (json{0, 16}));
  EXPECT_EQ(lines.at("BAR.SYNC.DEFER_BLOCKING"), (json{0, 15}));
  EXPECT_EQ(lines.at("EXIT"), (json{0, 18}));
  EXPECT_TRUE(lines.contains(".L_x_0:"));
  EXPECT_EQ(machine["lines"].size(), 51U) << "of 48 instructions and three labels";
  write_tool("ptxas", "exit 3\n");
  EXPECT_EQ(model("one_mma")["machine"]["missing"], "ptxas did not assemble the text");
  write_tool("ptxas",
             "echo 'ptxas /tmp/k.ptx, line 9; error   : Unknown modifier' >&2\nexit 255\n");
  EXPECT_EQ(model("one_mma")["machine"]["missing"],
            "ptxas did not assemble the text: line 9; error   : Unknown modifier");
}

TEST_F(ExploreCommand, SaysWhatIsWrongAndWritesNothing) {
  write("broken.json", "{\"ptx\": 3}");
  const std::string out = path("no.html");
  for (const auto& [words, says] : std::map<std::string, std::string>{
           {"/no/such/file.ptx -o " + out, generates_code() ? "unknown kernel" : "No such file"},
           {"one_mna -o " + out, generates_code() ? "unknown kernel one_mna" : "No such file"},
           {path("broken.json") + " -o " + out, "[manifest]"},
           {museum + "cp-async-without-barrier/right.json", "-o is required"},
           {museum + "cp-async-without-barrier/right.json -o /no/such/folder/page.html",
            "/no/such/folder/page.html"},
           {museum + "cp-async-without-barrier/right.json -o /dev/full", "/dev/full"}}) {
    const Ran ran = run("explore " + words, true);
    EXPECT_EQ(ran.code, 2) << words;
    EXPECT_NE(ran.out.find(says), std::string::npos) << words << ": " << ran.out;
  }
  EXPECT_FALSE(fs::exists(out));
}

}  // namespace
}  // namespace tartan::layout_test
