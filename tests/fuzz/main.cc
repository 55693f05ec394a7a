// SPDX-License-Identifier: Apache-2.0
// fuzz_main.cc - drives a fuzz target without libFuzzer: mutates a corpus until the time is up or
// something breaks.
//
//   fuzz_parser [-max_total_time=SECONDS] [-runs=N] [-seed=N] [-timeout=SECONDS] [FILE|FOLDER]...
//
// The options are libFuzzer's. Every file of the corpus runs first, unchanged. An input that
// crashes, trips a sanitizer or runs longer than the timeout is written to crash-<program>; with
// this file as the only argument and -runs=0 the failure repeats. There is no coverage feedback:
// the targets read text, and splicing real texts at token boundaries reaches deep enough.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// Sanitizers must end in abort(), so that on_signal() can save the input.
extern "C" const char* __asan_default_options() { return "abort_on_error=1:handle_sigill=1"; }

namespace {

constexpr std::size_t largest_input = 64 * 1024;

std::string current;     // the current input
std::string crash_file;  // receives the input that breaks something
unsigned timeout_seconds = 10;

void save_current() {
  const int file = open(crash_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || write(file, current.data(), current.size()) < 0) return;
  close(file);
  std::fprintf(stderr, "fuzz: the input is in %s\n", crash_file.c_str());
}

void on_signal(int number) {
  std::fprintf(stderr, number == SIGALRM ? "fuzz: timeout\n" : "fuzz: signal %d\n", number);
  save_current();
  _exit(1);
}

void run_current() {
  alarm(timeout_seconds);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
  alarm(0);
}

/// Changes texts at random: bytes, numbers, slices, and pieces of other texts.
class Mutator {
 public:
  Mutator(const std::vector<std::string>& corpus, std::uint64_t seed)
      : corpus_(corpus), random_(seed) {}

  std::string next() {
    std::string text = pick_text();
    for (std::size_t rounds = 1 + below(6); rounds > 0; --rounds) mutate(text);
    if (text.size() > largest_input) text.resize(largest_input);
    return text;
  }

 private:
  std::size_t below(std::size_t limit) { return limit ? random_() % limit : 0; }
  const std::string& pick_text() { return corpus_[below(corpus_.size())]; }

  void mutate(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = std::min(text.size() - at, std::size_t{1} << below(8));
    switch (below(8)) {
      case 0: text.insert(at, 1, static_cast<char>(below(256))); break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 2: text.erase(at, length); break;
      case 3: text.insert(below(text.size() + 1), text.substr(at, length)); break;
      case 4: text.insert(at, token(pick_text())); break;
      case 5: replace_token(text, at, token(pick_text())); break;
      case 6: {
        static constexpr std::string_view numbers[] = {
            "0", "-1", "4294967296", "18446744073709551616", "0x", "1e999"};
        replace_token(text, at, numbers[below(std::size(numbers))]);
        break;
      }
      case 7: {
        const std::string& other = pick_text();
        text = text.substr(0, at) + other.substr(below(other.size() + 1));
        break;
      }
    }
  }

  static bool in_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '%' || c == '.';
  }

  /// The word or the single character at a random place of `text`.
  std::string token(const std::string& text) {
    const std::size_t begin = below(text.size());
    std::size_t end = begin;
    while (end < text.size() && in_word(text[end])) ++end;
    return text.substr(begin, std::max<std::size_t>(end - begin, 1));
  }

  static void replace_token(std::string& text, std::size_t at, std::string_view with) {
    std::size_t end = at;
    while (end < text.size() && in_word(text[end])) ++end;
    text.replace(at, end - at, with);
  }

  const std::vector<std::string>& corpus_;
  std::mt19937_64 random_;
};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The files at and under `path`, sorted by name; a path that does not exist ends the program.
void add_corpus(const std::filesystem::path& path, std::vector<std::string>& corpus) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path());
  } else if (std::filesystem::exists(path)) {
    files.push_back(path);
  }
  if (files.empty()) {
    std::fprintf(stderr, "fuzz: no corpus at %s\n", path.c_str());
    std::exit(2);
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) corpus.push_back(read_file(file));
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 0;
  std::uint64_t runs = UINT64_MAX, seed = std::random_device{}();
  std::vector<std::string> corpus;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] {
      return std::strtoull(word.c_str() + word.find('=') + 1, nullptr, 10);
    };
    if (word.starts_with("-max_total_time=")) seconds = static_cast<double>(value());
    else if (word.starts_with("-runs=")) runs = value();
    else if (word.starts_with("-seed=")) seed = value();
    else if (word.starts_with("-timeout=")) timeout_seconds = static_cast<unsigned>(value());
    else add_corpus(word, corpus);
  }

  crash_file = "crash-" + std::filesystem::path(argv[0]).filename().string();
#ifndef __SANITIZE_ADDRESS__  // it reports the fault itself, then aborts
  std::signal(SIGSEGV, on_signal);
#endif
  std::signal(SIGABRT, on_signal);
  std::signal(SIGALRM, on_signal);

  std::printf("fuzz: seed %llu, %zu texts\n", static_cast<unsigned long long>(seed), corpus.size());
  std::fflush(stdout);
  for (const std::string& text : corpus) {
    current = text;
    run_current();
  }
  if (corpus.empty()) corpus.emplace_back();

  Mutator mutator(corpus, seed);
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::uint64_t done = 0;
  for (; done < runs && (seconds == 0 || elapsed() < seconds); ++done) {
    current = mutator.next();
    run_current();
  }
  std::printf("fuzz: %llu mutations in %.1f s, nothing broke\n",
              static_cast<unsigned long long>(done), elapsed());
}
