#include "ignis/exec/artifact.h"

#include "ignis/base/mapped_file.h"
#include "ignis/base/math.h"
#include "ignis/base/on_threads.h"
#include "ignis/exec/artifact_format.h"
#include "ignis/exec/plan_section.h"
#include "ignis/runtime/device.h"

#include <sodium.h>
#include <unistd.h>

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

// Of the digests of its pieces: all of the machine's threads look at a large section, which a start waits for.
Digest digest_of_section(Bytes section) {
  std::vector<Digest> pieces(ceil_div(section.size(), kDigestPieceBytes));
  on_threads(pieces.size(), static_cast<size_t>(runtime::usable_threads()), [&](size_t i) {
    const size_t begin = i * kDigestPieceBytes;
    pieces[i] =
        digest_of(section.subspan(begin, std::min(kDigestPieceBytes, section.size() - begin)));
  });
  return digest_of(std::as_bytes(std::span(pieces)));
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
  if (order != kByteOrderMark || header.reader_version > kArtifactVersion ||
      header.version < kArtifactOldestVersion) {
    return refuse("The artifact has format " + std::to_string(header.version) +
                      " and needs a reader of format " + std::to_string(header.reader_version) +
                      "; this one reads " + std::to_string(kArtifactOldestVersion) + " to " +
                      std::to_string(kArtifactVersion) +
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
         kind <= static_cast<uint32_t>(SectionKind::Part);
}

const char* name_of(uint32_t kind) {
  switch (static_cast<SectionKind>(kind)) {
    case SectionKind::Manifest: return "manifest";
    case SectionKind::Target: return "target";
    case SectionKind::Weights: return "weights";
    case SectionKind::Signature: return "signature";
    case SectionKind::Slices: return "slices";
    case SectionKind::Golden: return "golden";
    case SectionKind::StatePairs: return "state pairs";
    case SectionKind::Geometry: return "geometry";
    case SectionKind::Tuning: return "tuning";
    case SectionKind::Part: return "part";
  }
  return "unknown";
}

// These may be absent from what a reader understands; the rest of the file means the same without them.
bool is_mandatory(SectionKind kind) {
  return kind == SectionKind::Manifest || kind == SectionKind::Target ||
         kind == SectionKind::Weights || kind == SectionKind::Signature;
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
std::vector<std::byte> signed_bytes(uint32_t version, uint64_t file_bytes,
                                    const std::vector<SectionRow>& rows) {
  ByteWriter to;
  to.put_raw(std::as_bytes(std::span(kArtifactMagic)));
  to.put(version);
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
  uint32_t version = 0;
  std::vector<SectionRow> rows;
  std::vector<TargetNeeds> targets;  // of the model
  struct Program {
    std::string part;
    TargetNeeds needs;
    Bytes section;
  };
  std::vector<Program> programs;
  std::vector<OutputSlice> slices;
  std::vector<StatePair> state_pairs;
  std::optional<Geometry> geometry;
  std::optional<TuningRecord> tuning;

  Status check_row(const SectionRow& row, uint64_t end_of_last) const;
  Status take_section(const SectionRow& row, bool checks_digest);
  Status check_signature(Bytes public_key) const;
  Bytes bytes_of(const SectionRow& row) const { return file.subspan(row.offset, row.length_bytes); }
};

// Sections follow one another, so none overlaps another one or the table.
Status Artifact::State::check_row(const SectionRow& row, uint64_t end_of_last) const {
  const std::string name = "Section kind " + std::to_string(row.kind);
  if (!is_known(row.kind) && (row.flags & kMandatory) != 0) {
    return refuse(name + " is unknown here and must not be ignored.", "VersionMismatch");
  }
  const bool is_repeatable = row.kind == static_cast<uint32_t>(SectionKind::Target) ||
                             row.kind == static_cast<uint32_t>(SectionKind::Part);
  const auto same = [&](const SectionRow& other) { return other.kind == row.kind; };
  if (is_known(row.kind) && !is_repeatable && std::count_if(rows.begin(), rows.end(), same) > 1) {
    return refuse("The artifact has two sections of kind " + std::to_string(row.kind) + ".",
                  "BadSection");
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
  if (checks_digest && digest_of_section(section) != row.digest) {
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
      programs.push_back({"", needs, section});
      break;
    }
    case SectionKind::Part: {
      ByteReader from(section);
      std::string part = from.take_text();
      if (!from.is_whole() || part.empty()) return refuse("A part has no name.", "BadSection");
      const Bytes plan = section.last(from.remaining());
      IGNIS_TRY_ASSIGN(const TargetNeeds needs, read_needs(plan));
      programs.push_back({std::move(part), needs, plan});
      break;
    }
    case SectionKind::Slices: {
      IGNIS_TRY_ASSIGN(slices, read_slices(section));
      break;
    }
    case SectionKind::StatePairs: {
      IGNIS_TRY_ASSIGN(state_pairs, read_state_pairs(section));
      break;
    }
    case SectionKind::Geometry: {
      IGNIS_TRY_ASSIGN(geometry, read_geometry(section));
      break;
    }
    case SectionKind::Tuning: {
      IGNIS_TRY_ASSIGN(tuning, read_tuning(section));
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

Status Artifact::State::check_signature(Bytes public_key) const {
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
  const std::vector<std::byte> message = signed_bytes(version, file.size(), rows);
  if (row->length_bytes != crypto_sign_BYTES ||
      crypto_sign_verify_detached(raw(bytes_of(*row)), raw(message), message.size(),
                                  raw(public_key)) != 0) {
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
  state->version = header.version;
  std::vector<SectionRow>& rows = state->rows;
  ByteReader table(bytes.subspan(kHeaderBytes, kRowBytes * header.section_count));
  uint64_t end = kHeaderBytes + kRowBytes * header.section_count;
  for (uint32_t i = 0; i < header.section_count; ++i) {
    rows.push_back(read_row(table));
    IGNIS_TRY(state->check_row(rows.back(), end));
    end = rows.back().offset + rows.back().length_bytes;
  }
  state->identity = digest_of(signed_bytes(header.version, bytes.size(), rows));
  // Before anything of the sections is believed.
  IGNIS_TRY(state->check_signature(options.public_key));
  for (const SectionRow& row : rows) {
    // Golden data is of no use to a run: golden() checks it.
    const bool checks_digest =
        row.kind != static_cast<uint32_t>(SectionKind::Golden) &&
        (row.kind != static_cast<uint32_t>(SectionKind::Weights) || options.checks_weights);
    IGNIS_TRY(state->take_section(row, checks_digest));
    state->is_signed =
        state->is_signed || row.kind == static_cast<uint32_t>(SectionKind::Signature);
  }
  return Artifact(std::move(state));
}

bool is_artifact(const std::string& path) {
  const FileHandle file = open_to_read(path);
  char magic[kArtifactMagic.size()] = {};
  return file &&
         ::pread(file.descriptor(), magic, sizeof magic, 0) == static_cast<ssize_t>(sizeof magic) &&
         std::string_view(magic, sizeof magic) == kArtifactMagic;
}

Result<Artifact> Artifact::open(const std::string& path, const ArtifactOptions& options) {
  const Result<MappedFile> file = map_file(path);
  if (!file) {
    const Error& error = file.error();
    return error.reason() == "NotRegular" ? refuse(error.message(), "NotAnArtifact") : error;
  }
  Result<Artifact> artifact = parse(file->bytes, file->owner, options);
  if (!artifact) return std::move(artifact).error().with_context(path);
  return artifact;
}

const std::map<std::string, std::string>& Artifact::manifest() const { return state_->manifest; }
const Digest& Artifact::identity() const { return state_->identity; }
bool Artifact::is_signed() const { return state_->is_signed; }
const std::vector<TargetNeeds>& Artifact::targets() const { return state_->targets; }
uint64_t Artifact::file_bytes() const { return state_->file.size(); }
uint64_t Artifact::weight_bytes() const { return state_->weights.size(); }

const std::vector<OutputSlice>& Artifact::slices() const { return state_->slices; }
const std::vector<StatePair>& Artifact::state_pairs() const { return state_->state_pairs; }
const std::optional<Geometry>& Artifact::geometry() const { return state_->geometry; }
const std::optional<TuningRecord>& Artifact::tuning() const { return state_->tuning; }

std::vector<std::string> Artifact::parts() const {
  std::vector<std::string> names;
  for (const State::Program& program : state_->programs) {
    if (program.part.empty()) continue;
    if (std::find(names.begin(), names.end(), program.part) == names.end()) {
      names.push_back(program.part);
    }
  }
  return names;
}

Result<std::vector<GoldenCase>> Artifact::golden() const {
  for (const SectionRow& row : state_->rows) {
    if (row.kind != static_cast<uint32_t>(SectionKind::Golden)) continue;
    const Bytes section = state_->bytes_of(row);
    if (digest_of_section(section) != row.digest) {
      return refuse("The artifact's golden data is damaged: its digest does not fit.",
                    "HashMismatch");
    }
    return read_golden(section);
  }
  return std::vector<GoldenCase>();
}

std::vector<Artifact::SectionInfo> Artifact::sections() const {
  std::vector<SectionInfo> infos;
  for (const SectionRow& row : state_->rows) {
    infos.push_back(
        {row.kind, name_of(row.kind), row.offset, row.length_bytes, (row.flags & kMandatory) != 0});
  }
  return infos;
}

Result<Plan> Artifact::plan_for(const Target& target, const std::string& part) const {
  const State& state = *state_;
  const State::Program* best = nullptr;
  std::string held;
  for (const State::Program& program : state.programs) {
    if (program.part != part) continue;
    held += (held.empty() ? "" : ", ") + program.needs.name();
    if (!program.needs.is_met_by(target)) continue;
    if (best == nullptr || program.needs.isa > best->needs.isa) best = &program;
  }
  if (best != nullptr) return read_plan(best->section, state.weights, state_);
  if (held.empty() && !part.empty()) {
    std::string names;
    for (const std::string& name : parts()) names += (names.empty() ? "'" : ", '") + name + "'";
    return Error(ErrorCode::NotFound,
                 "The artifact has no part '" + part + "'; its parts are " +
                     (names.empty() ? "none" : names) + ".",
                 "NoPart");
  }
  return Error(ErrorCode::Unsupported,
               "The artifact holds code for " + (held.empty() ? "nothing" : held) +
                   "; this device is " + target.name() +
                   ". Compile the model with --target for it.",
               "TargetMismatch");
}

Result<std::vector<std::byte>> make_artifact(const ArtifactContents& contents) {
  const auto is_model = [](const ArtifactContents::ForTarget& target) {
    return target.part.empty();
  };
  if (std::none_of(contents.targets.begin(), contents.targets.end(), is_model)) {
    return refuse("An artifact needs at least one target.", "NoTarget");
  }
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
    const std::string name =
        target.needs.name() + (target.part.empty() ? "" : " of part '" + target.part + "'");
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return refuse("The artifact is given two plans for " + name + ".", "DuplicateTarget");
    }
    names.push_back(name);
    ByteWriter section;
    if (!target.part.empty()) section.put_text(target.part);
    IGNIS_TRY(write_plan(section, target.needs, *target.plan, place));
    sections.push_back(
        {target.part.empty() ? SectionKind::Target : SectionKind::Part, 8, section.take()});
  }
  const auto add = [&](SectionKind kind, const auto& write, const auto& value) {
    ByteWriter section;
    write(section, value);
    sections.push_back({kind, 8, section.take()});
  };
  if (!contents.slices.empty()) add(SectionKind::Slices, write_slices, contents.slices);
  if (!contents.state_pairs.empty()) {
    add(SectionKind::StatePairs, write_state_pairs, contents.state_pairs);
  }
  if (contents.geometry) add(SectionKind::Geometry, write_geometry, *contents.geometry);
  if (contents.tuning) add(SectionKind::Tuning, write_tuning, *contents.tuning);
  if (!contents.golden.empty()) add(SectionKind::Golden, write_golden, contents.golden);
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
    row.flags = is_mandatory(section.kind) ? kMandatory : 0;
    row.alignment = section.alignment;
    row.offset = (end + section.alignment - 1) / section.alignment * section.alignment;
    row.length_bytes = section.bytes.size();
    row.digest = digest_of_section(section.bytes);
    end = row.offset + row.length_bytes;
    rows.push_back(row);
  }
  header.file_bytes = end;
  for (size_t i = 0; i < sections.size(); ++i) {
    if (sections[i].kind != SectionKind::Signature) continue;
    const std::vector<std::byte> message = signed_bytes(header.version, end, rows);
    crypto_sign_detached(reinterpret_cast<unsigned char*>(sections[i].bytes.data()), nullptr,
                         raw(message), message.size(), raw(contents.secret_key));
    rows[i].digest = digest_of_section(sections[i].bytes);
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
