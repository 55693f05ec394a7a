// SPDX-License-Identifier: Apache-2.0
// tartan/isa/target.h - GPU architectures, PTX versions, and what an instruction needs of them
// (PTX ISA 9.0, 11.1.2, ".target").
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tartan/abi.h"
#include "tartan/support/diagnostic.h"

namespace tartan::TARTAN_ABI {

/// A PTX ISA version, as `.version 8.7` states it.
struct Version {
  std::uint8_t major = 0;
  std::uint8_t minor = 0;
  constexpr auto operator<=>(const Version&) const = default;
  std::string text() const;
  /// Whether PTX has had this version, as far as Tartan knows.
  constexpr bool exists() const;
  /// The version that followed: 7.8 is followed by 8.0, and 8.8 by 9.0.
  constexpr Version next() const;
  static std::optional<Version> parse(std::string_view text);
};

inline constexpr Version newest_version{9, 5};

/// The last minor version of each major version; each began with .0.
inline constexpr Version last_versions[] = {{1, 5}, {2, 3}, {3, 2}, {4, 3},        {5, 1},
                                            {6, 5}, {7, 8}, {8, 8}, newest_version};

constexpr bool Version::exists() const {
  for (const Version& last : last_versions)
    if (last.major == major) return minor <= last.minor;
  return false;
}

constexpr Version Version::next() const {
  const Version following{major, static_cast<std::uint8_t>(minor + 1)};
  const bool last = !following.exists() && *this < newest_version;
  return last ? Version{static_cast<std::uint8_t>(major + 1), 0} : following;
}
static_assert(Version{7, 8}.next() == Version{8, 0} && Version{8, 7}.next() == Version{8, 8});

enum class Feature : std::uint8_t;  // tartan/isa/feature.h

/// An architecture name: sm_80, sm_90a (that architecture alone), sm_100f (its family: also later
/// minor versions of the same major).
struct Arch {
  int sm = 0;
  char suffix = 0;  // 0, 'a' or 'f'
  constexpr bool operator==(const Arch&) const = default;
  std::string text() const;
  /// "sm_90a". Of a text that names no architecture, what it is near to.
  static Result<Arch> parse(std::string_view text);
  /// Whether it has a feature, with a PTX version that is new enough.
  bool has(Feature feature) const;
};

/// A row of the table of architectures.
struct ArchRow {
  Arch arch;
  Version first;     // the first PTX version that has the name
  int shared_bytes;  // shared memory of one block, opted in, in bytes
  bool current =
      true;  // CUDA 13's tools compile for it; older ones are names that PTX text may still have
};

// clang-format off
inline constexpr ArchRow archs[] = {
    {{50, 0}, {4, 0}, 49152, false},    {{52, 0}, {4, 1}, 49152, false},    {{53, 0}, {4, 2}, 49152, false},
    {{60, 0}, {5, 0}, 49152, false},    {{61, 0}, {5, 0}, 49152, false},    {{62, 0}, {5, 0}, 49152, false},
    {{70, 0}, {6, 0}, 98304, false},    {{72, 0}, {6, 1}, 98304, false},    {{75, 0}, {6, 3}, 65536},
    {{80, 0}, {7, 0}, 166912},   {{86, 0}, {7, 1}, 101376},   {{87, 0}, {7, 4}, 166912},
    {{88, 0}, {9, 0}, 101376},   {{89, 0}, {7, 8}, 101376},
    {{90, 0}, {7, 8}, 232448},   {{90, 'a'}, {8, 0}, 232448},
    {{100, 0}, {8, 6}, 232448},  {{100, 'a'}, {8, 6}, 232448}, {{100, 'f'}, {8, 8}, 232448},
    {{101, 0}, {8, 6}, 232448, false},  {{101, 'a'}, {8, 6}, 232448, false}, {{101, 'f'}, {8, 8}, 232448, false},
    {{103, 0}, {8, 8}, 232448},  {{103, 'a'}, {8, 8}, 232448}, {{103, 'f'}, {8, 8}, 232448},
    {{107, 0}, {9, 4}, 232448},  {{107, 'a'}, {9, 4}, 232448}, {{107, 'f'}, {9, 4}, 232448},
    {{110, 0}, {9, 0}, 232448},  {{110, 'a'}, {9, 0}, 232448}, {{110, 'f'}, {9, 0}, 232448},
    {{120, 0}, {8, 7}, 101376},  {{120, 'a'}, {8, 7}, 101376}, {{120, 'f'}, {8, 8}, 101376},
    {{121, 0}, {8, 8}, 101376},  {{121, 'a'}, {8, 8}, 101376}, {{121, 'f'}, {8, 8}, 101376},
};
// clang-format on

constexpr const ArchRow* find_arch(Arch arch) {
  for (const ArchRow& row : archs)
    if (row.arch == arch) return &row;
  return nullptr;
}

/// What a kernel is compiled for: an architecture and a PTX version.
struct Target {
  Arch arch;
  Version ptx;

  constexpr Target() = default;
  constexpr Target(Arch of_arch, Version of_ptx) : arch(of_arch), ptx(of_ptx) {}
  /// `arch` with the version that Tartan emits for it by default: the architecture's first, but at
  /// least 7.8 (CUDA 11.8), because older drivers reject newer text. Instructions that need a newer
  /// version report it: mma.sync of e4m3 requires 8.4, TMA on sm_90 (without a) 8.0.
  static Target of(Arch arch);
  /// "sm_90a": as of(). See Arch::parse().
  static Result<Target> parse(std::string_view arch);

  std::string text() const;  // "sm_90a, PTX 8.0"
  /// Whether it has a feature: the table of instructions knows.
  bool has(Feature feature) const;
  bool operator==(const Target&) const = default;
};

/// Which architectures an instruction form is for.
enum class Reach : std::uint8_t {
  Onward,     // from `sm` on, whatever the suffix
  Family,     // from `sm` on, names with suffix a or f
  ArchOnly,   // from `sm` on, names with suffix a
  ExactArch,  // `sm` with suffix a, nothing else
};

/// The first PTX version and architecture that accept a row; for what was removed, also the last
/// ones.
struct Since {
  Version ptx;
  int sm = 0;
  Reach reach = Reach::Onward;
  Version last = newest_version;
  int last_sm = 0;                     // 0: none
  std::array<std::int16_t, 3> only{};  // these numbers alone; 0: no such restriction

  constexpr bool has(Arch arch) const {
    if (last_sm != 0 && arch.sm > last_sm) return false;
    if (only[0] != 0 && arch.sm != only[0] && arch.sm != only[1] && arch.sm != only[2])
      return false;
    switch (reach) {
      case Reach::Onward: return arch.sm >= sm;
      case Reach::Family: return arch.sm >= sm && arch.suffix != 0;
      case Reach::ArchOnly: return arch.sm >= sm && arch.suffix == 'a';
      case Reach::ExactArch: return arch.sm == sm && arch.suffix == 'a';
    }
    return false;
  }
  /// Versions newer than those Tartan knows have what the newest known one has.
  constexpr bool has(Version version) const {
    return version >= ptx && (last == newest_version || version <= last);
  }
  constexpr bool has(const Target& target) const { return has(target.arch) && has(target.ptx); }
};

}  // namespace tartan::TARTAN_ABI
