#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs_test.sh SOURCE INSTALLED: each relative link of the installed pages leads somewhere, and what they show as code is as in the
# source tree.
set -eu
source=$1 installed=$2
docs=$installed/share/doc/tartan
bad=0 links=0

code() { sed -n '/^ *```/,/^ *```/p' "$1"; }
for page in $(find "$docs" -name '*.md'); do
  folder=$(dirname "$page")
  for link in $(sed '/^ *```/,/^ *```/d' "$page" | grep -oP '\]\(\K[\w./-]*[./][\w./-]*(?=[)#])' | sort -u); do
    links=$((links + 1))
    test -e "$folder/$link" || { echo "${page#"$docs"/} links $link, which is not installed"; bad=1; }
  done
  original=$source/${page#"$docs"/}
  test "$(code "$page")" = "$(code "$original")" || { echo "${page#"$docs"/}: code differs from the source tree's"; bad=1; }
done
test "$links" -ge 100 || { echo "only $links links found"; bad=1; }
test -s "$docs/docs/pictures/explore_race.png" || { echo "pictures are not installed"; bad=1; }
# A link to a public header leads to the installed one; one to the inside of the tree is text.
grep -q '](\(\.\./\)*include/tartan/' "$docs/docs/"*.md || { echo "no link leads to an installed header"; bad=1; }
! grep -q 'kernels/tuner/gemm_cost.cc)' "$docs/docs/"*.md || { echo "a link leads into the source tree"; bad=1; }
exit $bad
