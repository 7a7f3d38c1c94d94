#!/usr/bin/env bash
# Watches a driver: builds the tool, fetches a face detector that anyone may use, makes a synthetic cabin clip (a portrait
# that moves, blinks and puts on glasses), runs the pipeline on it and serves the live page on this machine.
#
#   scripts/watch.sh [further arguments for ignis dm]
#
# MODEL=cabin.onnx      another model; its profile is found by its inputs and outputs
# SOURCE=v4l2:/dev/video0   another source; a camera that is not known needs --intrinsics (ignis dm --help)
# WATCH_PORT=8780       port of the page; 0 takes a free one
# WATCH_SECONDS=20      ends by itself; without it Ctrl-C does
set -euo pipefail
cd "$(dirname "$0")/.."
model=${MODEL:-.cache/demo/centerface.onnx}
source=${SOURCE:-synthetic:drive}

if [ -z "${MODEL:-}" ]; then scripts/fetch-demo.sh model; fi

echo "Building the tool (no tests)"
mkdir -p .cache/demo
cmake --preset release >.cache/demo/configure.log || { cat .cache/demo/configure.log >&2; exit 1; }
cmake --build --preset release --parallel "$(nproc)" --target ignis

arguments=("$source" --model "$model" --view "${WATCH_PORT:-8780}")
# Synthetic frames come from a camera that looks straight ahead; a real one has its angles published or measured.
if [[ "$source" == synthetic:* ]]; then arguments+=(--calib 0,0,0); fi
if [ -n "${WATCH_SECONDS:-}" ]; then arguments+=(--seconds "$WATCH_SECONDS"); fi
echo "Open the live page in a browser on this machine; Ctrl-C ends."
exec build/release/tools/ignis/ignis dm "${arguments[@]}" "$@"
