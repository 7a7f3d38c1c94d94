#!/usr/bin/env bash
# Runs the benchmarks of a build: register tiles, then whole models in turns with ONNX Runtime.
#
#   bench/run.sh BUILD [MODEL.onnx …]        THREADS="1 2" by default
#
# Without models it takes those of ../shared/models (or IGNIS_SHARED), if there are any. ONNX Runtime comes from PyPI into
# .cache/bench-venv, once.
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
venv=.cache/bench-venv
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import onnxruntime' 2>/dev/null; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet -r bench/requirements.txt
fi
for threads in ${THREADS:-1 2}; do
  echo "== $threads thread(s)"
  "$venv/bin/python" bench/compare.py --ignis "$build/tools/ignis/ignis" --threads "$threads" "${models[@]}"
done
