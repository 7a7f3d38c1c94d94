#include "ignis/exec/artifact.h"

#include "ignis/base/math.h"
#include "ignis/exec/artifact_format.h"
#include "ignis/exec/mapped_file.h"
#include "ignis/exec/plan_section.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

namespace ignis::exec {
namespace {

using Bytes = std::span<const std::byte>;
using Digest = std::array<std::byte, 32>;

Error refuse(std::string sentence, std::string reason) {
  return Error(ErrorCode::InvalidArgument, std::move(sentence), std::move(reason));
}

const unsigned char* raw(Bytes bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

bool prepare_sodium() {
  static const int kReady = sodium_init();  // picks the fast code for this processor
  return kReady >= 0;
}

Digest digest_of(Bytes bytes) {
  IGNIS_CHECK(prepare_sodium());
  Digest digest;
  crypto_generichash(reinterpret_cast<unsigned char*>(digest.data()), digest.size(), raw(bytes),
                     bytes.size(), nullptr, 0);
  return digest;
}

// The CRC of zlib and Ethernet, bit by bit: it covers the header and the table only.
uint32_t crc32(Bytes bytes) {
  uint32_t crc = ~0u;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

std::vector<std::byte> write_header(const ArtifactHeader& header) {
  ByteWriter to;
  to.put_raw(std::as_bytes(std::span(kArtifactMagic)));
  to.put(header.version);
  to.put(header.reader_version);
  to.put(header.flags);
  to.put(kByteOrderMark);
  to.put(header.section_count);
  to.put(header.table_crc);
  to.put(header.file_bytes);
  to.align(kHeaderBytes);
  std::vector<std::byte> bytes = to.take();
  const uint32_t crc = crc32(Bytes(bytes).first(kHeaderBytes - 4));
  std::memcpy(bytes.data() + kHeaderBytes - 4, &crc, sizeof crc);
  return bytes;
}

Result<ArtifactHeader> read_header(Bytes file) {
  const auto magic = std::as_bytes(std::span(kArtifactMagic));
  if (file.size() < magic.size() || !std::equal(magic.begin(), magic.end(), file.begin())) {
    return refuse("The file does not begin with IGNISART.", "NotAnArtifact");
  }
  if (file.size() < kHeaderBytes) {
    return refuse(
        "The artifact has " + std::to_string(file.size()) + " bytes; its header alone has 64.",
        "Truncated");
  }
  ByteReader from(file.first(kHeaderBytes));
  from.take_raw(magic.size());
  ArtifactHeader header;
  header.version = from.take<uint32_t>();
  header.reader_version = from.take<uint32_t>();
  header.flags = from.take<uint32_t>();
  const auto order = from.take<uint32_t>();
  header.section_count = from.take<uint32_t>();
  header.table_crc = from.take<uint32_t>();
  header.file_bytes = from.take<uint64_t>();
  // Another version may place everything after these fields as it likes, so the version is looked at first.
  if (order != kByteOrderMark || header.reader_version > kArtifactVersion || header.version == 0) {
    return refuse("The artifact has format " + std::to_string(header.version) +
                      " and needs a reader of format " + std::to_string(header.reader_version) +
                      "; this one reads up to " + std::to_string(kArtifactVersion) +
                      ". Compile the model again, or use a newer Ignis.",
                  "VersionMismatch");
  }
  uint32_t crc = 0;
  std::memcpy(&crc, file.data() + kHeaderBytes - 4, sizeof crc);
  if (crc != crc32(file.first(kHeaderBytes - 4))) {
    return refuse("The artifact's header is damaged: its checksum does not fit.", "HashMismatch");
  }
  if (header.file_bytes != file.size()) {
    return refuse("The artifact has " + std::to_string(file.size()) + " bytes; its header says " +
                      std::to_string(header.file_bytes) + ".",
                  file.size() < header.file_bytes ? "Truncated" : "BadSection");
  }
  if (header.section_count > kMaxSections ||
      kHeaderBytes + kRowBytes * header.section_count > file.size()) {
    return refuse("The artifact's table of " + std::to_string(header.section_count) +
                      " sections does not fit into its " + std::to_string(file.size()) + " bytes.",
                  "BadSection");
  }
  if (header.table_crc != crc32(file.subspan(kHeaderBytes, kRowBytes * header.section_count))) {
    return refuse("The artifact's section table is damaged: its checksum does not fit.",
                  "HashMismatch");
  }
  return header;
}

void write_row(ByteWriter& to, const SectionRow& row) {
  to.put(row.kind);
  to.put(row.flags);
  to.put(row.offset);
  to.put(row.length_bytes);
  to.put(row.alignment);
  to.put_raw(row.digest);
}

SectionRow read_row(ByteReader& from) {
  SectionRow row;
  row.kind = from.take<uint32_t>();
  row.flags = from.take<uint32_t>();
  row.offset = from.take<uint64_t>();
  row.length_bytes = from.take<uint64_t>();
  row.alignment = from.take<uint64_t>();
  const Bytes digest = from.take_raw(row.digest.size());
  std::copy(digest.begin(), digest.end(), row.digest.begin());
  return row;
}

bool is_known(uint32_t kind) {
  return kind >= static_cast<uint32_t>(SectionKind::Manifest) &&
         kind <= static_cast<uint32_t>(SectionKind::Golden);
}

std::vector<std::byte> write_manifest(const std::map<std::string, std::string>& manifest) {
  ByteWriter to;
  to.put(static_cast<uint32_t>(manifest.size()));
  for (const auto& [name, text] : manifest) {
    to.put_text(name);
    to.put_text(text);
  }
  return to.take();
}

Result<std::map<std::string, std::string>> read_manifest(Bytes section) {
  ByteReader from(section);
  std::map<std::string, std::string> manifest;
  const uint64_t count = from.take_count(8);
  for (uint64_t i = 0; i < count; ++i) {
    std::string name = from.take_text();
    manifest[std::move(name)] = from.take_text();
  }
  IGNIS_TRY(from.check("artifact's manifest"));
  return manifest;
}

// The rows of the table but the signature's own, and the file's length: what a signature vouches for, and what the
// identity is made of.
std::vector<std::byte> signed_bytes(uint64_t file_bytes, const std::vector<SectionRow>& rows) {
  ByteWriter to;
  to.put_raw(std::as_bytes(std::span(kArtifactMagic)));
  to.put(kArtifactVersion);
  to.put(file_bytes);
  for (const SectionRow& row : rows) {
    if (row.kind != static_cast<uint32_t>(SectionKind::Signature)) write_row(to, row);
  }
  return to.take();
}

}  // namespace

std::string TargetNeeds::name() const {
  Target target = make_target(isa);
  target.arch = arch;
  return target.name();
}

bool TargetNeeds::is_met_by(const Target& target) const {
  return arch == target.arch && isa <= target.isa && make_target(isa).arch == arch;
}

struct Artifact::State {
  std::shared_ptr<const void> owner;
  Bytes file, weights;
  std::map<std::string, std::string> manifest;
  Digest identity{};
  bool is_signed = false;
  std::vector<TargetNeeds> targets;
  std::vector<Bytes> target_sections;

  Status check_row(const SectionRow& row, uint64_t end_of_last) const;
  Status take_section(const SectionRow& row, bool checks_digest);
  Status check_signature(const std::vector<SectionRow>& rows, Bytes public_key) const;
};

// Sections follow one another, so none overlaps another one or the table.
Status Artifact::State::check_row(const SectionRow& row, uint64_t end_of_last) const {
  const std::string name = "Section kind " + std::to_string(row.kind);
  if (!is_known(row.kind) && (row.flags & kMandatory) != 0) {
    return refuse(name + " is unknown here and must not be ignored.", "VersionMismatch");
  }
  const bool is_power = row.alignment != 0 && (row.alignment & (row.alignment - 1)) == 0;
  if (!is_power || row.alignment > kWeightsAlignment || row.offset % row.alignment != 0 ||
      row.offset < end_of_last || !is_range_inside(row.offset, row.length_bytes, file.size())) {
    return refuse(name + " takes " + std::to_string(row.length_bytes) + " bytes at " +
                      std::to_string(row.offset) + " (alignment " + std::to_string(row.alignment) +
                      ") of a file of " + std::to_string(file.size()) + " bytes.",
                  "BadSection");
  }
  const Bytes gap = file.subspan(end_of_last, row.offset - end_of_last);
  if (std::any_of(gap.begin(), gap.end(), [](std::byte byte) { return byte != std::byte{0}; })) {
    return refuse(
        "The bytes between sections are not all zero before " + std::to_string(row.offset) + ".",
        "HashMismatch");
  }
  return {};
}

Status Artifact::State::take_section(const SectionRow& row, bool checks_digest) {
  const Bytes section = file.subspan(row.offset, row.length_bytes);
  if (checks_digest && digest_of(section) != row.digest) {
    return refuse("Section kind " + std::to_string(row.kind) + " at " + std::to_string(row.offset) +
                      " is damaged: its digest does not fit.",
                  "HashMismatch");
  }
  switch (static_cast<SectionKind>(row.kind)) {
    case SectionKind::Manifest: {
      IGNIS_TRY_ASSIGN(manifest, read_manifest(section));
      break;
    }
    case SectionKind::Target: {
      IGNIS_TRY_ASSIGN(const TargetNeeds needs, read_needs(section));
      targets.push_back(needs);
      target_sections.push_back(section);
      break;
    }
    case SectionKind::Weights: {
      if (row.alignment < kTensorAlignment) {
        return refuse("The weights are aligned to " + std::to_string(row.alignment) +
                          " bytes, not to " + std::to_string(kTensorAlignment) + ".",
                      "BadSection");
      }
      weights = section;
      break;
    }
    default: break;
  }
  return {};
}

Status Artifact::State::check_signature(const std::vector<SectionRow>& rows,
                                        Bytes public_key) const {
  if (public_key.empty()) return {};
  if (public_key.size() != crypto_sign_PUBLICKEYBYTES) {
    return refuse("A public key has 32 bytes, not " + std::to_string(public_key.size()) + ".",
                  "BadKey");
  }
  const auto row = std::find_if(rows.begin(), rows.end(), [](const SectionRow& r) {
    return r.kind == static_cast<uint32_t>(SectionKind::Signature);
  });
  if (row == rows.end()) {
    return refuse("The artifact carries no signature; one is asked for.", "NotSigned");
  }
  const std::vector<std::byte> message = signed_bytes(file.size(), rows);
  if (row->length_bytes != crypto_sign_BYTES ||
      crypto_sign_verify_detached(raw(file.subspan(row->offset, row->length_bytes)), raw(message),
                                  message.size(), raw(public_key)) != 0) {
    return refuse("The artifact's signature is not by the given key.", "SignatureMismatch");
  }
  return {};
}

Artifact::Artifact(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Result<Artifact> Artifact::parse(Bytes bytes, std::shared_ptr<const void> owner,
                                 const ArtifactOptions& options) {
  IGNIS_CHECK(prepare_sodium());
  IGNIS_TRY_ASSIGN(const ArtifactHeader header, read_header(bytes));
  auto state = std::make_shared<State>();
  state->owner = std::move(owner);
  state->file = bytes;
  ByteReader table(bytes.subspan(kHeaderBytes, kRowBytes * header.section_count));
  std::vector<SectionRow> rows;
  uint64_t end = kHeaderBytes + kRowBytes * header.section_count;
  for (uint32_t i = 0; i < header.section_count; ++i) {
    rows.push_back(read_row(table));
    IGNIS_TRY(state->check_row(rows.back(), end));
    end = rows.back().offset + rows.back().length_bytes;
  }
  state->identity = digest_of(signed_bytes(bytes.size(), rows));
  // Before anything of the sections is believed.
  IGNIS_TRY(state->check_signature(rows, options.public_key));
  for (const SectionRow& row : rows) {
    const bool is_weights = row.kind == static_cast<uint32_t>(SectionKind::Weights);
    IGNIS_TRY(state->take_section(row, options.checks_weights || !is_weights));
    state->is_signed =
        state->is_signed || row.kind == static_cast<uint32_t>(SectionKind::Signature);
  }
  return Artifact(std::move(state));
}

Result<Artifact> Artifact::open(const std::string& path, const ArtifactOptions& options) {
  IGNIS_TRY_ASSIGN(const MappedFile file, map_file(path));
  Result<Artifact> artifact = parse(file.bytes, file.owner, options);
  if (!artifact) return std::move(artifact).error().with_context(path);
  return artifact;
}

const std::map<std::string, std::string>& Artifact::manifest() const { return state_->manifest; }
const Digest& Artifact::identity() const { return state_->identity; }
bool Artifact::is_signed() const { return state_->is_signed; }
const std::vector<TargetNeeds>& Artifact::targets() const { return state_->targets; }
uint64_t Artifact::file_bytes() const { return state_->file.size(); }
uint64_t Artifact::weight_bytes() const { return state_->weights.size(); }

Result<Plan> Artifact::plan_for(const Target& target) const {
  const State& state = *state_;
  size_t best = state.targets.size();
  std::string held;
  for (size_t i = 0; i < state.targets.size(); ++i) {
    held += (i == 0 ? "" : ", ") + state.targets[i].name();
    if (!state.targets[i].is_met_by(target)) continue;
    if (best == state.targets.size() || state.targets[i].isa > state.targets[best].isa) best = i;
  }
  if (best == state.targets.size()) {
    return Error(ErrorCode::Unsupported,
                 "The artifact holds code for " + (held.empty() ? "nothing" : held) +
                     "; this device is " + target.name() +
                     ". Compile the model with --target for it.",
                 "TargetMismatch");
  }
  return read_plan(state.target_sections[best], state.weights, state_);
}

Result<std::vector<std::byte>> make_artifact(const ArtifactContents& contents) {
  if (contents.targets.empty()) return refuse("An artifact needs at least one target.", "NoTarget");
  if (!contents.secret_key.empty() && contents.secret_key.size() != crypto_sign_SECRETKEYBYTES) {
    return refuse(
        "A secret key has 64 bytes, not " + std::to_string(contents.secret_key.size()) + ".",
        "BadKey");
  }
  IGNIS_CHECK(prepare_sodium());

  // Equal constants lie once, in the order of their first use.
  ByteWriter weights;
  std::map<std::pair<Digest, int64_t>, uint64_t> placed;
  const auto place = [&](const BufferPlan& buffer) {
    const Bytes bytes(buffer.constant, static_cast<size_t>(buffer.size_bytes));
    const auto [at, is_new] = placed.emplace(std::pair(digest_of(bytes), buffer.size_bytes), 0);
    if (is_new) {
      weights.align(kTensorAlignment);
      at->second = weights.size();
      weights.put_raw(bytes);
    }
    return at->second;
  };

  struct Section {
    SectionKind kind;
    uint64_t alignment;
    std::vector<std::byte> bytes;
  };
  std::vector<Section> sections;
  sections.push_back({SectionKind::Manifest, 8, write_manifest(contents.manifest)});
  std::vector<std::string> names;
  for (const ArtifactContents::ForTarget& target : contents.targets) {
    const std::string name = target.needs.name();
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return refuse("The artifact is given two plans for " + name + ".", "DuplicateTarget");
    }
    names.push_back(name);
    ByteWriter plan;
    write_plan(plan, target.needs, *target.plan, place);
    sections.push_back({SectionKind::Target, 8, plan.take()});
  }
  if (!contents.secret_key.empty()) {
    sections.push_back({SectionKind::Signature, 8, std::vector<std::byte>(crypto_sign_BYTES)});
  }
  sections.push_back({SectionKind::Weights, kWeightsAlignment, weights.take()});

  ArtifactHeader header;
  header.section_count = static_cast<uint32_t>(sections.size());
  std::vector<SectionRow> rows;
  uint64_t end = kHeaderBytes + kRowBytes * sections.size();
  for (const Section& section : sections) {
    SectionRow row;
    row.kind = static_cast<uint32_t>(section.kind);
    row.flags = kMandatory;
    row.alignment = section.alignment;
    row.offset = (end + section.alignment - 1) / section.alignment * section.alignment;
    row.length_bytes = section.bytes.size();
    row.digest = digest_of(section.bytes);
    end = row.offset + row.length_bytes;
    rows.push_back(row);
  }
  header.file_bytes = end;
  for (size_t i = 0; i < sections.size(); ++i) {
    if (sections[i].kind != SectionKind::Signature) continue;
    const std::vector<std::byte> message = signed_bytes(end, rows);
    crypto_sign_detached(reinterpret_cast<unsigned char*>(sections[i].bytes.data()), nullptr,
                         raw(message), message.size(), raw(contents.secret_key));
    rows[i].digest = digest_of(sections[i].bytes);
  }

  ByteWriter table;
  for (const SectionRow& row : rows) write_row(table, row);
  header.table_crc = crc32(table.bytes());
  ByteWriter file;
  file.put_raw(write_header(header));
  file.put_raw(table.bytes());
  for (size_t i = 0; i < sections.size(); ++i) {
    file.align(rows[i].alignment);
    file.put_raw(sections[i].bytes);
  }
  IGNIS_CHECK(file.size() == header.file_bytes);
  return file.take();
}

}  // namespace ignis::exec
