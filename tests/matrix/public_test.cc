// SPDX-License-Identifier: Apache-2.0
// Recordings that others have published: a sample of dot products is in tests/data/golden/public,
// all of them and words of a B200 are read from $TARTAN_SHARED (default: ../shared next to the
// sources), if that exists.
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/emulator/matrix/float_format.h"
#include "runtime/emulator/matrix/wgmma.h"
#include "tests/matrix/warp.h"

namespace tartan::emulator {
namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<std::uint64_t>;

fs::path shared_folder() {
  const char* given = std::getenv("TARTAN_SHARED");
  return fs::path(given ? given : SOURCE_ROOT "/../shared") / "golden/public";
}

// ---- Dot products: row 0 of A, column 0 of B and element (0, 0) of C, all else is zero.

std::uint64_t dot(Warp& warp, const MatrixProduct& product, const Numbers& a, const Numbers& b,
                  std::uint64_t c) {
  for (std::size_t k = 0; k < a.size(); ++k) {
    warp.a.set(0, static_cast<int>(k), a[k]);
    warp.b.set(static_cast<int>(k), 0, b[k]);
  }
  warp.c.set(0, 0, c);
  warp.run(product);
  return warp.d.get(0, 0);
}

// A in registers, B in shared memory; element (0, 0) of D is in thread 0's first register. Numbers
// of fewer than 32 bits.
std::uint64_t dot(const WgmmaProduct& product, const Numbers& a, const Numbers& b,
                  std::uint64_t c) {
  const isa::Form& form = product.form();
  const auto columns = [&](Operand operand) {
    return std::vector(static_cast<std::size_t>(isa::fragment(form, operand).registers),
                       std::vector<std::uint32_t>(128));
  };
  auto d = columns(Operand::d), in = columns(Operand::a);
  const isa::Fragment fragment = isa::fragment(form, Operand::a);
  for (int thread = 0; thread < 128; ++thread)
    for (int i = 0; i < fragment.elements(); ++i) {
      const isa::Coord at = isa::coord(form, Operand::a, thread, i);
      if (at.row != 0 || at.col >= std::ssize(a)) continue;
      in[static_cast<std::size_t>(i / fragment.per_register)][static_cast<std::size_t>(thread)] |=
          static_cast<std::uint32_t>(a[static_cast<std::size_t>(at.col)])
          << (i % fragment.per_register * fragment.container_bits);
    }
  constexpr std::uint64_t descriptor = 128 >> 4 << 16 | std::uint64_t{256 >> 4} << 32;
  std::vector<std::byte> shared(4096);
  for (std::size_t k = 0; k < b.size(); ++k)
    std::memcpy(
        shared.data() +
            MatrixDescriptor::of(descriptor).address(false, bits(form.b), 0, static_cast<int>(k)),
        &b[k], static_cast<std::size_t>(bits(form.b) / 8));
  d[0][0] = static_cast<std::uint32_t>(c);
  std::vector<std::uint32_t*> to;
  std::vector<const std::uint32_t*> from;
  for (auto& reg : d) to.push_back(reg.data());
  for (const auto& reg : in) from.push_back(reg.data());
  WgmmaOperands operands;
  operands.d = to.data();
  operands.a = from.data();
  operands.b_descriptor = descriptor;
  operands.shared = shared;
  Scratch scratch;
  EXPECT_TRUE(product.run(operands, scratch));
  return d[0][0] & ((std::uint64_t{1} << bits(form.d)) - 1);
}

isa::Form wgmma_form(const std::string& mnemonic) {
  isa::Form form = isa::parse_form(mnemonic).form;
  form.a_in_registers = true;
  return form;
}

// ---- A file of dot products (tests/data/golden/public/README.md).

class DotProducts {
 public:
  DotProducts(const fs::path& folder, const std::string& data) : data_(data) {
    std::ifstream file(folder / "tensor_cores.json");
    index_ = nlohmann::json::parse(file);
  }
  int rows() const { return index_["rows"].get<int>(); }
  const nlohmann::json& sets() const { return index_["sets"]; }

  Numbers numbers(const std::string& name) const {
    for (const auto& array : index_["arrays"]) {
      if (array["name"] != name) continue;
      const auto count = static_cast<std::size_t>(rows() * array["columns"].get<int>());
      const auto offset = array["offset"].get<std::size_t>();
      Numbers out(count);
      for (std::size_t byte = 0; byte < array["bits"].get<std::size_t>() / 8; ++byte)
        for (std::size_t i = 0; i < count; ++i)
          out[i] |= std::uint64_t{static_cast<unsigned char>(data_.at(offset + byte * count + i))}
                    << (8 * byte);
      return out;
    }
    ADD_FAILURE() << "no array " << name;
    return {};
  }

 private:
  nlohmann::json index_;
  std::string data_;
};

// An operand as its type: those of f16, bf16 and tf32 are f16 numbers.
std::uint64_t as_type(const std::string& type, std::uint64_t number) {
  if (type != "bf16" && type != "tf32") return number;
  const auto single = std::bit_cast<std::uint32_t>(from_half(static_cast<std::uint32_t>(number)));
  return type == "bf16" ? single >> 16 : single;
}

// The number of rows of a set that the emulator computes otherwise.
int wrong_rows(const DotProducts& file, const nlohmann::json& set) {
  const auto mnemonic = set["instruction"].get<std::string>(),
             type = set["type"].get<std::string>();
  const bool warpgroup = mnemonic.starts_with("wgmma"), half = set["d_type"] == "f16";
  Hardware hardware = Hardware::sm_90;
  for (int i = 0; i < hardware_count; ++i)
    if (name(static_cast<Hardware>(i)) == set["hardware"]) hardware = static_cast<Hardware>(i);
  std::optional<Warp> warp;
  std::optional<MatrixProduct> product;
  std::optional<WgmmaProduct> wgmma;
  if (warpgroup) {
    wgmma = *WgmmaProduct::make(wgmma_form(mnemonic));
  } else {
    warp.emplace(mnemonic);
    product = *MatrixProduct::make(warp->form, hardware);
  }
  const Numbers all_a = file.numbers(set["a"]), all_b = file.numbers(set["b"]),
                d = file.numbers(set["d"]);
  const Numbers c = set["c"].is_null() ? Numbers(d.size()) : file.numbers(set["c"]);
  const std::size_t columns = all_a.size() / d.size(), k = set["k"].get<std::size_t>();
  int wrong = 0;
  for (std::size_t row = 0; row < d.size(); ++row) {
    Numbers a, b;
    for (std::size_t i = row * columns; i < row * columns + k; ++i) {
      a.push_back(as_type(type, all_a[i]));
      b.push_back(as_type(type, all_b[i]));
    }
    const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(c[row]));
    const std::uint64_t start = half ? to_half(static_cast<double>(single)) : c[row];
    wrong += (warpgroup ? dot(*wgmma, a, b, start) : dot(*warp, *product, a, b, start)) != d[row];
  }
  return wrong;
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_all(const DotProducts& file, int rows) {
  EXPECT_EQ(file.rows(), rows);
  EXPECT_EQ(file.sets().size(), 32u);
  for (const auto& set : file.sets())
    EXPECT_EQ(wrong_rows(file, set), 0) << set["gpu"] << ' ' << set["instruction"];
}

TEST(PublicRecordings, ASampleOfDotProducts) {
  const fs::path folder = TEST_DATA "/golden/public";
  expect_all(DotProducts(folder, content(folder / "tensor_cores.bin")), 100);
}

TEST(PublicRecordings, AllDotProducts) {
  const fs::path data = shared_folder() / "tensor_cores.bin.xz";
  if (!fs::exists(data)) GTEST_SKIP() << data << " is absent";
  const fs::path plain = testing::TempDir() + "tensor_cores_" + std::to_string(getpid()) + ".bin";
  ASSERT_EQ(std::system(("xz -dc '" + data.string() + "' > '" + plain.string() + "'").c_str()), 0);
  const DotProducts file(shared_folder(), content(plain));
  fs::remove(plain);
  expect_all(file, 5000);
}

// ---- Words of a B200's tcgen05.mma. mma.sync of sm_120 computes the same, that of sm_100 has a
// part of them.

struct Word {
  std::string name, kind, a_type, b_type, d_type, scale_type, scale_vec, saturation;
  Numbers a, b, c, scale_a, scale_b, metadata, d;

  bool sparse() const { return kind.ends_with(".sp"); }
};

Numbers list(const std::string& text) {
  Numbers out;
  std::istringstream stream(text);
  for (std::string each; text != "-" && std::getline(stream, each, ',');)
    out.push_back(std::stoull(each, nullptr, 16));
  return out;
}

std::vector<Word> read_words(const fs::path& path) {
  std::vector<Word> out;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream stream(line);
    const std::vector<std::string> f(std::istream_iterator<std::string>(stream), {});
    out.push_back({f.at(0), f[1], f[2], f[3], f[4], f[5], f[6], f[7], list(f.at(8)), list(f.at(9)),
                   list(f.at(10)), list(f.at(11)), list(f.at(12)), list(f.at(13)), list(f.at(14))});
  }
  return out;
}

// The instruction of a kind.
std::string mnemonic_of(const Word& word) {
  const std::string kind = word.kind.substr(0, word.kind.find('.'));
  const bool scaled = kind.starts_with("mx"), small = kind == "f8f6f4" || scaled;
  std::string out = word.sparse() ? "mma.sp::ordered_metadata.sync.aligned" : "mma.sync.aligned";
  out += ".m16n8k" + std::to_string(word.a.size()) + ".row.col";
  if (small) out += ".kind::" + kind;
  if (scaled) out += ".block_scale.scale_vec::" + word.scale_vec + "X";
  if (word.saturation == "sat") out += ".satfinite";
  out += "." + word.d_type + "." + word.a_type + "." + word.b_type + "." + word.d_type;
  return scaled ? out + "." + word.scale_type : out;
}

// An element in its container: bf16 is given as f32, and four bits in a byte are bits 2..5.
std::uint64_t contained(const Word& word, const std::string& type, std::uint64_t bits) {
  if (type == "bf16") return bits >> 16;
  const bool byte = type == "e2m1" && !word.kind.starts_with("mxf4");
  return byte ? bits << 2 : bits;
}

std::uint32_t packed_scales(const Numbers& scales) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < scales.size(); ++i) out |= scales[i] << (8 * i);
  return static_cast<std::uint32_t>(out);
}

// The elements of A that sparse forms store, and their codes as metadata.
Numbers stored(const Word& word, const Numbers& a, Warp& warp) {
  if (!word.sparse()) return a;
  const int width = word.a_type == "tf32" ? 2 : word.kind.starts_with("mxf4") ? 8 : 4;
  Numbers out;
  for (std::size_t j = 0; j < a.size() / static_cast<std::size_t>(width); ++j) {
    const auto code = static_cast<std::uint32_t>(word.metadata.at(j / 8) >> (4 * (j % 8)) & 15);
    const isa::MetadataBits at = isa::metadata(warp.form, 0, static_cast<int>(j), 0);
    warp.metadata[static_cast<std::size_t>(at.lane)] |= code << at.lowest;
    const std::size_t first = j * static_cast<std::size_t>(width);
    if (width == 2) {
      out.push_back(a[first + (code == 4 ? 0 : 1)]);
      continue;
    }
    const std::size_t each = width == 8 ? 2 : 1;
    for (const std::uint32_t place : {code & 3, code >> 2})
      for (std::size_t e = 0; e < each; ++e) out.push_back(a[first + each * place + e]);
  }
  return out;
}

// Whether the instruction exists; compares its results.
bool check(const Word& word, Hardware hardware, Path path) {
  const auto text = isa::parse_form(mnemonic_of(word));
  if (!MatrixProduct::make(text.form, hardware, path)) return false;
  Warp warp(text.form);
  const auto elements = [&](const std::string& type, const Numbers& from) {
    Numbers out;
    for (const std::uint64_t bits : from) out.push_back(contained(word, type, bits));
    return out;
  };
  warp.scale_a[0] = packed_scales(word.scale_a);
  warp.scale_b[0] = packed_scales(word.scale_b);
  const Numbers a = stored(word, elements(word.a_type, word.a), warp);
  const Numbers b = elements(word.b_type, word.b);
  for (std::size_t k = 0; k < b.size(); ++k) {
    if (k < a.size()) warp.a.set(0, static_cast<int>(k), a[k]);
    warp.b.set(static_cast<int>(k), 0, b[k]);
  }
  warp.c.set(0, 0, word.c.at(0));
  warp.run(hardware, path);
  EXPECT_EQ(warp.d.get(0, 0), word.d.at(0)) << word.name << ", path " << static_cast<int>(path);
  return true;
}

TEST(PublicRecordings, WordsOfAB200) {
  const fs::path path = shared_folder() / "b200/words.txt";
  if (!fs::exists(path)) GTEST_SKIP() << path << " is absent";
  int checked = 0, of_sm_100 = 0;
  for (const Word& word : read_words(path)) {
    for (const Path each : all_paths)
      if (each == Path::best) checked += check(word, Hardware::sm_120, each);
      else check(word, Hardware::sm_120, each);
    if (word.kind.find("f8") == std::string::npos && word.kind.find("f4") == std::string::npos)
      of_sm_100 += check(word, Hardware::sm_100, Path::best);
  }
  EXPECT_EQ(checked, 78);  // mxf4nvf4 with ue8m0 and scale_vec::4X is of PTX 9.1
  EXPECT_EQ(of_sm_100, 35);
}

// ---- An H100: the smallest exponent of an f16 sum of wgmma is -21. 2^-25 ties between 0 and 2^-24
// unless 2^-45 .. 2^-48 is added to it. tests/data/programs/wgmma_f16_floor is the kernel.

TEST(PublicRecordings, TheFloorOfAnF16SumOfWgmma) {
  const isa::Form form = wgmma_form("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16");
  for (const Path path : all_paths) {
    const auto product = WgmmaProduct::make(form, path);
    ASSERT_TRUE(product);
    const std::uint64_t added[] = {8, 4, 2, 1}, expected[] = {1, 1, 0, 0};
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(dot(*product, {0x1000, added[i]}, {0x0400, 1}, 0), expected[i]) << i;
  }
}

}  // namespace
}  // namespace tartan::emulator
