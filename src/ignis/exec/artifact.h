#pragma once

#include "ignis/base/result.h"
#include "ignis/base/target.h"
#include "ignis/exec/artifact_sections.h"
#include "ignis/exec/plan.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ignis::exec {

/// What code a plan of an artifact needs.
struct TargetNeeds {
  Arch arch = Arch::X86_64;
  Isa isa = Isa::Sse2;
  std::string name() const;  ///< "x86_64-avx2"
  /// Whether `target` has the architecture and the instruction set, which includes the lower ones.
  bool is_met_by(const Target& target) const;
};

struct ArtifactOptions {
  /// Off: the weights' digest is not looked at. For files that were checked when they were installed.
  bool checks_weights = true;
  /// When not empty (32 bytes): the file must carry a signature by this Ed25519 key.
  std::span<const std::byte> public_key;
};

/// A compiled model in one file, mapped read-only: its pages are shared by all processes that open it. Data only; opening
/// executes nothing. Cheap to copy.
class Artifact {
 public:
  /// Maps the file and checks its header, table, digests and signature before anything of it is used; golden data is
  /// checked when it is asked for.
  /// Errors: NotFound; InvalidArgument with the reason NotAnArtifact, Truncated, VersionMismatch, HashMismatch,
  /// BadSection, NotSigned or SignatureMismatch, saying what was found and what was expected.
  static Result<Artifact> open(const std::string& path, const ArtifactOptions& options = {});
  /// The same from bytes that `owner` keeps.
  static Result<Artifact> parse(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                const ArtifactOptions& options = {});

  /// "model.name", "model.sha256", "ignis.version", …
  const std::map<std::string, std::string>& manifest() const;
  /// BLAKE2b-256 over the section table, and so over all digests: the artifact's identity.
  const std::array<std::byte, 32>& identity() const;
  bool is_signed() const;
  const std::vector<TargetNeeds>& targets() const;
  uint64_t file_bytes() const;
  uint64_t weight_bytes() const;
  /// The plan for the highest target that the device's `target` meets. Its constants lie in the mapped file, which it
  /// keeps. `part` names a program beside the model; empty: the model.
  /// Errors: NotFound with the reason NoPart naming the parts there are; Unsupported with the reason TargetMismatch naming
  /// both; InvalidArgument for a damaged plan.
  Result<Plan> plan_for(const Target& target, const std::string& part = "") const;
  /// Names of the programs beside the model, each once, in the file's order.
  std::vector<std::string> parts() const;

  const std::vector<OutputSlice>& slices() const;
  const std::vector<StatePair>& state_pairs() const;
  const std::optional<Geometry>& geometry() const;
  const std::optional<TuningRecord>& tuning() const;
  /// Inputs with the outputs they must give; read from the file at each call. Errors: InvalidArgument (BadSection,
  /// HashMismatch).
  Result<std::vector<GoldenCase>> golden() const;
  /// Kind, name and length of each section, in the file's order; for people.
  struct SectionInfo {
    uint32_t kind = 0;
    std::string name;
    uint64_t offset = 0, size_bytes = 0;
    bool is_mandatory = false;
  };
  std::vector<SectionInfo> sections() const;

 private:
  struct State;
  explicit Artifact(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

/// Whether the file begins like an artifact. False when it cannot be read.
bool is_artifact(const std::string& path);

/// What write_artifact() puts into a file.
struct ArtifactContents {
  std::map<std::string, std::string> manifest;
  struct ForTarget {
    TargetNeeds needs;
    const Plan* plan = nullptr;
    std::string part = {};  ///< empty: the model
  };
  std::vector<ForTarget> targets;
  std::vector<OutputSlice> slices;
  std::vector<StatePair> state_pairs;
  std::optional<Geometry> geometry;
  std::optional<TuningRecord> tuning;
  std::vector<GoldenCase> golden;
  /// Empty, or an Ed25519 secret key of 64 bytes.
  std::span<const std::byte> secret_key;
};

/// The artifact's bytes: equal contents give equal bytes. Equal constants are stored once, whatever the target.
/// Errors: InvalidArgument for no target of the model, or two of one name.
Result<std::vector<std::byte>> make_artifact(const ArtifactContents& contents);

}  // namespace ignis::exec
