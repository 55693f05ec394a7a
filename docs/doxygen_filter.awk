# SPDX-License-Identifier: Apache-2.0
# docs/doxygen_filter.awk - what Doxygen reads of a public header. The comment at the head of the
# file and the comments behind members become documentation; the inline namespace, which Doxygen
# cannot read, is left out.

# "// tartan/launch.h - launching what ...", and what follows up to the first line that is code.
/^\/\/ tartan\/[a-z_\/]+\.h - / {
  sub(/^\/\/ tartan\/[a-z_\/]+\.h - /, "")
  print (FILENAME ~ /\/tartan\/tartan\.h$/ ? "/// \\mainpage Tartan" : "/// \\file")
  print "/// " toupper(substr($0, 1, 1)) substr($0, 2)
  head = 1
  next
}
head && /^\/\// {
  sub(/^\/\//, "///")
  sub(/^\/\/\/   /, "///      ")  # an indented line is code
  print
  next
}
{ head = 0; sub(/::TARTAN_ABI/, "") }

# "int k;  // columns of A", and the lines that continue the comment right below it.
column && match($0, /^ +\/\/ /) && RLENGTH == column { sub(/\/\/ /, "///< "); print; next }
{ column = 0 }
!/^ *\/\// && match($0, /  \/\/ /) {
  column = RSTART + RLENGTH - 1
  $0 = substr($0, 1, RSTART - 1) "  ///< " substr($0, RSTART + RLENGTH)
}
{ print }
