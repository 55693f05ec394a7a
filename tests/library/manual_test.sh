#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# manual_test.sh INSTALLED: the man page has each option of each command's --help, and formats
# without a warning; the completions complete.
set -eu
installed=$1
tartan=$installed/bin/tartan
packed=$installed/share/man/man1/tartan.1.gz
bash_file=$installed/share/bash-completion/completions/tartan
zsh_file=$installed/share/zsh/site-functions/_tartan
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
page=$work/tartan.1
gzip -dc "$packed" >"$page"

sed 's/\\-/-/g' "$page" >"$work/plain"
commands=$("$tartan" --help | sed -n '/^Subcommands:/,$s/^  \([a-z]*\) .*/\1/p')
test "$(echo "$commands" | wc -l)" -ge 7
for command in $commands; do
  grep -qx ".SS $command" "$work/plain" || { echo "the man page lacks the command $command"; exit 1; }
  for option in $("$tartan" "$command" --help | grep -oE '^  (-[a-z],)?--?[a-z-]+' | tr ',' ' '); do
    test "$option" != -h && test "$option" != --help || continue
    sed -n "/^\.SS $command\$/,/^\.S[SH] /p" "$work/plain" | grep -qF "fB$option\\fR" ||
      { echo "the man page lacks $option of $command"; exit 1; }
    grep -qF -- "$option" "$bash_file" || { echo "bash does not complete $option"; exit 1; }
    grep -qF -- "$option" "$zsh_file" || { echo "zsh does not complete $option"; exit 1; }
  done
done
if command -v groff >/dev/null; then
  groff -man -ww -z "$page" 2>"$work/warnings"
  test ! -s "$work/warnings" || { cat "$work/warnings"; exit 1; }
fi

# completes EXPECTED WORDS...: what bash offers for the last of the words.
completes() {
  expected=$1
  shift
  got=$(PATH=$installed/bin:$PATH bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tartan; echo "${COMPREPLY[*]}"' "$bash_file" "$@")
  test "$got" = "$expected" || { echo "bash completes $* to: $got; expected: $expected"; exit 1; }
}
completes "check" tartan ch
completes "none memory all" tartan run --checks ""
completes "--max-steps" tartan run x.json --max-s
completes "sm_90 sm_90a" tartan --color never check --target sm_90
completes "" tartan check x
if "$tartan" emit --list >/dev/null 2>&1; then
  completes "gemm gemm_sum" tartan emit gem
fi
if command -v zsh >/dev/null; then zsh -n "$zsh_file"; fi
