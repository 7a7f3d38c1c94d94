// Every legal operation on every dtype and several widths, in both renderers, against a scalar evaluation in C++.

#include "ignis/base/float_formats.h"
#include "ignis/codegen/compile/emulated_image.h"
#include "ignis/codegen/compile/test_program.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace ignis::codegen {
namespace {

using ir::Node;
using ir::Op;
using testing::LoadedImage;
using testing::ProgramBuilder;

const std::vector<DType> kDtypes = {DType::Bool,   DType::Int8,    DType::UInt8,  DType::Int16,
                                    DType::UInt16, DType::Int32,   DType::UInt32, DType::Int64,
                                    DType::UInt64, DType::Float32, DType::Float64};

/// Values are kept as bits, zero-extended.
using Bits = uint64_t;
template <typename T>
Bits to_bits(T v) {
  if constexpr (sizeof(T) == 8) return std::bit_cast<uint64_t>(v);
  if constexpr (sizeof(T) == 4) return std::bit_cast<uint32_t>(v);
  if constexpr (sizeof(T) == 2) return std::bit_cast<uint16_t>(v);
  if constexpr (sizeof(T) == 1) return std::bit_cast<uint8_t>(v);
}
template <typename T>
T from_bits(Bits b) {
  if constexpr (sizeof(T) == 8) return std::bit_cast<T>(b);
  if constexpr (sizeof(T) == 4) return std::bit_cast<T>(static_cast<uint32_t>(b));
  if constexpr (sizeof(T) == 2) return std::bit_cast<T>(static_cast<uint16_t>(b));
  if constexpr (sizeof(T) == 1) return std::bit_cast<T>(static_cast<uint8_t>(b));
}

/// Calls f with a value of the dtype's C++ type.
template <typename F>
auto dispatch(DType d, F&& f) {
  switch (d) {
    case DType::Bool: return f(bool{});
    case DType::Int8: return f(int8_t{});
    case DType::UInt8: return f(uint8_t{});
    case DType::Int16: return f(int16_t{});
    case DType::UInt16: return f(uint16_t{});
    case DType::Int32: return f(int32_t{});
    case DType::UInt32: return f(uint32_t{});
    case DType::Int64: return f(int64_t{});
    case DType::UInt64: return f(uint64_t{});
    case DType::Float32: return f(float{});
    default: return f(double{});
  }
}

// ---- the scalar evaluation -------------------------------------------------------------------------------------

template <typename T>
T evaluate_float(Op op, T a, T b, T c, bool has_fma) {
  switch (op) {
    case Op::Neg: return std::copysign(a, std::signbit(a) ? T(1) : T(-1));
    case Op::Trunc: return std::trunc(a);
    case Op::Rint: return std::nearbyint(a);
    case Op::Sqrt: return std::sqrt(a);
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::Fdiv: return a / b;
    case Op::Max: return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b);
    case Op::Min: return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b);
    case Op::Mulacc: {
      if (has_fma) return std::fma(a, b, c);
      const volatile T product = a * b;
      return product + c;
    }
    default: ADD_FAILURE() << ir::to_string(op); return 0;
  }
}

__extension__ typedef __int128 Wide;

template <typename T>
T evaluate_int(Op op, T a, T b, T c) {
  const auto wrap = [](Wide v) { return static_cast<T>(static_cast<uint64_t>(v)); };
  switch (op) {
    case Op::Neg: return wrap(-Wide(a));
    case Op::Trunc:
    case Op::Rint: return a;
    case Op::Add: return wrap(Wide(a) + Wide(b));
    case Op::Sub: return wrap(Wide(a) - Wide(b));
    case Op::Mul: return wrap(Wide(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)));
    case Op::Cdiv: return wrap(Wide(a) / Wide(b));
    case Op::Cmod: return wrap(Wide(a) % Wide(b));
    case Op::Max: return std::max(a, b);
    case Op::Min: return std::min(a, b);
    case Op::And: return static_cast<T>(a & b);
    case Op::Or: return static_cast<T>(a | b);
    case Op::Xor: return static_cast<T>(a ^ b);
    case Op::Shl: return wrap(Wide(static_cast<uint64_t>(a) << static_cast<int>(b)));
    case Op::Shr: return wrap(Wide(a) >> static_cast<int>(b));
    case Op::Mulacc:
      return wrap(
          Wide(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) + static_cast<uint64_t>(c)));
    default: ADD_FAILURE() << ir::to_string(op); return 0;
  }
}

bool evaluate_bool(Op op, bool a, bool b) {
  switch (op) {
    case Op::Max:
    case Op::Or: return a || b;
    case Op::Min:
    case Op::And: return a && b;
    case Op::Xor: return a != b;
    default: ADD_FAILURE() << ir::to_string(op); return false;
  }
}

Bits evaluate_cast(DType from, DType to, Bits x) {
  return dispatch(from, [&](auto tag) {
    using From = decltype(tag);
    const From v = from_bits<From>(x);
    return dispatch(to, [&](auto to_tag) -> Bits {
      using To = decltype(to_tag);
      if constexpr (std::is_same_v<To, bool>) {
        return to_bits(v != From(0));
      } else if constexpr (std::is_floating_point_v<From> && !std::is_floating_point_v<To>) {
        return to_bits(static_cast<To>(float_to_int(to, static_cast<double>(v))));
      } else {
        return to_bits(static_cast<To>(v));
      }
    });
  });
}

// ---- what is tested --------------------------------------------------------------------------------------------

struct OpCase {
  Op op;
  DType dtype;  // of the operands
  DType result;
  int64_t slot;  // of the output
};

std::vector<Op> ops_of(DType d) {
  if (d == DType::Bool)
    return {Op::And, Op::Or, Op::Xor, Op::Max, Op::Min, Op::Cmplt, Op::Cmpne, Op::Cmpeq, Op::Where};
  if (is_float(d)) {
    return {Op::Neg, Op::Trunc, Op::Rint,   Op::Sqrt,  Op::Add,   Op::Sub,   Op::Mul,  Op::Fdiv,
            Op::Max, Op::Min,   Op::Mulacc, Op::Cmplt, Op::Cmpne, Op::Cmpeq, Op::Where};
  }
  return {Op::Neg,  Op::Trunc,  Op::Rint,  Op::Add,   Op::Sub,   Op::Mul,  Op::Cdiv,
          Op::Cmod, Op::Max,    Op::Min,   Op::And,   Op::Or,    Op::Xor,  Op::Shl,
          Op::Shr,  Op::Mulacc, Op::Cmplt, Op::Cmpne, Op::Cmpeq, Op::Where};
}

/// The operands of one dtype: a and b take all pairs of edge values; the others have what their operation asks.
struct Operands {
  std::vector<Bits> a, b, c, divisor, shift;
};

constexpr size_t kCases = 2048;

template <typename T>
std::vector<Bits> edge_values() {
  std::vector<Bits> edges;
  const auto add = [&](double v) {
    edges.push_back(to_bits(static_cast<T>(v)));
    edges.push_back(to_bits(static_cast<T>(-v)));
  };
  if constexpr (std::is_same_v<T, bool>) return {0, 1};
  if constexpr (std::is_floating_point_v<T>) {
    for (const double v : {0.0,
                           1.0,
                           0.5,
                           1.5,
                           2.5,
                           0.49999997,
                           0.75,
                           127.5,
                           128.5,
                           255.5,
                           256.0,
                           32767.5,
                           65535.5,
                           8388607.5,
                           8388609.0,
                           4503599627370495.5,
                           4503599627370497.0,
                           0x1p31,
                           0x1p31 - 1,
                           0x1p31 - 0.5,
                           0x1p32,
                           0x1p63,
                           0x1p64,
                           1e-40,
                           3e38}) {
      add(v);
    }
    add(static_cast<double>(std::numeric_limits<T>::max()));
    add(static_cast<double>(std::numeric_limits<T>::denorm_min()));
    add(std::numeric_limits<double>::infinity());
    edges.push_back(to_bits(std::numeric_limits<T>::quiet_NaN()));
  } else {
    using L = std::numeric_limits<T>;
    for (const T v : {T(0), T(1), T(2), T(3), T(7), T(100), L::min(), L::max(), T(L::min() + 1),
                      T(L::max() - 1), T(L::max() / 2 + 1), T(-1), T(-2), T(-100)}) {
      edges.push_back(to_bits(v));
    }
  }
  return edges;
}

Operands make_operands(DType d, std::mt19937_64& rng) {
  return dispatch(d, [&](auto tag) {
    using T = decltype(tag);
    Operands x;
    const std::vector<Bits> edges = edge_values<T>();
    for (size_t i = 0; i < kCases; ++i) {
      const bool all_pairs = i < edges.size() * edges.size();
      const auto random = [&]() -> Bits {
        if (d == DType::Bool) return rng() & 1;
        if (rng() % 2 == 0) return edges[rng() % edges.size()];
        return to_bits(
            from_bits<T>(rng() & (size_bytes(d) == 8 ? ~0ull : (1ull << (8 * size_bytes(d))) - 1)));
      };
      x.a.push_back(all_pairs ? edges[i / edges.size()] : random());
      x.b.push_back(all_pairs ? edges[i % edges.size()] : random());
      x.c.push_back(random());
      const T divisor = from_bits<T>(random());
      const bool fits = divisor != T(0) && !(std::is_signed_v<T> && divisor == T(-1));
      x.divisor.push_back(fits ? to_bits(divisor) : 3);
      x.shift.push_back(d == DType::Bool ? 0 : rng() % static_cast<uint64_t>(bits(d)));
    }
    return x;
  });
}

std::vector<std::byte> pack(DType d, const std::vector<Bits>& values) {
  const auto size = static_cast<size_t>(size_bytes(d));
  std::vector<std::byte> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(&bytes[i * size], &values[i], size);
  return bytes;
}

// Slots: five for the operands of each dtype, one for the conditions, then one for each case.
constexpr int64_t kOperandSlots = 5;
int64_t operand_slot(size_t dtype_index, int64_t which) {
  return static_cast<int64_t>(dtype_index) * kOperandSlots + which;
}

class AllOperations {
 public:
  explicit AllOperations(int lanes) : lanes_(lanes) {
    const auto condition_slot = static_cast<int64_t>(kDtypes.size()) * kOperandSlots;
    int64_t slot = condition_slot + 1;
    ProgramBuilder b("all_operations");
    const Node i = b.range(b.constant(DType::Int64, static_cast<int64_t>(kCases) / lanes));
    at_ = b.alu(Op::Mul, {i, b.constant(DType::Int64, lanes)});
    const Node condition = read(b, condition_slot, DType::Bool);
    for (size_t d = 0; d < kDtypes.size(); ++d) {
      const DType dtype = kDtypes[d];
      std::vector<Node> x;
      for (int64_t which = 0; which < kOperandSlots; ++which)
        x.push_back(read(b, operand_slot(d, which), dtype));
      for (const Op op : ops_of(dtype)) {
        const Node r = op == Op::Where                          ? b.alu(op, {condition, x[0], x[1]})
                       : op == Op::Mulacc                       ? b.alu(op, {x[0], x[1], x[2]})
                       : op == Op::Cdiv || op == Op::Cmod       ? b.alu(op, {x[0], x[3]})
                       : op == Op::Shl || op == Op::Shr         ? b.alu(op, {x[0], x[4]})
                       : ir::op_class(op) == ir::OpClass::Unary ? b.alu(op, {x[0]})
                                                                : b.alu(op, {x[0], x[1]});
        write(b, {op, dtype, r.dtype(), slot++}, r);
      }
      for (const DType to : kDtypes) {
        if (to == dtype) continue;
        write(b, {Op::Cast, dtype, to, slot++}, b.add(Op::Cast, to, {x[0]}, {}, lanes));
        if (size_bytes(to) == size_bytes(dtype) && to != DType::Bool && dtype != DType::Bool) {
          write(b, {Op::Bitcast, dtype, to, slot++}, b.add(Op::Bitcast, to, {x[0]}, {}, lanes));
        }
      }
    }
    b.end(i);
    program_ = b.program();
  }

  const Program& program() const { return program_; }

  /// The buffers of one run, inputs filled.
  std::vector<std::vector<std::byte>> make_buffers() const {
    std::vector<std::vector<std::byte>> memory(static_cast<size_t>(program_.buffer_count));
    for (size_t d = 0; d < kDtypes.size(); ++d) {
      const Operands& x = operands()[d];
      const std::vector<Bits>* const all[] = {&x.a, &x.b, &x.c, &x.divisor, &x.shift};
      for (int64_t which = 0; which < kOperandSlots; ++which) {
        memory[static_cast<size_t>(operand_slot(d, which))] =
            pack(kDtypes[d], *all[static_cast<size_t>(which)]);
      }
    }
    memory[kDtypes.size() * kOperandSlots] = pack(DType::Bool, conditions());
    for (const OpCase& c : cases_) {
      memory[static_cast<size_t>(c.slot)].assign(kCases * static_cast<size_t>(size_bytes(c.result)),
                                                 std::byte{0xAA});
    }
    return memory;
  }

  /// Output bits of each case, from the buffers after a run.
  std::vector<std::vector<Bits>> outputs(const std::vector<std::vector<std::byte>>& memory) const {
    std::vector<std::vector<Bits>> all;
    for (const OpCase& c : cases_) {
      const auto size = static_cast<size_t>(size_bytes(c.result));
      std::vector<Bits> values(kCases);
      for (size_t i = 0; i < kCases; ++i) {
        std::memcpy(&values[i], &memory[static_cast<size_t>(c.slot)][i * size], size);
      }
      all.push_back(std::move(values));
    }
    return all;
  }

  static const std::vector<Operands>& operands() {
    static const std::vector<Operands> all = [] {
      std::mt19937_64 rng(11);
      std::vector<Operands> made;
      for (const DType d : kDtypes) made.push_back(make_operands(d, rng));
      return made;
    }();
    return all;
  }
  static const std::vector<Bits>& conditions() {
    static const std::vector<Bits> all = [] {
      std::mt19937_64 rng(12);
      std::vector<Bits> made;
      for (size_t i = 0; i < kCases; ++i) made.push_back(rng() & 1);
      return made;
    }();
    return all;
  }
  const std::vector<OpCase>& cases() const { return cases_; }

 private:
  Node read(ProgramBuilder& b, int64_t slot, DType d) {
    return b.load(b.index(b.param(slot, d), at_), lanes_);
  }
  void write(ProgramBuilder& b, const OpCase& c, const Node& value) {
    b.store(b.index(b.param(c.slot, c.result), at_), value);
    cases_.push_back(c);
  }

  int lanes_;
  Node at_;
  Program program_;
  std::vector<OpCase> cases_;
};

Bits expected(const OpCase& c, size_t i, bool has_fma) {
  const size_t d =
      static_cast<size_t>(std::find(kDtypes.begin(), kDtypes.end(), c.dtype) - kDtypes.begin());
  const Operands& x = AllOperations::operands()[d];
  const Bits a = x.a[i];
  const Bits b = c.op == Op::Cdiv || c.op == Op::Cmod ? x.divisor[i]
                 : c.op == Op::Shl || c.op == Op::Shr ? x.shift[i]
                                                      : x.b[i];
  if (c.op == Op::Bitcast) return a;
  if (c.op == Op::Cast) return evaluate_cast(c.dtype, c.result, a);
  if (c.op == Op::Where) return AllOperations::conditions()[i] != 0 ? a : b;
  return dispatch(c.dtype, [&](auto tag) -> Bits {
    using T = decltype(tag);
    const T l = from_bits<T>(a), r = from_bits<T>(b), s = from_bits<T>(x.c[i]);
    if (c.op == Op::Cmplt) return l < r;
    if (c.op == Op::Cmpne) return l != r;
    if (c.op == Op::Cmpeq) return l == r;
    if constexpr (std::is_same_v<T, bool>) {
      return evaluate_bool(c.op, l, r);
    } else if constexpr (std::is_floating_point_v<T>) {
      return to_bits(evaluate_float(c.op, l, r, s, has_fma));
    } else {
      return to_bits(evaluate_int(c.op, l, r, s));
    }
  });
}

/// Equal bits, where all NaNs are one value: IEEE 754 leaves their sign and payload open.
bool same(DType d, Bits x, Bits y) {
  if (x == y) return true;
  if (d == DType::Float32)
    return std::isnan(from_bits<float>(x)) && std::isnan(from_bits<float>(y));
  if (d == DType::Float64)
    return std::isnan(from_bits<double>(x)) && std::isnan(from_bits<double>(y));
  return false;
}

bool both_zero(DType d, Bits x, Bits y) {
  return is_float(d) && (x << (64 - 8 * size_bytes(d)) << 1) == 0 &&
         (y << (64 - 8 * size_bytes(d)) << 1) == 0;
}

std::string describe(const OpCase& c, size_t i, Bits got, Bits want) {
  const size_t d =
      static_cast<size_t>(std::find(kDtypes.begin(), kDtypes.end(), c.dtype) - kDtypes.begin());
  const Operands& x = AllOperations::operands()[d];
  char text[256];
  std::snprintf(
      text, sizeof text, "%s %s -> %s at %zu: a %#llx b %#llx c %#llx: got %#llx, expected %#llx",
      std::string(ir::to_string(c.op)).c_str(), std::string(to_string(c.dtype)).c_str(),
      std::string(to_string(c.result)).c_str(), i, static_cast<unsigned long long>(x.a[i]),
      static_cast<unsigned long long>(x.b[i]), static_cast<unsigned long long>(x.c[i]),
      static_cast<unsigned long long>(got), static_cast<unsigned long long>(want));
  return text;
}

void check(const AllOperations& all, const std::vector<std::vector<Bits>>& outputs, bool has_fma) {
  for (size_t k = 0; k < all.cases().size(); ++k) {
    const OpCase& c = all.cases()[k];
    for (size_t i = 0; i < kCases; ++i) {
      const Bits want = expected(c, i, has_fma), got = outputs[k][i];
      if (same(c.result, got, want)) continue;
      // Which zero Max and Min give is open.
      if ((c.op == Op::Max || c.op == Op::Min) && both_zero(c.result, got, want)) continue;
      ADD_FAILURE() << describe(c, i, got, want);
      break;
    }
  }
}

struct Setting {
  Isa isa;
  int lanes;
};
class Operations : public ::testing::TestWithParam<Setting> {};

/// Runs an image here or, for the architecture that this machine is not, in an emulator.
Status run_image(const ProgramImage& image, Isa isa, std::vector<std::vector<std::byte>>& memory) {
  if (!testing::machine_has(isa)) {
    IGNIS_TRY_ASSIGN(const auto emulated, testing::EmulatedImage::load(image));
    return emulated.run(memory);
  }
  IGNIS_TRY_ASSIGN(const auto loaded, LoadedImage::load(image));
  std::vector<void*> buffers;
  for (auto& m : memory) buffers.push_back(m.data());
  loaded.run(buffers);
  return Status::ok();
}

TEST_P(Operations, BothRenderersGiveTheBitsOfScalarEvaluation) {
  const Target target = make_target(GetParam().isa);
  if (!testing::machine_has(target.isa) && target.isa != Isa::Neon) {
    GTEST_SKIP() << "this machine has no " << target.name();
  }
  const AllOperations all(GetParam().lanes);
  std::vector<std::vector<Bits>> results[2];
  for (const bool with_c : {false, true}) {
    SCOPED_TRACE(with_c ? "C" : "LLVM");
    const auto image =
        with_c ? compile_c(all.program(), target) : compile_llvm(all.program(), target);
    ASSERT_TRUE(image) << image.error().to_string();
    std::vector<std::vector<std::byte>> memory = all.make_buffers();
    const Status ran = run_image(*image, target.isa, memory);
    if (!ran && ran.error().code() == ErrorCode::NotFound) GTEST_SKIP() << ran.error().message();
    ASSERT_TRUE(ran) << ran.error().to_string();
    results[with_c] = all.outputs(memory);
    check(all, results[with_c], target.has_fma);
  }
  for (size_t k = 0; k < all.cases().size(); ++k) {
    const OpCase& c = all.cases()[k];
    for (size_t i = 0; i < kCases; ++i) {
      const Bits llvm_bits = results[0][k][i], c_bits = results[1][k][i];
      if (same(c.result, llvm_bits, c_bits)) continue;
      // fmax and fmin choose a zero by its sign, the comparison in C by its place.
      if (target.arch == Arch::AArch64 && both_zero(c.result, llvm_bits, c_bits)) continue;
      ADD_FAILURE() << "LLVM and C differ: " << describe(c, i, llvm_bits, c_bits);
      break;
    }
  }
}

std::string setting_name(const ::testing::TestParamInfo<Setting>& test) {
  const char* const names[] = {"Sse2", "Avx2", "Avx512", "Neon"};
  return names[static_cast<int>(test.param.isa)] + std::string("x") +
         std::to_string(test.param.lanes);
}
INSTANTIATE_TEST_SUITE_P(Widths, Operations,
                         ::testing::Values(Setting{Isa::Sse2, 1}, Setting{Isa::Sse2, 4},
                                           Setting{Isa::Avx2, 1}, Setting{Isa::Avx2, 4},
                                           Setting{Isa::Avx2, 8}, Setting{Isa::Avx2, 16},
                                           Setting{Isa::Avx512, 16}, Setting{Isa::Neon, 1},
                                           Setting{Isa::Neon, 4}, Setting{Isa::Neon, 8}),
                         setting_name);

}  // namespace
}  // namespace ignis::codegen
