#!/usr/bin/env bash
# Checks on this machine what another one will do: cross-compiles libignis and its tests for AArch64 and runs them in
# qemu-user, then compiles models here for AArch64 and runs the artifacts there: a package's consumer, the golden models and
# the ONNX conformance cases.
#
#   scripts/check-aarch64.sh [NATIVE_BUILD] [CONFORMANCE_FILTER]     (default: build/dev, all cases)
#
# Takes some minutes. Needs 20 MB of Debian packages more than the tests do. Ends with 77, saying why, without them.
set -euo pipefail
cd "$(dirname "$0")/.."
native=${1:-build/dev}
filter=${2:-}
folder=$PWD/build/aarch64
sysroot=$folder-sysroot
packages=(clang-19 lld qemu-user googletest libc6-dev-arm64-cross libstdc++-12-dev-arm64-cross)

skip() { echo "SKIPPED: $*"; exit 77; }
scripts/install-deps.sh build "${packages[@]}" || skip "${packages[*]} are needed."

# Libraries for AArch64 are unpacked beside the build: the machine's own package lists stay as they are. Cap'n Proto's CMake
# files ask for OpenSSL and for the tool, of which only this machine's is run.
libraries=(libsodium23 libsodium-dev libcapnp-0.9.2 libcapnp-dev capnproto libssl3 libssl-dev nlohmann-json3-dev)
if [ ! -e "$sysroot/complete" ]; then
  rm -rf "$sysroot"
  mkdir -p "$sysroot/apt/lists/partial" "$sysroot/apt/cache/archives/partial"
  apt=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State::lists=$sysroot/apt/lists"
    -o "Dir::Cache=$sysroot/apt/cache" -o Dir::State::status=/dev/null -o APT::Sandbox::User=root)
  (cd "$sysroot/apt" && apt-get "${apt[@]}" update && apt-get "${apt[@]}" download "${libraries[@]}") ||
    skip "${libraries[*]} for arm64 cannot be fetched."
  for package in "$sysroot"/apt/*.deb; do dpkg -x "$package" "$sysroot"; done
  rm -rf "$sysroot/apt"
  touch "$sysroot/complete"
fi

echo "== libignis and its tests"
cross=(-G Ninja --toolchain "$PWD/cmake/aarch64-linux.cmake" "-DIGNIS_SYSROOT=$sysroot")
cmake -S . -B "$folder" "${cross[@]}" -DIGNIS_BUILD_COMPILER=OFF -DIGNIS_BUILD_TESTS=ON
cmake --build "$folder"
# qemu-user 7.2 aborts when the child of a fork starts a thread.
GTEST_FILTER='-*ChildOfAFork*' ctest --test-dir "$folder" --output-on-failure --no-tests=error

[ -e "$native/CMakeCache.txt" ] || cmake --preset dev -B "$native"
cmake --build "$native" --target ignis models_test onnx_conformance
target=cpu:llvm:neon
emulator="qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=$sysroot/usr/lib/aarch64-linux-gnu:$folder/prefix/lib"

echo "== A program on the installed libignis.so"
cmake --install "$folder" --component ignis-shared --prefix "$folder/prefix" >/dev/null
cmake -S packaging/consumer -B "$folder/consumer" "${cross[@]}" "-Dignis_DIR=$folder/prefix/lib/cmake/ignis" >/dev/null
cmake --build "$folder/consumer"
"$native/tools/ignis/ignis" compile packaging/consumer/add_one.onnx --target "$target" -o "$folder/add_one.ignis"
answer=$($emulator "$folder/consumer/vehicle" "$folder/add_one.ignis")
[ "$answer" = "[2] begins with 1" ] || { echo "The vehicle answers '$answer'."; exit 1; }

export IGNIS_TEST_RUNNER="$emulator $folder/tests/artifact/run_artifact"
echo "== Golden models"
"$native/tests/models/models_test" --gtest_filter='*aarch64*'
echo "== ONNX conformance"
"$native/tests/conformance/onnx_conformance" --device "$target" --runner "$IGNIS_TEST_RUNNER" --filter "$filter" \
  --expected tests/conformance/expected.txt
