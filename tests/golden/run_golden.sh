#!/bin/sh
# run_golden.sh IGNIS_OPT FILECHECK FILE: runs the options of the file's RUN line and checks what is printed.
set -u
opt=$1 filecheck=$2 file=$3
options=$(sed -n 's|^// RUN: *||p' "$file")
failing=$(sed -n 's|^// RUN-FAILS: *||p' "$file")
output=$(mktemp)
trap 'rm -f "$output"' EXIT
if [ -n "$failing" ]; then
  # shellcheck disable=SC2086 — the options are words
  if "$opt" $failing "$file" >"$output" 2>&1; then
    echo "$file: the pass did not fail" >&2
    exit 1
  fi
else
  # shellcheck disable=SC2086
  "$opt" $options "$file" >"$output" || exit 1
fi
"$filecheck" --input-file="$output" "$file"
