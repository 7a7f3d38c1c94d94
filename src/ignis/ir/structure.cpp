#include "ignis/ir/structure.h"

#include <algorithm>
#include <string>

namespace ignis::ir {
namespace {

Error bad(Op op, const std::string& what) {
  return Error(ErrorCode::InvalidArgument, std::string(to_string(op)) + " " + what + ".");
}

Status check_extents(Op op, const Shape& shape) {
  if (shape.size() > static_cast<size_t>(kMaxRank)) return bad(op, "has more than 64 axes");
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || extent > kMaxElements)
      return bad(op, "has an extent of " + std::to_string(extent));
    if (extent != 0 && count > kMaxElements / extent) return bad(op, "has more than 2^47 elements");
    count *= std::max<int64_t>(extent, 1);
  }
  return Status::ok();
}

Shape tail(const Arg& arg, size_t from) {
  return Shape(arg.ints.begin() + static_cast<std::ptrdiff_t>(std::min(from, arg.ints.size())),
               arg.ints.end());
}

bool is_reduce_op(int64_t op) {
  return op == static_cast<int64_t>(Op::Add) || op == static_cast<int64_t>(Op::Mul) ||
         op == static_cast<int64_t>(Op::Max) || op == static_cast<int64_t>(Op::Min);
}

// slot, rank, dims…, then optionally digits (dim, divisor, extent)… and halos (lo, hi) for each dim.
Status check_param(const Arg& arg) {
  const Op op = Op::Param;
  if (arg.ints.size() < 2 || arg.ints[1] < 0 || arg.ints[1] > kMaxRank ||
      arg.ints.size() < 2 + static_cast<size_t>(arg.ints[1])) {
    return bad(op, "has no slot and shape");
  }
  const auto rank = static_cast<size_t>(arg.ints[1]);
  Shape shape(arg.ints.begin() + 2, arg.ints.begin() + 2 + static_cast<std::ptrdiff_t>(rank));
  IGNIS_TRY(check_extents(op, shape));
  size_t at = 2 + rank;
  if (at == arg.ints.size()) return Status::ok();
  const int64_t digits = arg.ints[at++];
  if (digits < 0 || digits > 4 * kMaxRank ||
      arg.ints.size() < at + 3 * static_cast<size_t>(digits)) {
    return bad(op, "has a layout that ends early");
  }
  Shape extents;
  for (int64_t i = 0; i < digits; ++i, at += 3) {
    if (arg.ints[at] < 0 || arg.ints[at] >= static_cast<int64_t>(rank) || arg.ints[at + 1] < 1 ||
        arg.ints[at + 1] > kMaxElements) {
      return bad(op, "has a layout digit of a dim or divisor that is not there");
    }
    extents.push_back(arg.ints[at + 2]);
  }
  int64_t count = 1;
  for (const int64_t extent : extents) {
    if (extent < 0 || extent > kMaxElements || (extent != 0 && count > kMaxElements / extent)) {
      return bad(op, "has a layout of more than 2^47 elements");
    }
    count *= std::max<int64_t>(extent, 1);
  }
  const size_t left = arg.ints.size() - at;
  if (left != 0 && left != 2 * rank) return bad(op, "has halos for some dims only");
  for (; at < arg.ints.size(); ++at) {
    if (arg.ints[at] < 0 || arg.ints[at] > kMaxElements)
      return bad(op, "has a negative or huge halo");
  }
  return Status::ok();
}

Status check_movement(Op op, std::span<const Node> sources, const Arg& arg) {
  const Shape& x = sources[0].shape();
  const auto& ints = arg.ints;
  const auto small = [](int64_t v) { return v >= -kMaxElements && v <= kMaxElements; };
  if (!std::all_of(ints.begin(), ints.end(), small)) return bad(op, "has a huge argument");
  switch (op) {
    case Op::Reshape:
      IGNIS_TRY(check_extents(op, ints));
      if (element_count(ints) != element_count(x)) {
        return bad(op, "turns " + ignis::to_string(x) + " into " + ignis::to_string(Shape(ints)));
      }
      return Status::ok();
    case Op::Expand:
      IGNIS_TRY(check_extents(op, ints));
      if (ints.size() != x.size()) return bad(op, "changes the rank");
      for (size_t i = 0; i < x.size(); ++i) {
        if (x[i] != ints[i] && x[i] != 1)
          return bad(op, "stretches an extent of " + std::to_string(x[i]));
      }
      return Status::ok();
    case Op::Permute: {
      std::vector<int64_t> sorted = ints;
      std::sort(sorted.begin(), sorted.end());
      if (sorted.size() != x.size()) return bad(op, "has another number of axes than its source");
      for (size_t i = 0; i < sorted.size(); ++i) {
        if (sorted[i] != static_cast<int64_t>(i)) return bad(op, "is no permutation");
      }
      return Status::ok();
    }
    case Op::Pad: {
      if (ints.size() != 2 * x.size()) return bad(op, "has not two sizes for each axis");
      Shape to = x;
      for (size_t i = 0; i < ints.size(); ++i) {
        if (ints[i] < 0) return bad(op, "has a negative size");
        to[i / 2] += ints[i];
      }
      return check_extents(op, to);
    }
    case Op::Shrink:
      if (ints.size() != 2 * x.size()) return bad(op, "has not two ends for each axis");
      for (size_t i = 0; i < x.size(); ++i) {
        if (ints[2 * i] < 0 || ints[2 * i] > ints[2 * i + 1] || ints[2 * i + 1] > x[i]) {
          return bad(op, "leaves its source of shape " + ignis::to_string(x));
        }
      }
      return Status::ok();
    case Op::Flip:
      if (ints.size() != x.size()) return bad(op, "has not one flag for each axis");
      return Status::ok();
    case Op::Window: {
      if (ints.size() != 4) return bad(op, "needs axis, kernel, stride and dilation");
      const int64_t axis = ints[0], kernel = ints[1], stride = ints[2], dilation = ints[3];
      if (axis < 0 || axis >= static_cast<int64_t>(x.size()) || kernel < 1 || stride < 1 ||
          dilation < 1) {
        return bad(op, "has a bad axis, kernel, stride or dilation");
      }
      const int64_t extent = x[static_cast<size_t>(axis)];
      if (kernel - 1 > (extent - 1) / dilation || extent < 1)
        return bad(op, "is wider than its axis");
      Shape to = x;
      to[static_cast<size_t>(axis)] = (extent - dilation * (kernel - 1) - 1) / stride + 1;
      to.push_back(kernel);
      return check_extents(op, to);
    }
    case Op::Cat: {
      if (ints.size() != 1 || ints[0] < 0 || ints[0] >= static_cast<int64_t>(x.size()))
        return bad(op, "has a bad axis");
      Shape to = x;
      for (size_t i = 1; i < sources.size(); ++i) {
        const Shape& other = sources[i].shape();
        if (other.size() != x.size()) return bad(op, "joins different ranks");
        for (size_t d = 0; d < x.size(); ++d) {
          if (static_cast<int64_t>(d) == ints[0]) to[d] += other[d];
          else if (other[d] != x[d]) return bad(op, "joins different shapes");
        }
        IGNIS_TRY(check_extents(op, to));
      }
      return Status::ok();
    }
    case Op::Gather: {
      if (sources.size() - 1 > x.size()) return bad(op, "has more indices than axes");
      Shape to = sources[1].shape();
      for (size_t i = 2; i < sources.size(); ++i) {
        if (sources[i].shape() != to) return bad(op, "has indices of different shapes");
      }
      to.insert(to.end(), x.begin() + static_cast<std::ptrdiff_t>(sources.size() - 1), x.end());
      return check_extents(op, to);
    }
    default: return Status::ok();
  }
}

struct SourceCount {
  int least, most;  // most -1: any
};
SourceCount source_count(Op op) {
  switch (op) {
    case Op::Index: return {1, -1};
    case Op::Load: return {1, 3};
    case Op::Store: return {2, 3};
    case Op::Gather: return {2, -1};
    case Op::Range:
    case Op::Reduce:
    case Op::End:
    case Op::After:
    case Op::Cat: return {1, -1};
    default: return {op_arity(op) < 0 ? 0 : op_arity(op), op_arity(op)};
  }
}

}  // namespace

Status check_structure(Op op, DType dtype, int lanes, std::span<const Node> sources,
                       const Arg& arg) {
  const auto [least, most] = source_count(op);
  const auto count = static_cast<int>(sources.size());
  if (count < least || (most >= 0 && count > most) || (op == Op::Load && count == 2)) {
    return bad(op, "has " + std::to_string(count) + " sources");
  }
  if (sources.size() >= 65536) return bad(op, "has too many sources");
  if (lanes < 1 || lanes > 4096) return bad(op, "has " + std::to_string(lanes) + " lanes");
  const auto& ints = arg.ints;
  switch (op) {
    case Op::Const:
      if (arg.text == "Invalid" && ints.empty()) return Status::ok();
      if (dtype == DType::Void || ints.size() != 1 || !arg.text.empty())
        return bad(op, "has no value");
      return Status::ok();
    case Op::Buffer:
      if (ints.empty()) return bad(op, "has no slot");
      return check_extents(op, tail(arg, 1));
    case Op::Param: return check_param(arg);
    case Op::Range:
      if (ints.size() != 2 || ints[1] < 0 || ints[1] > static_cast<int64_t>(AxisKind::Unroll)) {
        return bad(op, "has no id and axis kind");
      }
      return Status::ok();
    case Op::Special:
      if (ints.size() == 1 || ints.size() > 3)
        return bad(op, "needs no bounds, or min and max, or these and a multiple");
      if (ints.size() >= 2 && ints[0] > ints[1]) return bad(op, "has a minimum above its maximum");
      if (ints.size() == 3 && ints[2] < 1) return bad(op, "has a multiple below 1");
      return Status::ok();
    case Op::Reg:
      if (ints.empty()) return bad(op, "has no id");
      return Status::ok();
    case Op::Reduce:
      if (ints.size() != 1 || !is_reduce_op(ints[0])) return bad(op, "has no operation");
      return Status::ok();
    case Op::ReduceAxes: {
      if (ints.empty() || !is_reduce_op(ints[0])) return bad(op, "has no operation");
      const auto rank = static_cast<int64_t>(sources[0].shape().size());
      for (size_t i = 1; i < ints.size(); ++i) {
        if (ints[i] < 0 || ints[i] >= rank) return bad(op, "reduces an axis that is not there");
      }
      return Status::ok();
    }
    case Op::Extract:
      if (ints.size() != 1 || ints[0] < 0 || ints[0] >= sources[0].lanes())
        return bad(op, "reads a lane that is not there");
      return Status::ok();
    case Op::Shuffle:
      if (static_cast<int64_t>(ints.size()) != lanes)
        return bad(op, "has not one lane for each of the result");
      for (const int64_t lane : ints) {
        if (lane < 0 || lane >= sources[0].lanes() + sources[1].lanes())
          return bad(op, "reads a lane that is not there");
      }
      return Status::ok();
    default: break;
  }
  if (is_movement(op)) return check_movement(op, sources, arg);
  if (is_elementwise(op)) {
    const Shape* shape = nullptr;
    for (const Node& s : sources) {
      if (s.shape().empty()) continue;
      if (shape != nullptr && *shape != s.shape()) {
        return bad(op, "combines shapes " + ignis::to_string(*shape) + " and " +
                           ignis::to_string(s.shape()));
      }
      shape = &s.shape();
    }
  }
  if (op == Op::Stack && !sources.empty() && !sources[0].shape().empty()) {
    Shape to = sources[0].shape();
    for (const Node& s : sources) {
      if (s.shape() != to) return bad(op, "stacks different shapes");
    }
    to.insert(to.begin(), static_cast<int64_t>(sources.size()));
    return check_extents(op, to);
  }
  return Status::ok();
}

}  // namespace ignis::ir
