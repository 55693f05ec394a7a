# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a C++ source with FILES as texts that embedded() finds by name: the last part of the
# path, and for those below kernels/ the path from there.
#   cmake -DOUTPUT=embedded.cc "-DFILES=a.js;b.css" -P embed.cmake
set(rows "")
foreach(path ${FILES})
  file(READ "${path}" text)
  get_filename_component(name "${path}" NAME)
  if(path MATCHES "/(kernels/[^/]+/[^/]+)$")
    set(name "${CMAKE_MATCH_1}")
  endif()
  string(APPEND rows "    {\"${name}\", R\"tartan_file(${text})tartan_file\"},\n")
endforeach()
file(WRITE "${OUTPUT}.new" "// SPDX-License-Identifier: Apache-2.0
// Made by tools/explore/embed.cmake.
#include \"tools/explore/page.h\"

namespace tartan::tools::explore {

std::string_view embedded(std::string_view name) {
  struct Row {
    std::string_view name, text;
  };
  static constexpr Row rows[] = {
${rows}  };
  for (const Row& row : rows)
    if (row.name == name) return row.text;
  return {};
}

}  // namespace tartan::tools::explore
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
