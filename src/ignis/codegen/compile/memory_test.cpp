// Gates, masks, loops, registers and lane moves, in both renderers.

#include "ignis/base/float_formats.h"
#include "ignis/codegen/compile/c_compile.h"
#include "ignis/codegen/compile/test_program.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>

namespace ignis::codegen {
namespace {

using ir::Arg;
using ir::Node;
using ir::Op;
using testing::LoadedImage;
using testing::ProgramBuilder;

constexpr DType kF32 = DType::Float32, kI32 = DType::Int32, kI64 = DType::Int64,
                kBool = DType::Bool;

/// Compiles with both renderers for the instruction sets of this machine and calls `run` on each.
void on_every_renderer(const Program& program, const std::function<void(const LoadedImage&)>& run) {
  for (const Isa isa : {Isa::Sse2, Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    if (!testing::machine_has(isa)) continue;
    const Target target = make_target(isa);
    for (const bool with_llvm : {true, false}) {
      // The C text is the same for all x86-64 sets: one compiler run is enough.
      if (!with_llvm && (isa == Isa::Sse2 || isa == Isa::Avx512)) continue;
      SCOPED_TRACE(target.name() + (with_llvm ? " LLVM" : " C"));
      const auto image = with_llvm ? compile_llvm(program, target) : compile_c(program, target);
      ASSERT_TRUE(image) << image.error().to_string();
      const auto loaded = LoadedImage::load(*image);
      ASSERT_TRUE(loaded) << loaded.error().to_string();
      run(*loaded);
    }
  }
}

/// `size_bytes` bytes that end where the readable and writable memory ends: one byte further faults.
class BytesBeforeFault {
 public:
  explicit BytesBeforeFault(size_t size_bytes) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, 3 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(memory_ + page_, page_, PROT_READ | PROT_WRITE), 0);
    begin_ = memory_ + 2 * page_ - size_bytes;
  }
  BytesBeforeFault(const BytesBeforeFault&) = delete;
  BytesBeforeFault& operator=(const BytesBeforeFault&) = delete;
  ~BytesBeforeFault() { munmap(memory_, 3 * page_); }
  std::byte* begin() const { return begin_; }

 private:
  size_t page_;
  std::byte* memory_;
  std::byte* begin_;
};

Node iota(ProgramBuilder& b, int lanes) {
  std::vector<Node> counts;
  for (int i = 0; i < lanes; ++i) counts.push_back(b.constant(kI64, i));
  return lanes == 1 ? counts[0] : b.add(Op::Stack, kI64, counts, {}, lanes);
}

/// Lanes [0, part) are in bounds: out[i] = in[i] there, and alternative elsewhere (to a second, whole buffer).
Program tail_program(DType dtype, int lanes) {
  ProgramBuilder b("tail");
  const Node in = b.param(0, dtype), out = b.param(1, dtype), whole = b.param(2, dtype);
  const Node gate = b.alu(Op::Cmplt, {iota(b, lanes), b.broadcast(b.special("part"), lanes)});
  const Node one = is_float(dtype) ? b.constant_float(dtype, 1) : b.constant(dtype, 1);
  const Node value = b.load(b.index(in, 0), b.broadcast(one, lanes), gate);
  b.store(b.index(out, 0), value, gate);
  b.store(b.index(whole, 0), value);
  return b.program();
}

TEST(MaskedAccess, TouchesNothingBeyondTheTail) {
  for (const DType dtype : {DType::Bool, DType::Int8, DType::UInt16, kI32, kF32, DType::Float64}) {
    for (const int lanes : {4, 16}) {
      SCOPED_TRACE(std::string(to_string(dtype)) + " x " + std::to_string(lanes));
      on_every_renderer(tail_program(dtype, lanes), [&](const LoadedImage& image) {
        const auto size = static_cast<size_t>(size_bytes(dtype));
        for (int count = 0; count <= lanes; ++count) {
          const size_t used = static_cast<size_t>(count) * size;
          const BytesBeforeFault in(used), out(used);
          std::vector<std::byte> whole(static_cast<size_t>(lanes) * size, std::byte{0x55});
          for (size_t i = 0; i < used; ++i) {
            in.begin()[i] = static_cast<std::byte>(dtype == kBool ? i % 2 : i + 3);
          }
          image.run({in.begin(), out.begin(), whole.data()}, count);
          EXPECT_EQ(std::memcmp(in.begin(), out.begin(), used), 0);
          EXPECT_EQ(std::memcmp(in.begin(), whole.data(), used), 0);
          for (int lane = count; lane < lanes; ++lane) {  // the alternative is 1
            uint64_t stored = 0;
            std::memcpy(&stored, &whole[static_cast<size_t>(lane) * size], size);
            EXPECT_EQ(stored, is_float(dtype) ? encode_float(dtype, 1) : 1u) << lane;
          }
        }
      });
    }
  }
}

TEST(MaskedAccess, TakesConstantMasks) {
  constexpr int kLanes = 8;
  ProgramBuilder b("constant_mask");
  std::vector<Node> bits;
  const bool mask[kLanes] = {true, true, false, true, false, false, true, false};
  for (const bool bit : mask) bits.push_back(b.constant(kBool, bit));
  const Node gate = b.add(Op::Stack, kBool, bits, {}, kLanes);
  const Node value =
      b.load(b.index(b.param(0, kF32), 0), b.broadcast(b.constant_float(kF32, -1), kLanes), gate);
  b.store(b.index(b.param(1, kF32), 0), value, gate);
  b.store(b.index(b.param(2, kF32), 0), value);
  on_every_renderer(b.program(), [&](const LoadedImage& image) {
    std::vector<float> in(kLanes), out(kLanes, 99), whole(kLanes);
    for (int i = 0; i < kLanes; ++i) in[static_cast<size_t>(i)] = static_cast<float>(i);
    image.run({in.data(), out.data(), whole.data()});
    for (size_t i = 0; i < kLanes; ++i) {
      EXPECT_EQ(out[i], mask[i] ? in[i] : 99) << i;
      EXPECT_EQ(whole[i], mask[i] ? in[i] : -1) << i;
    }
  });
}

/// out[0…] = in[part] if part < 4, else the alternative; the store is behind the same gate.
Program gated_program(int lanes, double alternative) {
  ProgramBuilder b("gated");
  const Node part = b.special("part");
  const Node gate = b.alu(Op::Cmplt, {part, b.constant(kI64, 4)});
  const Node at = b.index(b.param(0, kF32), part);
  const Node other = b.broadcast(b.constant_float(kF32, alternative), lanes);
  const Node value = b.load(at, other, gate);
  b.store(b.index(b.param(1, kF32), 0), value);
  b.store(b.index(b.param(2, kF32), part), value, gate);
  b.store(b.index(b.param(2, kF32), b.alu(Op::Add, {part, b.constant(kI64, lanes)})), value, gate);
  return b.program();
}

TEST(GatedAccess, TouchesNothingWhenShut) {
  for (const int lanes : {1, 4, 8}) {
    for (const double alternative : {0.0, -0.0, 2.5}) {
      on_every_renderer(gated_program(lanes, alternative), [&](const LoadedImage& image) {
        const auto width = static_cast<size_t>(lanes);
        std::vector<float> out(width), copy(64, -7);
        const BytesBeforeFault in((4 + width) * sizeof(float));
        auto* const values = reinterpret_cast<float*>(in.begin());
        for (size_t i = 0; i < 4 + width; ++i) values[i] = static_cast<float>(i) + 0.5f;
        for (const int64_t part : {int64_t{0}, int64_t{3}, int64_t{4}, int64_t{1} << 40}) {
          std::fill(copy.begin(), copy.end(), -7.0f);
          image.run({values, out.data(), copy.data()}, part);
          for (size_t i = 0; i < width; ++i) {
            const float want =
                part < 4 ? values[static_cast<size_t>(part) + i] : static_cast<float>(alternative);
            EXPECT_EQ(std::bit_cast<uint32_t>(out[i]), std::bit_cast<uint32_t>(want)) << part;
            if (part >= 4) continue;
            EXPECT_EQ(copy[static_cast<size_t>(part) + i], want);
            EXPECT_EQ(copy[static_cast<size_t>(part) + width + i], want);
          }
          if (part >= 4) {
            EXPECT_EQ(std::count(copy.begin(), copy.end(), -7.0f), 64);
          }
        }
      });
    }
  }
}

TEST(Loops, CountToEndsKnownAtRunTime) {
  // out[part] = sum over i < parts, j < i of (10 i + j); nothing runs for i = 0, or for parts <= 0.
  ProgramBuilder b("triangle");
  const Node sum = b.reg(kI64, 1), ten = b.constant(kI64, 10), out = b.param(0, kI64);
  const Node part = b.special("part"), parts = b.special("parts");
  b.store(sum, b.constant(kI64, 0));
  const Node i = b.range(parts);
  const Node row = b.alu(Op::Mul, {i, ten});
  const Node j = b.range(i);
  b.store(sum, b.alu(Op::Add, {b.load_reg(sum), b.alu(Op::Add, {row, j})}));
  b.end(j);
  b.end(i);
  b.store(b.index(out, part), b.load_reg(sum));
  on_every_renderer(b.program(), [&](const LoadedImage& image) {
    for (const int64_t n : {int64_t{-3}, int64_t{0}, int64_t{1}, int64_t{2}, int64_t{9}}) {
      int64_t want = 0;
      for (int64_t x = 0; x < n; ++x) {
        for (int64_t y = 0; y < x; ++y) want += 10 * x + y;
      }
      int64_t memory[3] = {-1, -1, -1};
      image.run({memory}, 1, n);
      EXPECT_EQ(memory[0], -1);
      EXPECT_EQ(memory[1], want) << n;
      EXPECT_EQ(memory[2], -1);
    }
  });
}

TEST(Loops, WithConstantEnds) {
  // One iteration is no loop, none is no code; both still scope their bodies.
  for (const int64_t end : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{5}}) {
    ProgramBuilder b("constant_end");
    const Node out = b.param(0, kI32), value = b.constant(kI32, 7);
    const Node r = b.range(b.constant(kI64, end));
    b.store(b.index(out, r), value);
    b.end(r);
    on_every_renderer(b.program(), [&](const LoadedImage& image) {
      std::vector<int32_t> memory(8, 0);
      image.run({memory.data()});
      for (int64_t i = 0; i < 8; ++i)
        EXPECT_EQ(memory[static_cast<size_t>(i)], i < end ? 7 : 0) << end;
    });
  }
}

TEST(Loops, WhoseEndIsABoolAreBranches) {
  // sum += 5 and out[1 + counter] = 7 when part < 3; out[0] = sum.
  ProgramBuilder b("branch");
  const Node out = b.param(0, kI64), sum = b.reg(kI64, 1);
  b.store(sum, b.constant(kI64, 100));
  const Node inside = b.alu(Op::Cmplt, {b.special("part"), b.constant(kI64, 3)});
  const Node r = b.range(b.add(Op::Cast, kI64, {inside}));
  b.store(sum, b.alu(Op::Add, {b.load_reg(sum), b.constant(kI64, 5)}));
  b.store(b.index(out, b.alu(Op::Add, {r, b.constant(kI64, 1)})), b.constant(kI64, 7));
  b.end(r);
  b.store(b.index(out, 0), b.load_reg(sum));
  on_every_renderer(b.program(), [&](const LoadedImage& image) {
    int64_t taken[3] = {0, 0, 0}, passed[3] = {0, 0, 0};
    image.run({taken}, 2);
    image.run({passed}, 3);
    EXPECT_EQ(taken[0], 105);
    EXPECT_EQ(taken[1], 7);
    EXPECT_EQ(taken[2], 0);
    EXPECT_EQ(passed[0], 100);
    EXPECT_EQ(passed[1], 0);
  });
}

TEST(Loops, ReadWhatAnEarlierIterationStored) {
  // out[i + 1] = out[i] + out[i]: loads and stores of one buffer stay in order.
  ProgramBuilder b("doubling");
  const Node out = b.param(0, kI64);
  const Node r = b.range(b.constant(kI64, 10));
  const Node x = b.load(b.index(out, r));
  b.store(b.index(out, b.alu(Op::Add, {r, b.constant(kI64, 1)})), b.alu(Op::Add, {x, x}));
  b.end(r);
  on_every_renderer(b.program(), [&](const LoadedImage& image) {
    std::vector<int64_t> memory(11, 0);
    memory[0] = 3;
    image.run({memory.data()});
    for (size_t i = 0; i < 11; ++i) EXPECT_EQ(memory[i], int64_t{3} << i);
  });
}

TEST(Vectors, MoveLanes) {
  ProgramBuilder b("lanes");
  const Node in = b.param(0, kI32), out = b.param(1, kI32);
  const Node low = b.load(b.index(in, 0), 4), high = b.load(b.index(in, 4), 4);
  b.store(b.index(out, 0), b.add(Op::Shuffle, kI32, {low, high}, Arg{{7, 0, 5, 2}, {}}, 4));
  b.store(b.index(out, 4),
          b.add(Op::Shuffle, kI32, {low, high}, Arg{{0, 1, 2, 3, 4, 5, 6, 7}, {}}, 8));
  const Node third = b.add(Op::Extract, kI32, {high}, Arg{{2}, {}});
  b.store(b.index(out, 12), b.broadcast(third, 4));
  b.store(b.index(out, 16),
          b.add(Op::Stack, kI32, {third, third, b.constant(kI32, -1), third}, {}, 4));
  b.store(b.index(out, 20), b.add(Op::Shuffle, kI32, {low, high}, Arg{{6, 1}, {}}, 2));
  const Node one = b.load(b.index(in, 1)), two = b.load(b.index(in, 2));
  b.store(b.index(out, 22), b.add(Op::Shuffle, kI32, {one, two}, Arg{{1, 0}, {}}, 2));
  on_every_renderer(b.program(), [&](const LoadedImage& image) {
    std::vector<int32_t> from = {10, 11, 12, 13, 14, 15, 16, 17}, to(24, 0);
    image.run({from.data(), to.data()});
    EXPECT_EQ(to, (std::vector<int32_t>{17, 10, 15, 12, 10, 11, 12, 13, 14, 15, 16, 17,
                                        16, 16, 16, 16, 16, 16, -1, 16, 16, 11, 12, 11}));
  });
}

TEST(Vectors, MaxAndMinAgainstConstantsPassNanOn) {
  ProgramBuilder b("relu");
  const Node x = b.load(b.index(b.param(0, kF32), 0), 4), out = b.param(1, kF32);
  const Node zero = b.broadcast(b.constant_float(kF32, 0), 4),
             nan = b.broadcast(b.constant_float(kF32, NAN), 4);
  b.store(b.index(out, 0), b.alu(Op::Max, {x, zero}));
  b.store(b.index(out, 4), b.alu(Op::Max, {zero, x}));
  b.store(b.index(out, 8), b.alu(Op::Min, {x, zero}));
  b.store(b.index(out, 12), b.alu(Op::Min, {x, nan}));
  on_every_renderer(b.program(), [&](const LoadedImage& image) {
    const float kInf = std::numeric_limits<float>::infinity();
    std::vector<float> from = {NAN, -kInf, 2, -3}, to(16, 0);
    image.run({from.data(), to.data()});
    for (const size_t at : {0u, 4u, 8u, 12u}) EXPECT_TRUE(std::isnan(to[at])) << at;
    EXPECT_EQ(std::vector<float>(to.begin() + 1, to.begin() + 4), (std::vector<float>{0, 2, 0}));
    EXPECT_EQ(std::vector<float>(to.begin() + 5, to.begin() + 8), (std::vector<float>{0, 2, 0}));
    EXPECT_EQ(std::vector<float>(to.begin() + 9, to.begin() + 12),
              (std::vector<float>{-kInf, 0, -3}));
    for (size_t i = 12; i < 16; ++i) EXPECT_TRUE(std::isnan(to[i])) << i;
  });
}

TEST(CCompiler, ReportsFailureAndDeadline) {
  const Target target = make_target(Isa::Sse2);
  const auto compiler = find_c_compiler(target);
  ASSERT_TRUE(compiler) << compiler.error().to_string();
  const auto broken = run_c_compiler("int f(void) { return }", target, *compiler);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code(), ErrorCode::Internal);
  EXPECT_NE(broken.error().message().find("expected expression"), std::string::npos)
      << broken.error().message();
  const auto absent = run_c_compiler("", target, "no-such-compiler");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), ErrorCode::NotFound);
  const auto late = run_c_compiler("int x;", target, *compiler, std::chrono::milliseconds(0));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::Timeout);
}

TEST(CCompiler, GccTakesTheSameText) {
  const Program program = tail_program(kF32, 8);
  const Target target = make_target(Isa::Avx2);
  const auto text = render_c(program, target);
  ASSERT_TRUE(text);
#if defined(__x86_64__)
  const auto object = run_c_compiler(*text, target, "gcc");
  if (!object && object.error().code() == ErrorCode::NotFound) GTEST_SKIP() << "there is no gcc";
  EXPECT_TRUE(object) << object.error().to_string();
#endif
}

TEST(Compile, GivesTheSameBytesInAnyOrderAndThread) {
  // A thread uses one code generator for all its programs; nothing of one may show in the next.
  std::vector<Program> programs;
  for (const int lanes : {1, 4, 8, 16}) {
    for (const DType d : {kBool, kI32, kF32}) programs.push_back(tail_program(d, lanes));
    programs.push_back(gated_program(lanes, 2.5));
    programs.push_back(testing::tile_program({4, 16, 64, 2, lanes}));
  }
  for (const Target& target : {make_target(Isa::Avx2), make_target(Isa::Neon)}) {
    const auto compile = [&](const Program& program) {
      auto image = compile_llvm(program, target);
      EXPECT_TRUE(image) << image.error().to_string();
      return image ? image->object : std::vector<std::byte>();
    };
    std::vector<std::vector<std::byte>> alone(programs.size()), backward(programs.size());
    for (size_t i = 0; i < programs.size(); ++i) {
      std::thread([&, i] { alone[i] = compile(programs[i]); }).join();
    }
    for (size_t i = programs.size(); i-- > 0;) backward[i] = compile(programs[i]);
    for (size_t i = 0; i < programs.size(); ++i) {
      EXPECT_EQ(alone[i], backward[i]) << target.name() << " " << i;
    }
  }
}

}  // namespace
}  // namespace ignis::codegen
