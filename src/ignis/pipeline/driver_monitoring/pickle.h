#pragma once

#include "ignis/base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::pipeline {

/// An entry of a foreign slice map: the text and Python's slice(start, stop, None), either end of which may be None.
struct NamedSlice {
  std::string name;
  std::optional<int64_t> start, stop;

  bool operator==(const NamedSlice&) const = default;
};

/// Reads a slice map as model files carry it: base64, with or without line breaks, of a Python pickle (protocols 0 to
/// 5) of {text: slice(int or None, int or None, None)}. Nothing is executed: of the format only maps, texts, integers,
/// None and slice objects are understood. The order is the file's.
/// Errors: InvalidArgument, reason "SliceMap", for everything else; the sentence names the place.
Result<std::vector<NamedSlice>> read_slice_map(std::string_view base64);

/// The same from the pickle's own bytes.
Result<std::vector<NamedSlice>> read_slice_pickle(std::string_view bytes);

/// Errors: InvalidArgument, reason "SliceMap", for a sign outside the alphabet or wrong padding.
Result<std::string> decode_base64(std::string_view text);

}  // namespace ignis::pipeline
