#!/usr/bin/env bash
# Configures, builds and runs the tests of a preset, then counts the test cases of all programs.
#
#   scripts/run-tests.sh PRESET [JOBS]
#
# The last line reads "N passed, N failed, N skipped". Ends with 1 when one failed or none ran.
set -uo pipefail
cd "$(dirname "$0")/.."
preset=${1:?usage: run-tests.sh PRESET [JOBS]}
jobs=${2:-$(nproc)}
folder=build/$preset

cmake --preset "$preset" || exit 1
cmake --build --preset "$preset" --parallel "$jobs" || exit 1
if grep -q '^CMAKE_VERIFY_INTERFACE_HEADER_SETS:[A-Z]*=ON' "$folder/CMakeCache.txt"; then
  cmake --build --preset "$preset" --parallel "$jobs" --target all_verify_interface_header_sets || exit 1
fi

# Each GoogleTest program leaves its cases in test-results/<ctest name>.xml; ctest adds which programs it ran.
rm -rf "$folder/test-results"
mkdir -p "$folder/test-results"
ctest --test-dir "$folder" --parallel "$jobs" --output-on-failure --no-tests=error \
  --output-junit "$PWD/$folder/test-results/ctest.xml.all"
ctest_status=$?

passed=0 failed=0 skipped=0 skipped_programs=()
while IFS=$'\t' read -r name status; do
  cases=$folder/test-results/$name.xml
  if [ -s "$cases" ]; then
    read -r p f s < <(awk '
      /<testcase / {
        if (open && bad) f++; else if (open && skip) s++; else if (open) p++
        open = 1; bad = 0; skip = 0
        if ($0 ~ /status="notrun"/ || $0 ~ /result="suppressed"/) open = 0
        if ($0 ~ /result="skipped"/) skip = 1
      }
      /<failure/ { bad = 1 }
      END { if (open && bad) f++; else if (open && skip) s++; else if (open) p++; print p + 0, f + 0, s + 0 }
    ' "$cases")
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    # A program may fail after its last case: a leak, a crash in a destructor.
    if [ "$status" = fail ] && [ "$f" -eq 0 ]; then failed=$((failed + 1)); fi
  else
    case "$status" in
      run) passed=$((passed + 1)) ;;
      notrun | disabled) skipped=$((skipped + 1)) skipped_programs+=("$name") ;;
      *) failed=$((failed + 1)) ;;
    esac
  fi
done < <(sed -n 's/.*<testcase name="\([^"]*\)".* status="\([^"]*\)".*/\1\t\2/p' "$folder/test-results/ctest.xml.all")

# What was skipped is said aloud, each with its reason.
if [ "$skipped" -gt 0 ]; then
  echo "Skipped:"
  for name in "${skipped_programs[@]}"; do echo "  $name (the whole program; run it by hand for the reason)"; done
  grep -h -A2 'result="skipped"' "$folder"/test-results/*.xml 2>/dev/null |
    sed -n -e 's/.*<testcase name="\([^"]*\)".*classname="\([^"]*\)".*/  \2.\1/p' \
      -e 's/.*<skipped message="\([^"]*\)".*/      \1/p' | sed 's/&#x0A;/ /g' | cut -c1-200 | head -60
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$ctest_status" -eq 0 ] && [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
