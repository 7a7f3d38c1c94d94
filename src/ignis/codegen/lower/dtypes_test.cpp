#include "ignis/codegen/lower/dtypes.h"

#include "ignis/codegen/lower/float_codes.h"
#include "ignis/codegen/lower/test_evaluate.h"

#include <gtest/gtest.h>

namespace ignis::codegen {
namespace {

using ir::Node;
using ir::Op;

constexpr DType kFormats[] = {DType::Float16, DType::BFloat16,    DType::Fp8E4M3,
                              DType::Fp8E5M2, DType::Fp8E4M3Fnuz, DType::Fp8E5M2Fnuz};

Node leaf(ir::Graph& graph, DType dtype, int64_t id = 0) {
  return graph.make(Op::Reg, dtype, std::span<const Node>{}, ir::Arg{{id}, {}});
}

TEST(FloatCodes, EveryCodeDecodes) {
  for (const DType format : kFormats) {
    SCOPED_TRACE(std::string(to_string(format)));
    ir::Graph graph;
    const Node code = leaf(graph, code_dtype(format));
    Column all(size_t{1} << bits(format));
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    Evaluator evaluator(true);
    evaluator.set(code, all);
    const Column& values = evaluator.of(decode(format, Expr(graph, code)).node());
    for (size_t i = 0; i < all.size(); ++i) {
      const float actual = read_as<float>(values[i]),
                  exact = static_cast<float>(decode_float(format, i));
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(actual)) << i;
      } else {
        ASSERT_EQ(raw_of(actual), raw_of(exact)) << i;
      }
    }
  }
}

#if defined(__x86_64__)
// The CPU driver's threads read and write float32 subnormals as zero. A narrow format's subnormals are normal float32
// numbers, so conversions must not pass through smaller ones. (bfloat16's are float32's own.)
TEST(FloatCodes, SubnormalCodesSurviveFlushedFloat32Subnormals) {
  for (const DType format : kFormats) {
    if (format == DType::BFloat16) continue;
    SCOPED_TRACE(std::string(to_string(format)));
    ir::Graph graph;
    const Node code = leaf(graph, code_dtype(format));
    Column all(size_t{1} << bits(format));
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    Evaluator evaluator(true);
    evaluator.set(code, all);
    const Expr value = decode(format, Expr(graph, code));
    const unsigned former = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(former | 0x8040u);  // FTZ and DAZ
    const Column values = evaluator.of(value.node());
    const Column codes = evaluator.of(encode(format, value).node());
    __builtin_ia32_ldmxcsr(former);
    for (size_t i = 0; i < all.size(); ++i) {
      const double exact = decode_float(format, i);
      if (std::isnan(exact)) continue;
      ASSERT_EQ(raw_of(read_as<float>(values[i])), raw_of(static_cast<float>(exact))) << i;
      ASSERT_EQ(codes[i], encode_float(format, exact)) << i;
    }
  }
}
#endif

TEST(FloatCodes, EncodingRoundsAsTheOneRoutine) {
  std::mt19937_64 rng(test_seed());
  for (const DType format : kFormats) {
    SCOPED_TRACE(std::string(to_string(format)));
    // Every value of the format, the ties between neighbours, and one step to each side of both; then any float32.
    Column points;
    for (uint64_t code = 0; code + 1 < (uint64_t{1} << bits(format)); ++code) {
      const double a = decode_float(format, code), b = decode_float(format, code + 1);
      for (const double at : {a, (a + b) / 2}) {
        const float f = static_cast<float>(at);
        for (const float v : {f, std::nextafter(f, INFINITY), std::nextafter(f, -INFINITY)})
          points.push_back(raw_of(v));
      }
    }
    for (const uint32_t v : {0x7F800000u, 0xFF800000u, 0x7F800001u, 0xFFC00000u, 0x7FFFFFFFu,
                             0x477fefe6u, 0x477ff000u, 0x3c77b13cu, 0x7F7FFFFFu, 1u, 0x80000001u}) {
      points.push_back(v);
    }
    while (points.size() < 400'000) points.push_back(static_cast<uint32_t>(rng()));
    ir::Graph graph;
    const Node value = leaf(graph, DType::Float32);
    Evaluator evaluator(true);
    evaluator.set(value, points);
    const Column& codes = evaluator.of(encode(format, Expr(graph, value)).node());
    for (size_t i = 0; i < points.size(); ++i) {
      const float x = read_as<float>(points[i]);
      ASSERT_EQ(codes[i], encode_float(format, static_cast<double>(x)))
          << x << " " << std::hex << points[i];
    }
  }
}

TEST(FloatCodes, Float64RoundsOnce) {
  std::mt19937_64 rng(test_seed());
  Column points{raw_of(1 + 0x1p-11 + 0x1p-40),
                raw_of(65520 - 0x1p-30),
                raw_of(1e300),
                raw_of(-1e-300),
                raw_of(0.0),
                raw_of(-0.0),
                raw_of(static_cast<double>(INFINITY))};
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t code = rng() & 0x7BFF;
    const double tie =
        (decode_float(DType::Float16, code) + decode_float(DType::Float16, code + 1)) / 2;
    points.push_back(raw_of(tie * (1 + std::ldexp(static_cast<double>(rng() % 3) - 1,
                                                  -20 - static_cast<int>(rng() % 33)))));
  }
  for (const DType format : {DType::Float16, DType::BFloat16}) {
    ir::Graph graph;
    const Node value = leaf(graph, DType::Float64);
    Evaluator evaluator(false);
    evaluator.set(value, points);
    const Column& codes =
        evaluator.of(encode(format, float64_to_float32_odd(Expr(graph, value))).node());
    for (size_t i = 0; i < points.size(); ++i) {
      ASSERT_EQ(codes[i], encode_float(format, read_as<double>(points[i])))
          << read_as<double>(points[i]);
    }
  }
}

/// out[i] = f(in[i]) as a kernel.
struct Kernel {
  ir::Graph graph;
  Node in, out, load;

  Kernel(DType from, DType to) {
    ir::ParamArg arg;
    arg.shape = {16};
    arg.slot = 1;
    in = graph.param(from, arg);
    arg.slot = 0;
    out = graph.param(to, arg);
    load = graph.make(Op::Load, from, {index(in)});
  }
  Node index(const Node& param) {
    return graph.make(Op::Index, param.dtype(),
                      {param, graph.cast(graph.range(16, 0, ir::AxisKind::Loop), DType::Int64)});
  }
  Node sink(const Node& value) {
    return graph.make(Op::Sink, DType::Void,
                      {graph.make(Op::Store, DType::Void, {index(out), value})});
  }
};

Node stored(const Node& sink) { return sink.src(0).src(1); }
Node find(const Node& root, Op op) {
  for (const Node& n : ir::toposort(root)) {
    if (n.is(op)) return n;
  }
  return {};
}
/// What the kernel stores for raw loaded values.
Column run(const Node& sink, Column loaded) {
  Evaluator evaluator(true);
  const Node load = find(sink, Op::Load);
  evaluator.set(load, std::move(loaded));
  return evaluator.of(stored(sink));
}

TEST(EmulateDtypes, MovesKeepTheirBits) {
  for (const DType format : kFormats) {
    Kernel k(format, format);
    const Node gate = k.graph.alu(Op::Cmplt, {k.load, k.graph.constant_float(format, 1)});
    (void)gate;
    const Node copy = emulate_dtypes(k.graph, k.sink(k.load), make_target(Isa::Avx2));
    EXPECT_EQ(stored(copy), find(copy, Op::Load)) << to_string(format);
    EXPECT_EQ(stored(copy).dtype(), code_dtype(format));
    const Node picked =
        emulate_dtypes(k.graph,
                       k.sink(k.graph.alu(Op::Where, {k.graph.constant(DType::Bool, 1), k.load,
                                                      k.graph.constant_float(format, 2)})),
                       make_target(Isa::Avx2));
    EXPECT_EQ(stored(picked).dtype(), code_dtype(format));
    EXPECT_EQ(stored(picked).op(), Op::Where);
  }
}

TEST(EmulateDtypes, ArithmeticIsFloat32RoundedAtTheStore) {
  Kernel k(DType::Float16, DType::Float16);
  const Node sum = k.graph.alu(Op::Add, {k.load, k.graph.constant_float(DType::Float16, 0.5)});
  const Node sink = emulate_dtypes(k.graph, k.sink(sum), make_target(Isa::Avx2));
  Column codes;
  for (uint64_t code = 0; code < 0x7C00; code += 3) codes.push_back(code);
  const Column result = run(sink, codes);
  for (size_t i = 0; i < codes.size(); ++i) {
    ASSERT_EQ(result[i],
              encode_float(DType::Float16, decode_float(DType::Float16, codes[i]) + 0.5));
  }
  for (const Node& n : ir::toposort(sink)) EXPECT_FALSE(is_narrow_float(n.dtype())) << n;
}

TEST(EmulateDtypes, CastsBetweenFormatsRoundOnce) {
  for (const DType to : kFormats) {
    for (const DType from :
         {DType::Float64, DType::Float16, DType::Int32, DType::Int64, DType::UInt64, DType::Bool}) {
      Kernel k(from, to);
      const Node sink =
          emulate_dtypes(k.graph, k.sink(k.graph.cast(k.load, to)), make_target(Isa::Avx2));
      std::mt19937_64 rng(test_seed());
      Column raw;
      for (int i = 0; i < 2000; ++i) {
        const uint64_t any = rng() >> (rng() % 64);
        raw.push_back(from == DType::Bool ? any & 1
                      : bits(from) == 64  ? any
                                          : any & ((uint64_t{1} << bits(from)) - 1));
      }
      const Column result = run(sink, raw);
      for (size_t i = 0; i < raw.size(); ++i) {
        double value = 0;
        if (is_float(from)) value = decode_float(from, raw[i]);
        else if (from == DType::UInt64) value = static_cast<double>(raw[i]);
        else value = static_cast<double>(wrap_int(from, static_cast<int64_t>(raw[i])));
        // 64-bit integers: to float64 they round, which the reference must not; only far values may differ.
        const bool exact = from != DType::Int64 && from != DType::UInt64;
        if (!exact && std::abs(value) >= 0x1p53) continue;
        const uint64_t expected = encode_float(to, value);
        if (std::isnan(value)) continue;
        ASSERT_EQ(result[i], expected)
            << to_string(from) << " " << value << " to " << to_string(to);
      }
    }
  }
}

TEST(EmulateDtypes, LargeIntegersToBfloat16RoundOnce) {
  Kernel k(DType::Int64, DType::BFloat16);
  const Node sink = emulate_dtypes(k.graph, k.sink(k.graph.cast(k.load, DType::BFloat16)),
                                   make_target(Isa::Avx2));
  // Just above the tie between two bfloat16 values: must round up, towards the odd significand.
  const int64_t tie = (int64_t{0b100000001} << 53);
  const Column result = run(sink, {static_cast<uint64_t>(tie), static_cast<uint64_t>(tie + 1),
                                   static_cast<uint64_t>(-tie - 1)});
  const uint64_t down = encode_float(DType::BFloat16, 0x1p61);
  EXPECT_EQ(result[0], down);
  EXPECT_EQ(result[1], down + 1);
  EXPECT_EQ(result[2], (down + 1) | 0x8000);
}

TEST(EmulateDtypes, BitcastActsOnTheCode) {
  Kernel k(DType::Float16, DType::UInt16);
  const Node sink = emulate_dtypes(
      k.graph, k.sink(k.graph.make(Op::Bitcast, DType::UInt16, {k.load})), make_target(Isa::Avx2));
  EXPECT_EQ(stored(sink), find(sink, Op::Load));
}

}  // namespace
}  // namespace ignis::codegen
