// SPDX-License-Identifier: Apache-2.0
#include "dsl/compiled_json.h"

#include <nlohmann/json.hpp>

namespace tartan::inline TARTAN_ABI {

using nlohmann::json;

// The library finds these by argument-dependent lookup. Members of a struct are an array in their
// order: such files are read by the version that wrote them.
static void to_json(json& out, const Place& x) { out = json::array({x.file, x.line, x.column}); }
static void from_json(const json& in, Place& x) {
  x = Place(in.at(0).get<std::string>(), in.at(1), in.at(2));
}

static void to_json(json& out, const Type& x) { out = static_cast<int>(x); }
static void from_json(const json& in, Type& x) { x = static_cast<Type>(in.get<int>()); }

static void to_json(json& out, const MapNumber& x) {
  out = json::array({x.value, x.params, x.divisor});
}
static void from_json(const json& in, MapNumber& x) {
  in.at(0).get_to(x.value), in.at(1).get_to(x.params), in.at(2).get_to(x.divisor);
}

static void to_json(json& out, const MatrixSpan& x) {
  out = json::array({x.rows, x.cols, x.row_stride, x.col_stride});
}
static void from_json(const json& in, MatrixSpan& x) {
  in.at(0).get_to(x.rows), in.at(1).get_to(x.cols);
  in.at(2).get_to(x.row_stride), in.at(3).get_to(x.col_stride);
}

static void to_json(json& out, const CompiledParam& x) {
  out = json::array({x.name, x.type, x.pointer, x.elements, x.span ? json(*x.span) : json(),
                     x.multiple_of, x.reads, x.writes});
}
static void from_json(const json& in, CompiledParam& x) {
  in.at(0).get_to(x.name), in.at(1).get_to(x.type), in.at(2).get_to(x.pointer);
  in.at(3).get_to(x.elements), in.at(5).get_to(x.multiple_of);
  in.at(6).get_to(x.reads), in.at(7).get_to(x.writes);
  if (!in.at(4).is_null()) x.span = in.at(4).get<MatrixSpan>();
}

static void to_json(json& out, const CompiledMap::Pixels& x) {
  out = json::array({x.lower, x.upper, x.steps});
}
static void from_json(const json& in, CompiledMap::Pixels& x) {
  in.at(0).get_to(x.lower), in.at(1).get_to(x.upper), in.at(2).get_to(x.steps);
}

static void to_json(json& out, const CompiledMap& x) {
  out = json::array({x.name, x.of, x.type, x.extents, x.strides, x.box, x.swizzle,
                     x.pixels ? json(*x.pixels) : json()});
}
static void from_json(const json& in, CompiledMap& x) {
  in.at(0).get_to(x.name), in.at(1).get_to(x.of), in.at(2).get_to(x.type);
  in.at(3).get_to(x.extents), in.at(4).get_to(x.strides), in.at(5).get_to(x.box);
  in.at(6).get_to(x.swizzle);
  if (!in.at(7).is_null()) x.pixels = in.at(7).get<CompiledMap::Pixels>();
}

static void to_json(json& out, const LaunchBound& x) {
  out =
      json::array({static_cast<int>(x.of), x.number, x.offset, x.tiles, x.exact, x.what, x.place});
}
static void from_json(const json& in, LaunchBound& x) {
  x.of = static_cast<LaunchBound::Of>(in.at(0).get<int>());
  in.at(1).get_to(x.number), in.at(2).get_to(x.offset), in.at(3).get_to(x.tiles);
  in.at(4).get_to(x.exact), in.at(5).get_to(x.what), in.at(6).get_to(x.place);
}

static void to_json(json& out, const Choice& x) {
  out = json::array({x.place, x.what, x.taken, x.reason, x.refused});
}
static void from_json(const json& in, Choice& x) {
  in.at(0).get_to(x.place), in.at(1).get_to(x.what), in.at(2).get_to(x.taken);
  in.at(3).get_to(x.reason), in.at(4).get_to(x.refused);
}

namespace detail {

json to_json(const Diags& diags) {
  json out = json::array();
  for (const Diag& each : diags)
    out.push_back(json::array({static_cast<int>(each.level), each.id, each.place, each.message,
                               each.source, each.width, each.caret}));
  return out;
}

Diags diags_from(const json& in) {
  Diags out;
  for (const json& each : in) {
    const Rule* rule = find_rule(each.at(1).get<std::string>());
    if (!rule) continue;
    Diag diag;
    diag.level = static_cast<Level>(each.at(0).get<int>());
    diag.id = rule->id;
    each.at(2).get_to(diag.place), each.at(3).get_to(diag.message);
    each.at(4).get_to(diag.source), each.at(5).get_to(diag.width), each.at(6).get_to(diag.caret);
    out.add(std::move(diag));
  }
  return out;
}

json to_json(const Compiled& x) {
  return {{"name", x.name},
          {"arch", x.target.arch.text()},
          {"ptx_version", json::array({x.target.ptx.major, x.target.ptx.minor})},
          {"ptx", x.ptx},
          {"block", x.block},
          {"shared_bytes", x.shared_bytes},
          {"dynamic_shared", x.dynamic_shared},
          {"cluster", x.cluster},
          {"params", x.params},
          {"maps", x.maps},
          {"bounds", x.bounds},
          {"choices", x.choices},
          {"warnings", to_json(x.warnings)}};
}

Compiled compiled_from(const json& in) {
  const auto target = Target::parse(in.at("arch").get<std::string>());
  if (!target) throw json::other_error::create(501, "unknown target", nullptr);
  const json& version = in.at("ptx_version");
  Compiled out{.name = in.at("name"), .target = *target, .ptx = in.at("ptx")};
  out.target.ptx = {version.at(0).get<std::uint8_t>(), version.at(1).get<std::uint8_t>()};
  in.at("block").get_to(out.block), in.at("shared_bytes").get_to(out.shared_bytes);
  in.at("dynamic_shared").get_to(out.dynamic_shared), in.at("cluster").get_to(out.cluster);
  in.at("params").get_to(out.params), in.at("maps").get_to(out.maps);
  in.at("bounds").get_to(out.bounds), in.at("choices").get_to(out.choices);
  out.warnings = diags_from(in.at("warnings"));
  return out;
}

}  // namespace detail
}  // namespace tartan::inline TARTAN_ABI
