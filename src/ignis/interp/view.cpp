#include "ignis/interp/view.h"

#include "ignis/base/float_formats.h"

#include <cstring>

namespace ignis::interp {
namespace {

/// Strides that make `to` out of a view of `from`, or nothing when no strides do. Axes of extent 1 do not count; the
/// rest of both shapes is cut into groups of equal element counts, and each group has to be dense in itself.
std::optional<std::vector<int64_t>> reshape_strides(const Shape& from,
                                                    const std::vector<int64_t>& strides,
                                                    const Shape& to) {
  Shape extents;
  std::vector<int64_t> steps;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == 0) return dense_strides(to);
    if (from[i] == 1) continue;
    extents.push_back(from[i]);
    steps.push_back(strides[i]);
  }
  std::vector<int64_t> result(to.size(), 0);
  size_t f = 0, t = 0;
  while (f < extents.size()) {
    size_t f_end = f + 1, t_end = t;
    int64_t f_count = extents[f], t_count = 1;
    while (t_count != f_count || t_end == t) {
      if (t_count < f_count || t_end == t) {
        t_count *= to[t_end++];
      } else {
        f_count *= extents[f_end++];
      }
    }
    for (size_t i = f; i + 1 < f_end; ++i) {
      if (steps[i] != steps[i + 1] * extents[i + 1]) return std::nullopt;
    }
    int64_t step = steps[f_end - 1];
    for (size_t i = t_end; i-- > t;) {
      result[i] = step;
      step *= to[i];
    }
    f = f_end;
    t = t_end;
  }
  return result;  // what is left of `to` has extent 1
}

std::optional<View> move_view(const View& view, const Shape& from, const ir::Node& movement) {
  const std::vector<int64_t>& arg = movement.arg().ints;
  View out = view;
  switch (movement.op()) {
    case ir::Op::Contiguous: return out;
    case ir::Op::Reshape: {
      auto strides = reshape_strides(from, view.strides, movement.shape());
      if (!strides) return std::nullopt;
      out.strides = *std::move(strides);
      return out;
    }
    case ir::Op::Expand:
      for (size_t i = 0; i < from.size(); ++i) {
        if (from[i] != movement.shape()[i]) out.strides[i] = 0;
      }
      return out;
    case ir::Op::Permute:
      for (size_t i = 0; i < arg.size(); ++i) {
        out.strides[i] = view.strides[static_cast<size_t>(arg[i])];
      }
      return out;
    case ir::Op::Shrink:
      for (size_t i = 0; i < from.size(); ++i) out.offset += arg[2 * i] * view.strides[i];
      return out;
    case ir::Op::Flip:
      for (size_t i = 0; i < from.size(); ++i) {
        if (arg[i] == 0) continue;
        if (from[i] > 0) out.offset += (from[i] - 1) * view.strides[i];
        out.strides[i] = -view.strides[i];
      }
      return out;
    case ir::Op::Window: {  // source index = o * stride + k * dilation
      const auto axis = static_cast<size_t>(arg[0]);
      out.strides.push_back(view.strides[axis] * arg[3]);
      out.strides[axis] = view.strides[axis] * arg[2];
      return out;
    }
    default: return std::nullopt;
  }
}

}  // namespace

std::vector<int64_t> dense_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

ExprPtr broadcast_scalar(const ExprPtr& scalar, const Shape& shape) {
  if (scalar->shape == shape) return scalar;
  auto out = std::make_shared<Expr>(*scalar);
  out->shape = shape;
  if (scalar->is_view) {
    out->view.strides.assign(shape.size(), 0);
  } else {
    for (ExprPtr& source : out->sources) source = broadcast_scalar(source, shape);
  }
  return out;
}

std::optional<ExprPtr> move_views(const ExprPtr& value, const ir::Node& movement) {
  const bool repeats = movement.is(ir::Op::Expand) || movement.is(ir::Op::Window);
  if (!value->is_view && repeats) return std::nullopt;
  auto out = std::make_shared<Expr>(*value);
  out->shape = movement.shape();
  if (value->is_view) {
    auto view = move_view(value->view, value->shape, movement);
    if (!view) return std::nullopt;
    out->view = *std::move(view);
    return out;
  }
  for (ExprPtr& source : out->sources) {
    auto moved = move_views(source, movement);
    if (!moved) return std::nullopt;
    source = *moved;
  }
  return out;
}

std::shared_ptr<const Array> read_elements(DType dtype, const std::byte* bytes, int64_t count) {
  auto array = std::make_shared<Array>();
  const auto n = static_cast<size_t>(count);
  const auto read = [&](auto zero, auto& into) {
    using T = decltype(zero);
    into.resize(n);
    for (size_t i = 0; i < n; ++i) {
      T v;
      std::memcpy(&v, bytes + i * sizeof(T), sizeof(T));
      into[i] = static_cast<typename std::remove_reference_t<decltype(into)>::value_type>(v);
    }
  };
  const auto decode = [&](auto zero) {
    using T = decltype(zero);
    array->floats.resize(n);
    for (size_t i = 0; i < n; ++i) {
      T code;
      std::memcpy(&code, bytes + i * sizeof(T), sizeof(T));
      array->floats[i] = decode_float(dtype, code);
    }
  };
  switch (dtype) {
    case DType::Bool:
      read(uint8_t{}, array->ints);
      for (int64_t& v : array->ints) v = v != 0;
      break;
    case DType::Int8: read(int8_t{}, array->ints); break;
    case DType::UInt8: read(uint8_t{}, array->ints); break;
    case DType::Int16: read(int16_t{}, array->ints); break;
    case DType::UInt16: read(uint16_t{}, array->ints); break;
    case DType::Int32: read(int32_t{}, array->ints); break;
    case DType::UInt32: read(uint32_t{}, array->ints); break;
    case DType::Int64:
    case DType::UInt64: read(int64_t{}, array->ints); break;
    case DType::Float32: read(float{}, array->floats); break;
    case DType::Float64: read(double{}, array->floats); break;
    case DType::Float16:
    case DType::BFloat16: decode(uint16_t{}); break;
    case DType::Fp8E4M3:
    case DType::Fp8E5M2:
    case DType::Fp8E4M3Fnuz:
    case DType::Fp8E5M2Fnuz: decode(uint8_t{}); break;
    case DType::Void:
    case DType::WeakInt:
    case DType::WeakFloat: IGNIS_CHECK(false) << to_string(dtype) << " has no storage";
  }
  return array;
}

HostTensor to_host(const Array& array, DType dtype, const Shape& shape) {
  HostTensor out = HostTensor::zeros(dtype, shape);
  const int64_t n = out.count();
  const auto write = [&](auto zero, const auto& from) {
    using T = decltype(zero);
    for (int64_t i = 0; i < n; ++i) {
      const T v = static_cast<T>(from[static_cast<size_t>(i)]);
      std::memcpy(out.bytes.data() + static_cast<size_t>(i) * sizeof(T), &v, sizeof(T));
    }
  };
  switch (size_bytes(dtype)) {
    case 1:
      if (!is_float(dtype)) return write(uint8_t{}, array.ints), out;
      break;
    case 2:
      if (!is_float(dtype)) return write(uint16_t{}, array.ints), out;
      break;
    case 4:
      if (!is_float(dtype)) return write(uint32_t{}, array.ints), out;
      return write(float{}, array.floats), out;
    default:
      if (!is_float(dtype)) return write(int64_t{}, array.ints), out;
      return write(double{}, array.floats), out;
  }
  for (int64_t i = 0; i < n; ++i) store_element(out, i, array.floats[static_cast<size_t>(i)]);
  return out;
}

}  // namespace ignis::interp
