#!/usr/bin/env bash
# Builds the libFuzzer programs and runs each for a bounded time. What they find is kept as build/fuzz/<name>/crash-….
#
#   scripts/run-fuzz.sh [SECONDS_EACH] [JOBS]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
jobs=${2:-$(nproc)}
targets=(frames_fuzz messages_fuzz npy_fuzz onnx_fuzz)

cmake --preset fuzz
cmake --build --preset fuzz --parallel "$jobs" --target "${targets[@]}"

for target in "${targets[@]}"; do
  corpus=build/fuzz/corpus/$target
  mkdir -p "$corpus" "build/fuzz/$target"
  # Small real models are a better beginning than nothing.
  if [ "$target" = onnx_fuzz ] && [ -d /usr/share/libonnx-testdata ] && [ -z "$(ls -A "$corpus")" ]; then
    find /usr/share/libonnx-testdata -name '*.onnx' -size -8k | LC_ALL=C sort |
      while read -r file; do cp "$file" "$corpus/$(echo "$file" | tr / _)"; done
  fi
  echo "$target: $seconds s"
  "build/fuzz/tests/fuzz/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$target/" "$corpus"
done
