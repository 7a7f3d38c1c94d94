#include "ignis/engine/program_record.h"

#include "ignis/base/byte_io.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ignis::engine {
namespace {

using Bytes = std::span<const std::byte>;

constexpr char kMagic[8] = {'I', 'G', 'N', 'I', 'S', 'P', 'R', 'G'};
constexpr int kMaxBuffers = 1 << 16;

Error refuse(std::string sentence, std::string reason) {
  return Error(ErrorCode::InvalidArgument, std::move(sentence), std::move(reason));
}

Digest take_digest(ByteReader& from) {
  Digest digest{};
  const Bytes raw = from.take_raw(digest.size());
  std::copy(raw.begin(), raw.end(), digest.begin());
  return digest;
}

bool is_symbol(const std::string& text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), is_plain);
}

}  // namespace

std::vector<std::byte> write_record(const ProgramRecord& record) {
  const CompiledKernel& kernel = record.kernel;
  const CodeIdentity& code = record.key.code;
  ByteWriter to;
  to.put_raw(std::as_bytes(std::span(kMagic)));
  to.put(kProgramFormat);
  to.put_raw(record.key.kernel);
  for (const std::string* text : {&code.target, &code.options, &code.generator, &code.compiler,
                                  &record.name, &kernel.image.name, &kernel.schedule}) {
    to.put_text(*text);
  }
  to.put(static_cast<int32_t>(kernel.image.buffer_count));
  to.put(kernel.parallel_units);
  to.put(kernel.flops);
  to.put_blob(kernel.image.object);
  to.put_raw(digest_of(to.bytes()));
  return to.take();
}

Result<ProgramRecord> read_record(Bytes bytes) {
  constexpr size_t kDigestBytes = sizeof(Digest);
  const Bytes magic = std::as_bytes(std::span(kMagic));
  if (bytes.size() < magic.size() || !std::equal(magic.begin(), magic.end(), bytes.begin())) {
    return refuse("The record does not begin with IGNISPRG.", "NotARecord");
  }
  if (bytes.size() < magic.size() + sizeof kProgramFormat + kDigestBytes) {
    return refuse("The record has " + std::to_string(bytes.size()) + " bytes only.", "Truncated");
  }
  const Bytes body = bytes.first(bytes.size() - kDigestBytes);
  ByteReader from(body.subspan(magic.size()));
  const auto format = from.take<uint32_t>();
  if (format != kProgramFormat) {
    return refuse("The record has format " + std::to_string(format) + "; this Ignis reads " +
                      std::to_string(kProgramFormat) + ".",
                  "VersionMismatch");
  }
  const Digest digest = digest_of(body);
  if (!std::equal(digest.begin(), digest.end(), bytes.last(kDigestBytes).begin())) {
    return refuse("The record's bytes do not have its digest.", "HashMismatch");
  }
  ProgramRecord record;
  const Digest kernel_key = take_digest(from);
  CodeIdentity code;
  ProgramImage& image = record.kernel.image;
  for (std::string* text : {&code.target, &code.options, &code.generator, &code.compiler,
                            &record.name, &image.name, &record.kernel.schedule}) {
    *text = from.take_text();
  }
  image.buffer_count = from.take<int32_t>();
  record.kernel.parallel_units = from.take<int64_t>();
  record.kernel.flops = from.take<double>();
  const Bytes object = from.take_blob();
  IGNIS_TRY(from.check("record"));
  // Whoever makes a file by hand can give it a fitting digest.
  if (object.empty() || !is_symbol(image.name) || image.buffer_count < 0 ||
      image.buffer_count > kMaxBuffers || record.kernel.parallel_units < 0 ||
      !(record.kernel.flops >= 0) || !std::isfinite(record.kernel.flops)) {
    return refuse("The record holds values that no program has.", "BadRecord");
  }
  image.object.assign(object.begin(), object.end());
  record.key = make_program_key(kernel_key, std::move(code));
  return record;
}

}  // namespace ignis::engine
