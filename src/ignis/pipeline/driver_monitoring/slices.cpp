#include "ignis/pipeline/driver_monitoring/slices.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace ignis::pipeline {
namespace {

constexpr std::array<std::string_view, kHeadCount> kHeadNames = {
    "face_prob",        "left_eye_prob",   "right_eye_prob",   "left_blink_prob",
    "right_blink_prob", "sunglasses_prob", "using_phone_prob", "sleep_prob"};

Error fault(const char* reason, const std::string& sentence) {
  return Error(ErrorCode::InvalidArgument, sentence, reason);
}

std::string describe(const Slice& slice) {
  return "'" + slice.name + "' [" + std::to_string(slice.start) + ", " +
         std::to_string(slice.stop) + ")";
}

// Python's meaning of None and of negative ends, but nothing is clamped.
Result<Slice> resolve(const NamedSlice& named, int64_t output_count) {
  const auto end = [&](const std::optional<int64_t>& value, int64_t otherwise) {
    if (!value) return otherwise;
    return *value < 0 ? *value + output_count : *value;
  };
  const Slice slice{named.name, end(named.start, 0), end(named.stop, output_count)};
  if (slice.start < 0 || slice.start >= slice.stop || slice.stop > output_count) {
    return fault("SliceOutOfRange", "Slice " + describe(slice) + " is not a part of the " +
                                        std::to_string(output_count) +
                                        " outputs that the model has.");
  }
  return slice;
}

class TableMaker {
 public:
  TableMaker(std::span<const Slice> slices, HeadTable& table) : slices_(slices), table_(table) {}

  Status take(const std::string& name, int64_t width, bool is_required, Slice& out) {
    const auto at = std::find_if(slices_.begin(), slices_.end(),
                                 [&](const Slice& slice) { return slice.name == name; });
    if (at == slices_.end()) {
      if (!is_required) return {};
      return fault("SliceMissing", "The model's slice map has no '" + name + "'.");
    }
    if (at->width() != width) {
      return fault("SliceWidth", "Slice " + describe(*at) + " has " + std::to_string(at->width()) +
                                     " values; " + name + " has " + std::to_string(width) + ".");
    }
    out = *at;
    table_.used.push_back(*at);
    return {};
  }

 private:
  std::span<const Slice> slices_;
  HeadTable& table_;
};

// Heads may not share values with each other nor with what else is named.
Status check_overlap(const std::vector<Slice>& used, std::span<const Slice> all) {
  for (const Slice& head : used) {
    for (const Slice& other : all) {
      if (other.name == head.name || other.start >= head.stop || head.start >= other.stop) continue;
      return fault("SliceOverlap",
                   "Slices " + describe(head) + " and " + describe(other) + " overlap.");
    }
  }
  return {};
}

}  // namespace

Result<HeadTable> make_head_table(std::span<const NamedSlice> slices, int64_t output_count) {
  std::vector<Slice> all;
  for (const NamedSlice& named : slices) {
    IGNIS_TRY_ASSIGN(all.emplace_back(), resolve(named, output_count));
  }
  HeadTable table;
  table.output_count = output_count;
  TableMaker maker(all, table);
  for (const auto& [side, suffix] :
       {std::pair(&table.left, "_lhd"), std::pair(&table.right, "_rhd")}) {
    IGNIS_TRY(
        maker.take(std::string("face_descs") + suffix, kDescriptorWidth, true, side->descriptor));
    for (size_t i = 0; i < kHeadNames.size(); ++i) {
      // Added last, and read by no consumer of the studied policy: older generations lack it.
      const bool is_required = i != static_cast<size_t>(Head::Sleep);
      IGNIS_TRY(maker.take(std::string(kHeadNames[i]) + suffix, 1, is_required, side->heads[i]));
    }
  }
  IGNIS_TRY(maker.take("wheel_on_right", 1, true, table.wheel_on_right));
  IGNIS_TRY(check_overlap(table.used, all));
  std::sort(table.used.begin(), table.used.end(),
            [](const Slice& a, const Slice& b) { return a.start < b.start; });
  return table;
}

Result<std::vector<NamedSlice>> default_slices(int64_t output_count) {
  if (output_count != 553 && output_count != 551) {
    return Error(ErrorCode::Unsupported,
                 "The model has " + std::to_string(output_count) +
                     " outputs and no slice map (metadata 'output_slices'); without one only 553 "
                     "and 551 outputs are known.",
                 "SliceMissing");
  }
  const size_t head_count = output_count == 553 ? kHeadCount : kHeadCount - 1;
  std::vector<NamedSlice> slices;
  int64_t at = 0;
  const auto add = [&](const std::string& name, int64_t width) {
    slices.push_back({name, at, at + width});
    at += width;
  };
  for (const char* suffix : {"_lhd", "_rhd"}) {
    add(std::string("face_descs") + suffix, kDescriptorWidth);
    for (size_t i = 0; i < head_count; ++i) add(std::string(kHeadNames[i]) + suffix, 1);
  }
  add("wheel_on_right", 1);
  add("features", 512);
  return slices;
}

}  // namespace ignis::pipeline
