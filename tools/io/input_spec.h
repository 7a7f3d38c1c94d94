#pragma once

#include "ignis/base/host_tensor.h"

#include "tools/io/image.h"

#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::tools {

/// What `--input` says about one input, still without the model's say:
///
///     name=@file.npy            name=@file.npz (the member of that name, or the only one)
///     name=@file.raw            bytes of the model's dtype and shape; also name=1x3xf32=@file.raw
///     name=@file.pb             an ONNX tensor
///     name=@file.png,layout=NCHW,mean=127/127/127,scale=0.0078,color=bgr,resize=1
///     name=1x3xf32=1,2,3        name=f32=4 (a scalar)
///     name:uniform(0,1)  name:normal(0,1)  name:randint(0,100)  name:zeros  name:ones
///
/// `@all.npz` without a name gives every member to the input of its name.
struct InputSpec {
  enum class Kind : uint8_t { Literal, File, Image, Raw, Random };
  std::string name;
  Kind kind = Kind::Literal;
  HostTensor tensor;           ///< Literal and File: the value
  Image image;                 ///< Image
  ImageLayout image_layout;    ///< Image
  bool resizes_image = false;  ///< Image: fit it to the model's extents
  std::optional<DType> dtype;  ///< Raw: when stated
  std::optional<Shape> shape;  ///< Raw: when stated
  std::vector<std::byte> raw;  ///< Raw
  std::string generator;       ///< Random: "uniform", "normal", "randint", "zeros", "ones"
  double low = 0, high = 1;    ///< Random: [low, high), or mean and deviation
};

/// Reads one `--input` argument, its file included; more than one spec comes out of an archive without a name.
/// Errors: reason "Usage" for a malformed argument; all others concern the file.
Result<std::vector<InputSpec>> parse_input(std::string_view argument);

/// The shape the spec gives the input by itself, if it does: used for dims that the model leaves open.
std::optional<Shape> stated_shape(const InputSpec& spec);

/// The value for an input of the given dtype and shape. Random values depend on `rng` only.
/// Errors: reason "Usage" when dtype or shape differ from the model's; the message names both.
Result<HostTensor> make_input(const InputSpec& spec, DType dtype, const Shape& shape,
                              std::mt19937_64& rng);

/// "1x3x224x224" with "?" or "-1" for -1; "" and "scalar" are rank 0. Errors: reason "Usage".
Result<Shape> parse_shape(std::string_view text);

}  // namespace ignis::tools
