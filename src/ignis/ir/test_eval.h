#pragma once

#include "ignis/ir/graph.h"

#include "tests/support/seed.h"

#include <array>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <unordered_map>
#include <vector>

namespace ignis::ir::testing {

using ignis::testing::test_seed;

using Wide = __int128_t;

/// A value or "Invalid".
using MaybeInt = std::optional<int64_t>;

/// Naive evaluation of an integer expression on plain integers, independent of the folding under test. Leaves take
/// their value from the map given at each point. Strong integers wrap; weak ones must not overflow.
class IntEvaluator {
 public:
  explicit IntEvaluator(const Node& root) : order_(toposort(root)), values_(order_.size()) {
    std::unordered_map<uint32_t, size_t> at;
    for (size_t i = 0; i < order_.size(); ++i) {
      at[order_[i].id()] = i;
      std::vector<size_t> sources;
      for (int s = 0; s < order_[i].source_count(); ++s)
        sources.push_back(at.at(order_[i].src(s).id()));
      sources_.push_back(std::move(sources));
    }
  }

  MaybeInt operator()(const std::unordered_map<Node, int64_t>& leaves) {
    for (size_t i = 0; i < order_.size(); ++i) {
      const Node& n = order_[i];
      if (n.is(Op::Special) || n.is(Op::Range)) values_[i] = leaves.at(n);
      else values_[i] = compute(n, sources_[i]);
    }
    return values_.back();
  }

 private:
  static Wide floor_quotient(Wide a, Wide b) {
    Wide q = a / b;
    if (q * b != a && ((a < 0) != (b < 0))) --q;
    return q;
  }
  static int64_t wrap(DType d, Wide v) {
    if (d == DType::Bool) return v != 0;
    if (d == DType::WeakInt) return static_cast<int64_t>(v);
    const int width = bits(d);
    if (width == 64) return static_cast<int64_t>(v);
    const Wide modulus = Wide{1} << width;
    Wide r = v % modulus;
    if (r < 0) r += modulus;
    if (!is_unsigned(d) && r >= modulus / 2) r -= modulus;
    return static_cast<int64_t>(r);
  }

  MaybeInt compute(const Node& n, const std::vector<size_t>& sources) const {
    if (n.is_invalid()) return std::nullopt;
    if (n.is(Op::Const)) return n.const_int();
    if (n.is(Op::Where)) {
      const MaybeInt c = values_[sources[0]];
      if (!c) return std::nullopt;
      return values_[sources[*c != 0 ? 1 : 2]];
    }
    std::array<int64_t, 3> s{};
    for (size_t i = 0; i < sources.size(); ++i) {
      if (!values_[sources[i]]) return std::nullopt;
      s[i] = *values_[sources[i]];
    }
    const DType d = n.dtype();
    const Wide a = s[0], b = s[1];
    switch (n.op()) {
      case Op::Add: return wrap(d, a + b);
      case Op::Sub: return wrap(d, a - b);
      case Op::Mul: return wrap(d, a * b);
      case Op::Neg: return wrap(d, -a);
      case Op::Mulacc: return wrap(d, a * b + s[2]);
      case Op::Floordiv: return b == 0 ? 0 : wrap(d, floor_quotient(a, b));
      case Op::Floormod: return b == 0 ? 0 : wrap(d, a - floor_quotient(a, b) * b);
      case Op::Cdiv: return b == 0 ? 0 : wrap(d, a / b);
      case Op::Cmod: return b == 0 ? 0 : wrap(d, a % b);
      case Op::Max: return wrap(d, a > b ? a : b);
      case Op::Min: return wrap(d, a < b ? a : b);
      case Op::And: return s[0] & s[1];
      case Op::Or: return s[0] | s[1];
      case Op::Xor: return s[0] ^ s[1];
      case Op::Shl: {
        const int width = d == DType::WeakInt ? 63 : bits(d);
        return b < 0 || b >= width ? 0 : wrap(d, a * (Wide{1} << static_cast<int>(b)));
      }
      case Op::Shr:
        if (b < 0 || b >= 63) return a < 0 ? -1 : 0;
        return wrap(d, floor_quotient(a, Wide{1} << static_cast<int>(b)));
      case Op::Cmplt: return a < b;
      case Op::Cmpeq: return a == b;
      case Op::Cmpne: return a != b;
      case Op::Cast: return d == DType::Bool ? a != 0 : wrap(d, a);
      default: IGNIS_CHECK(false) << "the evaluator does not know " << to_string(n.op());
    }
    return std::nullopt;
  }

  std::vector<Node> order_;
  std::vector<std::vector<size_t>> sources_;
  std::vector<MaybeInt> values_;
};

}  // namespace ignis::ir::testing
