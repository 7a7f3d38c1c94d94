#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// The `.ignis` file: a header of 64 bytes, a table of 64 bytes a section, then the sections, each at a multiple of its
/// alignment with zeros between. All numbers are little-endian. See docs/artifact.md.
namespace ignis::exec {

inline constexpr std::string_view kArtifactMagic = "IGNISART";
inline constexpr uint32_t kArtifactVersion = 3;        ///< what this code writes
inline constexpr uint32_t kArtifactReaderVersion = 3;  ///< the oldest reader that understands it
inline constexpr uint32_t kArtifactOldestVersion = 3;  ///< the oldest file that this code reads
inline constexpr uint32_t kByteOrderMark = 0x01020304;
inline constexpr uint64_t kWeightsAlignment = 4096;  ///< of the section in the file: a page
inline constexpr size_t kDigestPieceBytes = size_t{1} << 20;
inline constexpr uint64_t kTensorAlignment = 256;  ///< of a tensor in the section

enum class SectionKind : uint32_t {
  Manifest = 1,    ///< texts by name; says what the artifact was made from
  Target = 2,      ///< programs and plan for one target; as often as there are targets
  Weights = 3,     ///< one region, mapped and never copied
  Signature = 4,   ///< Ed25519 over the header, the other rows of the table and so over all digests
  Slices = 5,      ///< names of parts of an output vector
  Golden = 6,      ///< inputs and the outputs they must give
  StatePairs = 7,  ///< outputs that are the next run's inputs
  Geometry = 8,    ///< the network's picture and how frames are brought to it
  Tuning = 9,      ///< what a tuner chose
  Part = 10,       ///< a further program beside the model, by name, for one target: a warp
};

/// One row of the section table, as it lies in the file.
struct SectionRow {
  uint32_t kind = 0;
  uint32_t flags = 0;  ///< bit 0: a reader that does not know the kind refuses the file
  uint64_t offset = 0;
  uint64_t length_bytes = 0;
  uint64_t alignment = 0;
  /// BLAKE2b-256 of the digests of the section's pieces of 1 MiB, one after the other; those are BLAKE2b-256, too.
  std::array<std::byte, 32> digest{};
};
inline constexpr uint32_t kMandatory = 1;
inline constexpr uint64_t kHeaderBytes = 64, kRowBytes = 64;
inline constexpr uint32_t kMaxSections = 1024;

/// The header after the magic, as it lies in the file; a byte order mark follows the flags, and zeros fill it up to a CRC-32
/// of all before it in the last 4 bytes.
struct ArtifactHeader {
  uint32_t version = kArtifactVersion;
  uint32_t reader_version = kArtifactReaderVersion;
  uint32_t flags = 0;
  uint32_t section_count = 0;
  uint32_t table_crc = 0;  ///< CRC-32 of the section table
  uint64_t file_bytes = 0;
};

}  // namespace ignis::exec
