#pragma once

#include "ignis/engine/session.h"

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ignis {

struct CompileOptions {
  /// Its `device` and `taps` are not used; its dims, shapes and constants bind the model for good. Its `threads` say how finely kernels
  /// may be cut; the artifact runs on any number.
  SessionOptions session;
  /// Device SPECs whose code goes into the artifact: "cpu" (this machine's best), "cpu:llvm:sse2",
  /// "cpu:llvm:aarch64-neon". This machine need not be able to run it.
  std::vector<std::string> targets = {"cpu"};
  std::map<std::string, std::string> manifest;  ///< further texts about the model
  std::span<const std::byte> secret_key;        ///< empty, or an Ed25519 key of 64 bytes that signs
};

struct CompiledTarget {
  std::string name;  ///< "x86_64-avx2"
  StageTimes times;
  std::vector<ProgramLookup> lookups;
  int kernels = 0, programs = 0;
  int64_t code_bytes = 0, arena_bytes = 0, constant_bytes = 0;
};

struct CompiledArtifact {
  std::vector<std::byte> bytes;  ///< the file
  std::vector<CompiledTarget> targets;
  std::vector<PortInfo> inputs, outputs;
};

/// Compiles a model for each target into one `.ignis` file. Equal models, options and versions give equal bytes.
/// Errors: as Session::load; InvalidArgument for no target or two that come to the same code.
Result<CompiledArtifact> compile_artifact(const std::string& model_path,
                                          const CompileOptions& options = {});

}  // namespace ignis
