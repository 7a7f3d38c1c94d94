# Thin wrappers over the CMake presets; `cmake --preset dev` and so on work as well.
#
#   make demo     build the tool, find the face in a picture, write demo/face.png
#   make watch    build the tool, watch a synthetic driver on a live page (WATCH_SECONDS=20, MODEL=cabin.onnx)
#   make test     build and run all tests           (PRESET=asan, PRESET=tsan for the sanitizers)
#   make bench    build and run the benchmarks      (MODELS="a.onnx b.onnx" THREADS=1,2)
#   make fuzz     build the libFuzzer programs with clang and run each for FUZZ_SECONDS (60)
#   make format   lay out all sources with clang-format 19

PRESET ?= dev
JOBS ?= $(shell nproc)
NINJA := $(shell command -v ninja 2>/dev/null)
ifneq ($(NINJA),)
export CMAKE_GENERATOR := Ninja
endif

.PHONY: demo watch test bench fuzz format clean

demo:
	scripts/install-deps.sh demo
	scripts/demo.sh

watch:
	scripts/install-deps.sh demo
	scripts/watch.sh

test:
	scripts/install-deps.sh test
	scripts/run-tests.sh $(PRESET) $(JOBS)

bench:
	scripts/install-deps.sh demo libbenchmark-dev
	cmake --preset bench
	cmake --build --preset bench --parallel $(JOBS)
	bench/run.sh build/bench $(MODELS)

FUZZ_SECONDS ?= 60
fuzz:
	scripts/install-deps.sh test libclang-rt-19-dev
	scripts/run-fuzz.sh $(FUZZ_SECONDS) $(JOBS)

format:
	git ls-files --cached --others --exclude-standard '*.cpp' '*.h' | xargs clang-format-19 -i

clean:
	rm -rf build
