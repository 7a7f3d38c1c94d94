#include "ignis/exec/artifact_sections.h"

#include "ignis/base/math.h"

#include <cmath>

namespace ignis::exec {
namespace {

using Bytes = std::span<const std::byte>;

Error damaged(const std::string& what) {
  return Error(ErrorCode::InvalidArgument, "The artifact's " + what + ".", "BadSection");
}

// A reader at the end of its section. What is missing or left over is the section's fault, too.
Status check_end(const ByteReader& from, const std::string& what) {
  const Status status = from.check("artifact's " + what);
  return status ? Status() : Status(damaged(what + " ends too early or too late"));
}

bool take_bool(ByteReader& from) { return from.take<uint8_t>() != 0; }

void write_golden_tensor(ByteWriter& to, const GoldenTensor& tensor) {
  to.put_text(tensor.name);
  to.put_text(to_string(tensor.value.dtype));
  to.put(static_cast<uint32_t>(tensor.value.shape.size()));
  for (const int64_t extent : tensor.value.shape) to.put(extent);
  to.put(tensor.tolerance.atol);
  to.put(tensor.tolerance.rtol);
  to.put(tensor.tolerance.ulp);
  to.put_blob(tensor.value.bytes);
}

Result<GoldenTensor> read_golden_tensor(ByteReader& from) {
  GoldenTensor tensor;
  tensor.name = from.take_text();
  IGNIS_TRY_ASSIGN(tensor.value.dtype, parse_dtype(from.take_text()));
  const uint64_t rank = from.take_count(sizeof(int64_t));
  for (uint64_t axis = 0; axis < rank; ++axis) tensor.value.shape.push_back(from.take<int64_t>());
  tensor.tolerance.atol = from.take<double>();
  tensor.tolerance.rtol = from.take<double>();
  tensor.tolerance.ulp = from.take<double>();
  const Bytes bytes = from.take_blob();
  IGNIS_TRY_ASSIGN(const int64_t count, checked_element_count(tensor.value.shape));
  const int64_t element_bytes = size_bytes(tensor.value.dtype);
  if (element_bytes <= 0 ||
      static_cast<uint64_t>(count) != bytes.size() / static_cast<uint64_t>(element_bytes) ||
      bytes.size() % static_cast<uint64_t>(element_bytes) != 0) {
    return damaged("golden tensor '" + tensor.name + "' of " + std::to_string(count) +
                   " elements has " + std::to_string(bytes.size()) + " bytes");
  }
  const Tolerance& t = tensor.tolerance;
  if (!(t.atol >= 0) || !(t.rtol >= 0) || std::isnan(t.ulp)) {
    return damaged("golden tensor '" + tensor.name + "' has a tolerance below 0");
  }
  tensor.value.bytes.assign(bytes.begin(), bytes.end());
  return tensor;
}

Status read_golden_tensors(ByteReader& from, std::vector<GoldenTensor>& tensors) {
  const uint64_t count = from.take_count(44);
  for (uint64_t i = 0; i < count; ++i) {
    IGNIS_TRY_ASSIGN(GoldenTensor tensor, read_golden_tensor(from));
    tensors.push_back(std::move(tensor));
  }
  return {};
}

}  // namespace

std::string_view decode_name(DecodeKind kind) {
  switch (kind) {
    case DecodeKind::Raw: return "raw";
    case DecodeKind::Mean: return "mean";
    case DecodeKind::LogStd: return "log-std";
    case DecodeKind::Logit: return "logit";
    case DecodeKind::SoftmaxGroup: return "softmax-group";
  }
  return "unknown";
}

int64_t GoldenCase::size_bytes() const {
  int64_t total = 0;
  for (const GoldenTensor& tensor : inputs)
    total += static_cast<int64_t>(tensor.value.bytes.size());
  for (const GoldenTensor& tensor : outputs)
    total += static_cast<int64_t>(tensor.value.bytes.size());
  return total;
}

void write_slices(ByteWriter& to, const std::vector<OutputSlice>& slices) {
  to.put(static_cast<uint32_t>(slices.size()));
  for (const OutputSlice& slice : slices) {
    to.put_text(slice.output);
    to.put_text(slice.name);
    to.put(slice.start);
    to.put(slice.stop);
    to.put(static_cast<uint8_t>(slice.decode));
    to.put(static_cast<uint8_t>(slice.is_required));
  }
}

Result<std::vector<OutputSlice>> read_slices(Bytes section) {
  ByteReader from(section);
  std::vector<OutputSlice> slices;
  const uint64_t count = from.take_count(26);
  for (uint64_t i = 0; i < count; ++i) {
    OutputSlice slice;
    slice.output = from.take_text();
    slice.name = from.take_text();
    slice.start = from.take<int64_t>();
    slice.stop = from.take<int64_t>();
    const auto decode = from.take<uint8_t>();
    slice.is_required = take_bool(from);
    if (slice.start < 0 || slice.stop <= slice.start ||
        decode > static_cast<uint8_t>(DecodeKind::SoftmaxGroup)) {
      return damaged("slice '" + slice.name + "' is [" + std::to_string(slice.start) + ", " +
                     std::to_string(slice.stop) + ") of decode kind " + std::to_string(decode));
    }
    slice.decode = static_cast<DecodeKind>(decode);
    slices.push_back(std::move(slice));
  }
  IGNIS_TRY(check_end(from, "table of slices"));
  return slices;
}

void write_state_pairs(ByteWriter& to, const std::vector<StatePair>& pairs) {
  to.put(static_cast<uint32_t>(pairs.size()));
  for (const StatePair& pair : pairs) {
    to.put_text(pair.input);
    to.put_text(pair.output);
    to.put(pair.reset_value);
  }
}

Result<std::vector<StatePair>> read_state_pairs(Bytes section) {
  ByteReader from(section);
  std::vector<StatePair> pairs;
  const uint64_t count = from.take_count(16);
  for (uint64_t i = 0; i < count; ++i) {
    StatePair pair;
    pair.input = from.take_text();
    pair.output = from.take_text();
    pair.reset_value = from.take<double>();
    pairs.push_back(std::move(pair));
  }
  IGNIS_TRY(check_end(from, "table of state pairs"));
  return pairs;
}

void write_geometry(ByteWriter& to, const Geometry& geometry) {
  to.put_text(geometry.profile);
  to.put(geometry.width_px);
  to.put(geometry.height_px);
  to.put(geometry.focal_px);
  to.put(geometry.center_x_px);
  to.put(geometry.center_y_px);
  to.put_text(geometry.warp);
  to.put_text(geometry.rounding);
  to.put_text(geometry.planes);
  to.put(geometry.fill);
}

Result<Geometry> read_geometry(Bytes section) {
  ByteReader from(section);
  Geometry geometry;
  geometry.profile = from.take_text();
  geometry.width_px = from.take<int32_t>();
  geometry.height_px = from.take<int32_t>();
  geometry.focal_px = from.take<double>();
  geometry.center_x_px = from.take<double>();
  geometry.center_y_px = from.take<double>();
  geometry.warp = from.take_text();
  geometry.rounding = from.take_text();
  geometry.planes = from.take_text();
  geometry.fill = from.take<double>();
  IGNIS_TRY(check_end(from, "geometry"));
  const bool is_finite = std::isfinite(geometry.focal_px) && std::isfinite(geometry.center_x_px) &&
                         std::isfinite(geometry.center_y_px) && std::isfinite(geometry.fill);
  if (geometry.width_px <= 0 || geometry.height_px <= 0 || !is_finite || geometry.focal_px < 0) {
    return damaged("geometry is of " + std::to_string(geometry.width_px) + "x" +
                   std::to_string(geometry.height_px) + " pixels and focal length " +
                   std::to_string(geometry.focal_px));
  }
  return geometry;
}

void write_tuning(ByteWriter& to, const TuningRecord& record) {
  to.put_text(record.machine);
  to.put_text(record.version);
  to.put(static_cast<uint32_t>(record.choices.size()));
  for (const auto& [what, choice] : record.choices) {
    to.put_text(what);
    to.put_text(choice);
  }
}

Result<TuningRecord> read_tuning(Bytes section) {
  ByteReader from(section);
  TuningRecord record;
  record.machine = from.take_text();
  record.version = from.take_text();
  const uint64_t count = from.take_count(8);
  for (uint64_t i = 0; i < count; ++i) {
    std::string what = from.take_text();
    record.choices.emplace_back(std::move(what), from.take_text());
  }
  IGNIS_TRY(check_end(from, "tuning record"));
  return record;
}

void write_golden(ByteWriter& to, const std::vector<GoldenCase>& cases) {
  to.put(static_cast<uint32_t>(cases.size()));
  for (const GoldenCase& golden : cases) {
    to.put_text(golden.source);
    for (const std::vector<GoldenTensor>* tensors : {&golden.inputs, &golden.outputs}) {
      to.put(static_cast<uint32_t>(tensors->size()));
      for (const GoldenTensor& tensor : *tensors) write_golden_tensor(to, tensor);
    }
  }
}

Result<std::vector<GoldenCase>> read_golden(Bytes section) {
  ByteReader from(section);
  std::vector<GoldenCase> cases;
  const uint64_t count = from.take_count(12);
  for (uint64_t i = 0; i < count; ++i) {
    GoldenCase golden;
    golden.source = from.take_text();
    IGNIS_TRY(read_golden_tensors(from, golden.inputs));
    IGNIS_TRY(read_golden_tensors(from, golden.outputs));
    cases.push_back(std::move(golden));
  }
  IGNIS_TRY(check_end(from, "golden data"));
  return cases;
}

}  // namespace ignis::exec
