// Capture spec, section 6.

#include "ignis/exec/signature.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace ignis::exec {
namespace {

/// An input with memory of its own for what its description looks at.
struct TestInput {
  std::string name = "0", layout;
  std::vector<InputDevice> devices = {{"G", 1}};
  std::vector<SymbolicNumber> shape, strides;
  InputDescription fields;

  /// A row-major one; the base is no larger than the view.
  static TestInput make(std::vector<int64_t> dims, DType dtype = DType::Float32) {
    TestInput input;
    int64_t count = 1;
    for (size_t i = dims.size(); i-- > 0;) {
      input.shape.insert(input.shape.begin(), SymbolicNumber{dims[i]});
      input.strides.insert(input.strides.begin(), SymbolicNumber{count});
      count *= dims[i];
    }
    input.fields.dtype = dtype;
    input.fields.size_bytes.value = count * size_bytes(dtype);
    input.fields.base_bytes = static_cast<uint64_t>(count * size_bytes(dtype));
    input.fields.alignment_bytes = 64;
    return input;
  }
  InputDescription describe() const {
    InputDescription result = fields;
    result.name = name;
    result.layout = layout;
    result.devices = devices;
    result.shape = shape;
    result.strides = strides;
    return result;
  }
};

Signature capture(const TestInput& input) { return Signature::make(std::array{input.describe()}); }
Status replay(const Signature& signature, const TestInput& input) {
  return signature.check(std::array{input.describe()});
}

void expect_mismatch(const Status& status, const std::string& text) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(status.error().reason(), "SignatureMismatch");
  EXPECT_NE(status.error().message().find(text), std::string::npos) << status.error().to_string();
}

TEST(CaptureSignature, SG1_ABareBufferOfAnotherLengthDiffersInBytes) {
  expect_mismatch(replay(capture(TestInput::make({4})), TestInput::make({8})),
                  "total bytes 16 -> 32");
}

TEST(CaptureSignature, SG2_AnotherShapeDiffers) {
  const Signature signature = capture(TestInput::make({10, 10}));
  expect_mismatch(replay(signature, TestInput::make({20, 20})), "total bytes 400 -> 1600");
  expect_mismatch(replay(signature, TestInput::make({5, 20})), "shape [10, 10] -> [5, 20]");
  expect_mismatch(replay(signature, TestInput::make({100})), "rank 2 -> 1");
}

TEST(CaptureSignature, SG3_PositionsAndKeywordsDiffer) {
  TestInput keyword = TestInput::make({4});
  keyword.name = "x";
  expect_mismatch(replay(capture(TestInput::make({4})), keyword), "names [0] -> [x]");
}

TEST(CaptureSignature, SG4_AnotherOffsetDiffers) {
  TestInput captured = TestInput::make({4, 2});
  captured.strides[0].value = 8;
  captured.fields.base_bytes = 4 * 8 * 4;
  captured.fields.offset_bytes.value = 1 * 4;
  TestInput current = captured;
  current.fields.offset_bytes.value = 2 * 4;
  expect_mismatch(replay(capture(captured), current), "byte offset 4 -> 8");
}

TEST(CaptureSignature, SG5_AnotherTypeOfTheSameBytesDiffers) {
  expect_mismatch(replay(capture(TestInput::make({4})), TestInput::make({4}, DType::Int32)),
                  "type f32 -> i32");
}

TEST(CaptureSignature, SG6_AnotherDeviceDiffers) {
  TestInput current = TestInput::make({4});
  current.devices[0].name = "G:1";
  expect_mismatch(replay(capture(TestInput::make({4})), current), "device G -> G:1");
  current.devices = {{"G", 1}, {"G:1", 1}};
  expect_mismatch(replay(capture(TestInput::make({4})), current), "device G -> G, G:1");
}

TEST(CaptureSignature, SG7_AVariableMayChangeWithinItsRange) {
  const auto input = [](int64_t i) {
    TestInput made = TestInput::make({10});
    made.shape[0] = {i, "i", 1, 10};
    made.fields.size_bytes = {4 * i, "4*i", 4, 40};
    return made;
  };
  const auto check = [&](const Signature& signature, int64_t i) {
    return signature.check(std::array{input(i).describe()},
                           std::array{VariableBinding{"i", i, 1, 10}});
  };
  const TestInput captured = input(2);
  const Signature signature =
      Signature::make(std::array{captured.describe()}, std::array{VariableBinding{"i", 2, 1, 10}});
  EXPECT_TRUE(check(signature, 4));
  expect_mismatch(check(signature, 11), "range");

  // Another range, another expression, another variable: other captures.
  TestInput other = input(4);
  other.shape[0].max = 20;
  expect_mismatch(
      signature.check(std::array{other.describe()}, std::array{VariableBinding{"i", 4, 1, 10}}),
      "shape [i in [1, 10]] -> [i in [1, 20]]");
  other = input(4);
  other.shape[0] = SymbolicNumber{4};
  expect_mismatch(
      signature.check(std::array{other.describe()}, std::array{VariableBinding{"i", 4, 1, 10}}),
      "shape [i in [1, 10]] -> [4]");
  expect_mismatch(
      signature.check(std::array{input(4).describe()}, std::array{VariableBinding{"k", 4, 1, 10}}),
      "variables i in [1, 10] -> k in [1, 10]");
  expect_mismatch(signature.check(std::array{input(4).describe()}),
                  "variables [i in [1, 10]] -> []");
  // A variable that no view shows is held to its range as well.
  const Signature bare = Signature::make({}, std::array{VariableBinding{"n", 1, 0, 3}});
  EXPECT_TRUE(bare.check({}, std::array{VariableBinding{"n", 3, 0, 3}}));
  expect_mismatch(bare.check({}, std::array{VariableBinding{"n", 4, 0, 3}}), "range");
}

TEST(CaptureSignature, SG8_ATransposedViewDiffersInStrides) {
  TestInput transposed = TestInput::make({8, 4});
  std::swap(transposed.shape[0], transposed.shape[1]);
  std::swap(transposed.strides[0], transposed.strides[1]);
  expect_mismatch(replay(capture(TestInput::make({4, 8})), transposed), "strides [8, 1] -> [1, 4]");
}

TEST(CaptureSignature, SG9_AFrameOfAnotherPitchDiffersInLayout) {
  const auto frame = [](int64_t stride_bytes) {
    TestInput made = TestInput::make({stride_bytes * 1208 * 3 / 2}, DType::UInt8);
    made.fields.memory_class = MemoryClass::External;
    made.layout = frame_layout("NV12", 1920, 1208, stride_bytes);
    return made;
  };
  expect_mismatch(replay(capture(frame(1920)), frame(2048)),
                  "layout 'NV12 1920x1208 stride 1920' -> 'NV12 1920x1208 stride 2048'");
  TestInput bare = frame(1920);
  bare.layout.clear();
  expect_mismatch(replay(capture(frame(1920)), bare), "-> none");
}

TEST(CaptureSignature, SG10_AFreshBufferOfEqualDescriptionFits) {
  EXPECT_TRUE(replay(capture(TestInput::make({4, 8})), TestInput::make({4, 8})));
}

TEST(CaptureSignature, SG11_AfterAMismatchWhatFitsIsTaken) {
  const Signature signature = capture(TestInput::make({4}));
  const uint64_t hash = signature.hash();
  expect_mismatch(replay(signature, TestInput::make({8})), "total bytes");
  EXPECT_TRUE(replay(signature, TestInput::make({4})));
  EXPECT_EQ(signature.hash(), hash);
}

TEST(CaptureSignature, AnOldGenerationIsAStaleCapture) {
  TestInput current = TestInput::make({4});
  current.devices[0].generation = 2;
  const Status status = replay(capture(TestInput::make({4})), current);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::DeviceLost);
  EXPECT_EQ(status.error().reason(), "StaleCapture");
}

TEST(CaptureSignature, OtherMemoryIsAMismatchAndBetterAlignmentIsNone) {
  TestInput current = TestInput::make({4});
  current.fields.memory_class = MemoryClass::HostMapped;
  expect_mismatch(replay(capture(TestInput::make({4})), current),
                  "memory class device -> host-mapped");
  current = TestInput::make({4});
  current.fields.alignment_bytes = 256;
  EXPECT_TRUE(replay(capture(TestInput::make({4})), current));
  current.fields.alignment_bytes = 16;
  expect_mismatch(replay(capture(TestInput::make({4})), current), "alignment class 64 -> 16");
  current = TestInput::make({4});
  current.fields.base_bytes = 4096;
  expect_mismatch(replay(capture(TestInput::make({4})), current), "base bytes 16 -> 4096");
}

TEST(CaptureSignature, AlignmentClassesEndAt256) {
  EXPECT_EQ(alignment_class(1), 1U);
  EXPECT_EQ(alignment_class(12), 4U);
  EXPECT_EQ(alignment_class(64), 64U);
  EXPECT_EQ(alignment_class(192), 64U);
  EXPECT_EQ(alignment_class(256), 256U);
  EXPECT_EQ(alignment_class(4096), 256U);
  EXPECT_EQ(alignment_class(0), 256U);
}

TEST(CaptureSignature, TheFirstDifferenceOfTheFirstInputIsNamed) {
  std::vector<TestInput> captured, current;
  std::vector<InputDescription> before, after;
  for (int i = 0; i < 3; ++i) {
    captured.push_back(TestInput::make({4}));
    captured.back().name = std::to_string(i);
  }
  current = captured;
  current[1].fields.memory_class = MemoryClass::External;
  current[2].fields.dtype = DType::Int32;
  for (const TestInput& input : captured) before.push_back(input.describe());
  for (const TestInput& input : current) after.push_back(input.describe());
  const auto difference = Signature::make(before).find_difference(after);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->input, 1);
  EXPECT_EQ(difference->field, SignatureField::MemoryClass);
}

TEST(CaptureSignature, OwnsWhatItLookedAt) {
  Signature signature = Signature::make({});
  {
    TestInput captured = TestInput::make({4, 8});
    captured.name = std::string("a name that is longer than a small string");
    captured.layout = std::string("a tag that is longer than a small string");
    const std::string device = "a device with a name longer than a small string";
    captured.devices[0].name = device;
    signature = capture(captured);
  }
  ASSERT_EQ(signature.inputs().size(), 1U);
  EXPECT_EQ(signature.inputs()[0].name, "a name that is longer than a small string");
  EXPECT_EQ(signature.inputs()[0].layout, "a tag that is longer than a small string");
  EXPECT_EQ(signature.inputs()[0].devices[0].name,
            "a device with a name longer than a small string");
  EXPECT_EQ(signature.inputs()[0].shape[1].value, 8);
}

TEST(CaptureSignature, EveryFieldChangesTheHashOrTheAnswer) {
  std::mt19937_64 rng(20);
  for (int i = 0; i < 2000; ++i) {
    TestInput captured = TestInput::make({1 + static_cast<int64_t>(rng() % 5), 4});
    TestInput current = captured;
    switch (rng() % 9) {
      case 0: current.name = "1"; break;
      case 1: current.layout = "t"; break;
      case 2: current.devices[0].name = "H"; break;
      case 3: current.fields.memory_class = MemoryClass::External; break;
      case 4: current.fields.dtype = DType::UInt32; break;
      case 5: current.fields.size_bytes.value += 4; break;
      case 6: current.fields.base_bytes += 1; break;
      case 7: current.shape[rng() % 2].value += 1; break;
      default: current.strides[rng() % 2].value += 1; break;
    }
    const Signature signature = capture(captured);
    EXPECT_TRUE(replay(signature, captured));
    EXPECT_FALSE(replay(signature, current));
    EXPECT_NE(signature.hash(), capture(current).hash());
  }
}

}  // namespace
}  // namespace ignis::exec
