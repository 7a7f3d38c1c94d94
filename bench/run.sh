#!/usr/bin/env bash
# Runs the benchmarks of a build: register tiles, then whole models in turns with the peers.
#
#   bench/run.sh BUILD [MODEL.onnx …]        THREADS=1,2 PEERS=onnxruntime by default
#
# Without models it takes those of ../shared/models (or IGNIS_SHARED), if there are any.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: bench/run.sh BUILD [MODEL.onnx …]}
shift
models=("$@")
if [ ${#models[@]} -eq 0 ]; then
  shopt -s nullglob
  models=("${IGNIS_SHARED:-../shared}"/models/*.onnx)
fi

"$build/bench/ignis_bench_kernels"

if [ ${#models[@]} -eq 0 ]; then
  echo "No models to compare: name some, as in  bench/run.sh $build MODEL.onnx"
  exit 0
fi
bench/compare --ignis "$build/tools/ignis/ignis" --threads "${THREADS:-1,2}" --peers "${PEERS:-onnxruntime}" \
  --models "$(IFS=,; echo "${models[*]}")"
