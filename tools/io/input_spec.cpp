#include "tools/io/input_spec.h"

#include "tools/io/files.h"
#include "tools/io/npy.h"
#include "tools/io/tensor_proto.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace ignis::tools {
namespace {

Error usage(const std::string& what) { return Error(ErrorCode::InvalidArgument, what, "Usage"); }

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

Result<double> parse_number(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return usage("'" + std::string(text) + "' is no number.");
  return value;
}

Status store_number(HostTensor& tensor, int64_t i, std::string_view text) {
  if (text == "true" || text == "false")
    return store_element(tensor, i, text == "true" ? 1 : 0), Status::ok();
  if (tensor.dtype == DType::UInt64 ||
      tensor.dtype == DType::Int64) {  // beyond 2^53 a double would round
    const char* last = text.data() + text.size();
    int64_t value = 0;
    if (const auto r = std::from_chars(text.data(), last, value);
        r.ec == std::errc() && r.ptr == last) {
      return store_element_int(tensor, i, value), Status::ok();
    }
    uint64_t positive = 0;
    if (const auto r = std::from_chars(text.data(), last, positive);
        r.ec == std::errc() && r.ptr == last) {
      return store_element_int(tensor, i, static_cast<int64_t>(positive)), Status::ok();
    }
  }
  IGNIS_TRY_ASSIGN(const double value, parse_number(text));
  store_element(tensor, i, value);
  return Status::ok();
}

/// "1x3xf32": extents, then the dtype.
Result<std::pair<Shape, DType>> parse_type(std::string_view text) {
  const size_t at = text.rfind('x');
  auto dtype = parse_dtype(at == std::string_view::npos ? text : text.substr(at + 1));
  if (!dtype || size_bytes(*dtype) == 0)
    return usage("'" + std::string(text) + "' is no type such as 1x3xf32.");
  IGNIS_TRY_ASSIGN(Shape shape,
                   parse_shape(at == std::string_view::npos ? "" : text.substr(0, at)));
  if (std::find(shape.begin(), shape.end(), -1) != shape.end())
    return usage("'" + std::string(text) + "' leaves an extent open.");
  return std::pair<Shape, DType>(std::move(shape), *dtype);
}

Result<InputSpec> parse_literal(std::string_view type, std::string_view values) {
  IGNIS_TRY_ASSIGN(const auto shape_dtype, parse_type(type));
  const auto& [shape, dtype] = shape_dtype;
  auto count = checked_element_count(shape);
  const std::vector<std::string_view> numbers =
      values.empty() ? std::vector<std::string_view>{} : split(values, ',');
  const bool is_one_for_all = numbers.size() == 1 && count && *count < (int64_t{1} << 28);
  if (!count || (!is_one_for_all && *count != static_cast<int64_t>(numbers.size()))) {
    return usage("'" + std::string(type) + "' needs " +
                 (count ? std::to_string(*count) : "too many") + " values; " +
                 std::to_string(numbers.size()) + " are given.");
  }
  InputSpec spec;
  spec.tensor = HostTensor::zeros(dtype, shape);
  for (int64_t i = 0; i < *count; ++i) {
    IGNIS_TRY(store_number(spec.tensor, i, numbers[is_one_for_all ? 0 : static_cast<size_t>(i)]));
  }
  return spec;
}

Result<InputSpec> parse_random(std::string_view text) {
  InputSpec spec;
  spec.kind = InputSpec::Kind::Random;
  const size_t open = text.find('(');
  spec.generator = std::string(text.substr(0, open));
  const std::string& g = spec.generator;
  if (g != "uniform" && g != "normal" && g != "randint" && g != "zeros" && g != "ones") {
    return usage("'" + std::string(text) +
                 "' is none of uniform(lo,hi), normal(mean,sd), randint(lo,hi), zeros and ones.");
  }
  if (g == "randint") spec.high = 100;
  if (open == std::string_view::npos) return spec;
  const auto numbers = split(text.substr(open + 1), ',');
  if (!text.ends_with(')') || numbers.size() != 2)
    return usage("'" + std::string(text) + "' takes two numbers in brackets.");
  IGNIS_TRY_ASSIGN(spec.low, parse_number(numbers[0]));
  IGNIS_TRY_ASSIGN(spec.high, parse_number(numbers[1].substr(0, numbers[1].size() - 1)));
  const bool is_range = g == "uniform" || g == "randint";
  if (!std::isfinite(spec.low) || !std::isfinite(spec.high) || (is_range && spec.high < spec.low)) {
    return usage("'" + std::string(text) + "' is no range.");
  }
  return spec;
}

Result<std::vector<double>> parse_channels(std::string_view text) {
  std::vector<double> values;
  for (const std::string_view part : split(text, '/')) {
    IGNIS_TRY_ASSIGN(const double value, parse_number(part));
    values.push_back(value);
  }
  return values;
}

Status apply_image_options(std::span<const std::string_view> options, InputSpec& spec) {
  for (const std::string_view option : options) {
    const size_t at = option.find('=');
    const std::string_view key = option.substr(0, at);
    const std::string_view value = at == std::string_view::npos ? "" : option.substr(at + 1);
    if (key == "layout") {
      spec.image_layout.order = std::string(value);
    } else if (key == "color") {
      spec.image_layout.color = std::string(value);
    } else if (key == "mean") {
      IGNIS_TRY_ASSIGN(spec.image_layout.mean, parse_channels(value));
    } else if (key == "scale") {
      IGNIS_TRY_ASSIGN(spec.image_layout.scale, parse_channels(value));
    } else if (key == "resize") {
      spec.resizes_image = value != "0";
    } else {
      return usage("'" + std::string(option) +
                   "' is none of an image's options layout=, mean=, scale=, color= and resize=.");
    }
  }
  return Status::ok();
}

std::string extension_of(std::string_view path) {
  const size_t dot = path.rfind('.');
  std::string ext(dot == std::string_view::npos || path.find('/', dot) != std::string_view::npos
                      ? ""
                      : path.substr(dot + 1));
  for (char& c : ext) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ext;
}

/// "@path" or "@path,option=value…" of input `name` (empty: by the archive's names).
Result<std::vector<InputSpec>> parse_file(std::string_view name, std::string_view text,
                                          std::string_view type) {
  const auto parts = split(text, ',');
  const std::string path(parts[0]);
  const std::string ext = extension_of(path);
  const bool is_image =
      ext == "png" || ext == "jpg" || ext == "jpeg" || ext == "ppm" || ext == "pgm";
  if (parts.size() > 1 && !is_image)
    return usage("'" + std::string(text) + "': only an image takes options.");
  if (name.empty() && ext != "npz")
    return usage("'@" + std::string(text) + "' says no input's name; say NAME=@" + path + ".");
  InputSpec spec;
  spec.name = std::string(name);
  if (is_image) IGNIS_TRY(apply_image_options(std::span(parts).subspan(1), spec));
  IGNIS_TRY_ASSIGN(std::vector<std::byte> bytes, read_file(path));
  const auto in_file = [&](Error error) {
    return std::move(error).with_context("file '" + path + "'");
  };
  if (is_image) {
    spec.kind = InputSpec::Kind::Image;
    auto image = parse_image(bytes);
    if (!image) return in_file(std::move(image).error());
    spec.image = *std::move(image);
  } else if (ext == "npy") {
    spec.kind = InputSpec::Kind::File;
    auto tensor = parse_npy(bytes);
    if (!tensor) return in_file(std::move(tensor).error());
    spec.tensor = *std::move(tensor);
  } else if (ext == "pb") {
    spec.kind = InputSpec::Kind::File;
    auto tensor = parse_tensor_proto(bytes);
    if (!tensor) return in_file(std::move(tensor).error());
    spec.tensor = std::move(tensor->second);
  } else if (ext == "npz") {
    auto members = parse_npz(bytes);
    if (!members) return in_file(std::move(members).error());
    std::vector<InputSpec> specs;
    for (auto& [member, tensor] : *members) {
      if (!name.empty() && member != name && members->size() != 1) continue;
      InputSpec each;
      each.name = name.empty() ? member : std::string(name);
      each.kind = InputSpec::Kind::File;
      each.tensor = std::move(tensor);
      specs.push_back(std::move(each));
    }
    if (specs.empty())
      return in_file(Error(ErrorCode::InvalidArgument,
                           "The archive has no array '" + std::string(name) + "'."));
    return specs;
  } else {
    spec.kind = InputSpec::Kind::Raw;
    spec.raw = std::move(bytes);
    if (!type.empty()) {
      IGNIS_TRY_ASSIGN(const auto shape_dtype, parse_type(type));
      spec.shape = shape_dtype.first;
      spec.dtype = shape_dtype.second;
    }
  }
  std::vector<InputSpec> one;
  one.push_back(std::move(spec));
  return one;
}

HostTensor make_random(const InputSpec& spec, DType dtype, const Shape& shape,
                       std::mt19937_64& rng) {
  HostTensor tensor = HostTensor::zeros(dtype, shape);
  if (spec.generator == "zeros") return tensor;
  const int64_t count = tensor.count();
  // Written out rather than taken from <random>'s distributions, whose values differ between libraries.
  const auto unit = [&] { return static_cast<double>(rng() >> 11) * 0x1.0p-53; };
  for (int64_t i = 0; i < count; ++i) {
    double value = 1;
    if (spec.generator == "uniform") {
      value = spec.low + (spec.high - spec.low) * unit();
    } else if (spec.generator == "randint") {
      value = std::floor(spec.low + (spec.high - spec.low) * unit());
    } else if (spec.generator == "normal") {  // Box and Muller
      value = spec.low + spec.high * std::sqrt(-2 * std::log(1 - unit())) *
                             std::cos(2 * 3.14159265358979323846 * unit());
    }
    if (dtype == DType::Bool && spec.generator == "uniform")
      value = value >= (spec.low + spec.high) / 2;
    store_element(tensor, i, value);
  }
  return tensor;
}

Error mismatch(const std::string& name, DType got_dtype, const Shape& got, DType dtype,
               const Shape& shape) {
  return usage("Input '" + name + "' has " + std::string(to_string(got_dtype)) + " " +
               to_string(got) + "; the model takes " + std::string(to_string(dtype)) + " " +
               to_string(shape) + ".");
}

}  // namespace

Result<Shape> parse_shape(std::string_view text) {
  Shape shape;
  if (text.empty() || text == "scalar") return shape;
  for (const std::string_view part : split(text, 'x')) {
    int64_t extent = -1;
    if (part != "?") {
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), extent);
      if (error != std::errc() || end != part.data() + part.size() || extent < -1) {
        return usage("'" + std::string(text) + "' is no shape such as 1x3x224x224 or 1x3x?x?.");
      }
    }
    shape.push_back(extent);
  }
  return shape;
}

Result<std::vector<InputSpec>> parse_input(std::string_view argument) {
  if (argument.starts_with('@')) return parse_file("", argument.substr(1), "");
  // A name may hold ':' and '/', so look for "=@", then "=type=", then the last ":generator".
  const size_t file = argument.find("=@");
  if (file != std::string_view::npos) {
    std::string_view name = argument.substr(0, file), type;
    const size_t inner = name.find('=');
    if (inner != std::string_view::npos) {
      type = name.substr(inner + 1);
      name = name.substr(0, inner);
    }
    if (name.empty()) return usage("'" + std::string(argument) + "' says no input's name.");
    return parse_file(name, argument.substr(file + 2), type);
  }
  Result<InputSpec> spec =
      usage("'" + std::string(argument) +
            "' is none of NAME=@FILE, NAME=1x3xf32=1,2,3 and NAME:uniform(0,1).");
  const size_t values = argument.rfind('=');
  const size_t type =
      values == std::string_view::npos || values == 0 ? values : argument.rfind('=', values - 1);
  const size_t colon = argument.rfind(':');
  std::string_view name;
  if (type != std::string_view::npos && type != values) {
    name = argument.substr(0, type);
    spec = parse_literal(argument.substr(type + 1, values - type - 1), argument.substr(values + 1));
  } else if (values == std::string_view::npos && colon != std::string_view::npos) {
    name = argument.substr(0, colon);
    spec = parse_random(argument.substr(colon + 1));
  }
  if (!spec) return std::move(spec).error();
  if (name.empty()) return usage("'" + std::string(argument) + "' says no input's name.");
  spec->name = std::string(name);
  std::vector<InputSpec> one;
  one.push_back(*std::move(spec));
  return one;
}

std::optional<Shape> stated_shape(const InputSpec& spec) {
  switch (spec.kind) {
    case InputSpec::Kind::Literal:
    case InputSpec::Kind::File: return spec.tensor.shape;
    case InputSpec::Kind::Raw: return spec.shape;
    case InputSpec::Kind::Image: {
      const auto shape = tensor_shape(spec.image, spec.image_layout);
      return shape ? std::optional<Shape>(*shape) : std::nullopt;
    }
    case InputSpec::Kind::Random: return std::nullopt;
  }
  return std::nullopt;
}

Result<HostTensor> make_input(const InputSpec& spec, DType dtype, const Shape& shape,
                              std::mt19937_64& rng) {
  switch (spec.kind) {
    case InputSpec::Kind::Literal:
    case InputSpec::Kind::File:
      if (spec.tensor.dtype != dtype || spec.tensor.shape != shape) {
        return mismatch(spec.name, spec.tensor.dtype, spec.tensor.shape, dtype, shape);
      }
      return spec.tensor;
    case InputSpec::Kind::Random: return make_random(spec, dtype, shape, rng);
    case InputSpec::Kind::Raw: {
      const DType got = spec.dtype.value_or(dtype);
      const Shape given = spec.shape.value_or(shape);
      if (got != dtype || given != shape) return mismatch(spec.name, got, given, dtype, shape);
      HostTensor tensor = HostTensor::zeros(dtype, shape);
      if (tensor.bytes.size() != spec.raw.size()) {
        return usage("The file for input '" + spec.name + "' has " +
                     std::to_string(spec.raw.size()) + " bytes; the model takes " +
                     std::string(to_string(dtype)) + " " + to_string(shape) + ", which are " +
                     std::to_string(tensor.bytes.size()) + ".");
      }
      tensor.bytes = spec.raw;
      return tensor;
    }
    case InputSpec::Kind::Image: {
      auto own = tensor_shape(spec.image, spec.image_layout);
      if (!own) return usage(own.error().message());
      Result<HostTensor> tensor = HostTensor{};
      if (spec.resizes_image && *own != shape && own->size() == shape.size()) {
        int width = spec.image.width_px, height = spec.image.height_px;
        for (size_t i = 0; i < shape.size(); ++i) {
          if (shape[i] > 0 && shape[i] < (1 << 15)) {
            if (spec.image_layout.order[i] == 'W') width = static_cast<int>(shape[i]);
            if (spec.image_layout.order[i] == 'H') height = static_cast<int>(shape[i]);
          }
        }
        tensor = to_tensor(resize(spec.image, width, height), spec.image_layout, dtype);
      } else {
        if (*own != shape) return mismatch(spec.name, dtype, *own, dtype, shape);
        tensor = to_tensor(spec.image, spec.image_layout, dtype);
      }
      if (!tensor) return usage(tensor.error().message());
      if (tensor->shape != shape) return mismatch(spec.name, dtype, tensor->shape, dtype, shape);
      return tensor;
    }
  }
  return usage("Input '" + spec.name + "' has no value.");
}

}  // namespace ignis::tools
