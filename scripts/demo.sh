#!/usr/bin/env bash
# Finds the face in a portrait: fetches a real network and a picture, builds the tools, compiles the network with Ignis
# and draws what it answers into demo/face.png.
#
# The network and the picture are fetched once (scripts/fetch-demo.sh). Further arguments go to ignis-demo-face.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=.cache/demo
model=$cache/centerface.onnx
picture=$cache/astronaut.png
mkdir -p demo

scripts/fetch-demo.sh model picture

echo "Building the tools (no tests)"
cmake --preset release >"$cache/configure.log" || { cat "$cache/configure.log" >&2; exit 1; }
cmake --build --preset release --parallel "$(nproc)" --target ignis-demo-face

build/release/tools/demo_face/ignis-demo-face "$model" "$picture" demo/face.png "$@"
