#!/usr/bin/env bash
# Makes sure that the Debian packages for a purpose are there.
#
#   scripts/install-deps.sh build|demo|test [further packages…]
#
# As root it installs what is missing with apt-get; otherwise it prints the command and ends with 1.
# With everything in place it asks no package source, so it works offline.
set -euo pipefail

build=(g++ make cmake ninja-build ccache pkg-config llvm-19-dev libprotozero-dev nlohmann-json3-dev
  libcli11-dev libfmt-dev libxxhash-dev libsodium-dev libsqlite3-dev zlib1g-dev libzstd-dev libpng-dev libjpeg-dev
  capnproto libcapnp-dev libzmq3-dev libavcodec-dev libavformat-dev libavutil-dev libswscale-dev libcpp-httplib-dev)
demo=(python3 python3-pip python3-venv ca-certificates)
test=(libgtest-dev libgmock-dev clang-19 lld qemu-user llvm-19-tools libonnx-testdata
  chromium-headless-shell fonts-dejavu-core)

purpose=${1:?usage: install-deps.sh build|demo|test [packages…]}
shift
case "$purpose" in
  build) wanted=("${build[@]}") ;;
  demo) wanted=("${build[@]}" "${demo[@]}") ;;
  test) wanted=("${build[@]}" "${test[@]}") ;;
  *) echo "install-deps.sh: unknown purpose '$purpose'" >&2; exit 2 ;;
esac
wanted+=("$@")

if [ -n "${IGNIS_SKIP_DEPS:-}" ]; then exit 0; fi

if ! command -v dpkg-query >/dev/null; then
  echo "This is not a Debian system. Ignis needs what these Debian 12 packages hold:" >&2
  echo "  ${wanted[*]}" >&2
  echo "Set IGNIS_SKIP_DEPS=1 when they are there under other names." >&2
  exit 1
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
  echo "Missing packages. Install them with:" >&2
  echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 1
fi

echo "Installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
