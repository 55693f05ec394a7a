// SPDX-License-Identifier: Apache-2.0
#include "compiler/support/build_id.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace tartan::TARTAN_ABI::detail {
namespace {

std::string hexadecimal(const unsigned char* bytes, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += fmt::format("{:02x}", bytes[i]);
  return out;
}

std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

// The contents of the note NT_GNU_BUILD_ID among those of a segment; empty: there is none.
std::string build_id_among(const char* notes, std::size_t bytes) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const char* const name = notes + sizeof note;
    const char* const contents = name + padded(note.n_namesz);
    const std::size_t whole = sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
    if (whole > bytes) break;
    if (note.n_type == NT_GNU_BUILD_ID &&
        std::string_view(name, note.n_namesz) == std::string_view("GNU", 4))  // with its zero
      return hexadecimal(reinterpret_cast<const unsigned char*>(contents), note.n_descsz);
    notes += whole, bytes -= whole;
  }
  return {};
}

struct Search {
  std::uintptr_t address = 0;  // in the object that is looked for
  std::string found = {};
};

int look_into(dl_phdr_info* object, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const auto start = [&](const ElfW(Phdr) & segment) {
    return object->dlpi_addr + segment.p_vaddr;
  };
  bool inside = false;
  std::string found;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && search.address >= start(segment) &&
        search.address < start(segment) + segment.p_memsz)
      inside = true;
    if (segment.p_type == PT_NOTE && found.empty())
      found = build_id_among(reinterpret_cast<const char*>(start(segment)), segment.p_memsz);
  }
  if (inside) search.found = std::move(found);
  return inside;
}

std::string from_file(const void* inside) {
  Dl_info object = {};
  struct ::stat file = {};
  if (!::dladdr(inside, &object) || !object.dli_fname || ::stat(object.dli_fname, &file) != 0)
    return "unknown";
  return fmt::format("{}-{}.{:09}", file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
}

}  // namespace

const std::string& build_id() {
  static const std::string id = [] {
    Search search{reinterpret_cast<std::uintptr_t>(&build_id)};
    ::dl_iterate_phdr(look_into, &search);
    return search.found.empty() ? from_file(reinterpret_cast<const void*>(&build_id))
                                : search.found;
  }();
  return id;
}

}  // namespace tartan::TARTAN_ABI::detail
