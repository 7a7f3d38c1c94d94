// The model of 553 outputs end to end, on a small synthetic file with its interface.

#include "ignis/pipeline/driver_monitoring/build/models.h"
#include "ignis/pipeline/driver_monitoring/build/test_frames.h"
#include "ignis/pipeline/driver_monitoring/build/test_synthetic_model.h"
#include "ignis/pipeline/driver_monitoring/warp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ignis::pipeline {
namespace {

using testing::SyntheticModel;
using testing::TestFrame;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

class Comma553 : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Model>> load(const SyntheticModel& synthetic) {
    synthetic_ = synthetic;
    const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    path_ = synthetic.write("ignis_" + test + ".onnx");
    return load_model(path_);
  }
  void TearDown() override {
    if (!path_.empty()) std::filesystem::remove(path_);
  }

  std::vector<double> expected(const TestFrame& frame, const std::array<float, 3>& rpy_rad) {
    const FrameLayout& l = frame.frame.layout;
    const WarpShape shape{l.width_px, l.height_px, l.y_stride};
    std::vector<std::byte> image(static_cast<size_t>(shape.output_bytes()));
    warp_luma(shape, frame.frame.bytes, warp_matrix(testing::camera_of(l), 567, 720, 356), image);
    return synthetic_.outputs(image, rpy_rad);
  }
  void expect_run(Model& model, TestFrame& frame, const std::array<float, 3>& rpy_rad,
                  double tolerance = 1e-4) {
    const auto times = model.run(frame.frame, rpy_rad, testing::soon());
    ASSERT_TRUE(times) << times.error().to_string();
    EXPECT_GT(times->warp_ns, 0u);
    EXPECT_GT(times->model_ns, 0u);
    const std::vector<double> want = expected(frame, rpy_rad);
    ASSERT_EQ(model.output().size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(model.output()[i]), want[i], tolerance) << i;
    }
  }

  SyntheticModel synthetic_;
  std::string path_;
};

TEST_F(Comma553, RunsFromFrameToPrediction) {
  auto model = load({});
  ASSERT_TRUE(model) << model.error().to_string();
  const ModelIdentity& identity = (*model)->identity();
  EXPECT_EQ(identity.profile, "comma-553");
  EXPECT_EQ(identity.checkpoint, "synthetic/1");
  EXPECT_NE(identity.hash, (std::array<std::byte, 32>{}));
  EXPECT_TRUE((*model)->output().empty());

  TestFrame frame(testing::layout_a());
  frame.fill_random(1);
  const Camera camera = testing::camera_of(frame.frame.layout);
  const Status bound = (*model)->bind(frame.frame.layout, camera);
  ASSERT_TRUE(bound) << bound.error().to_string();
  EXPECT_TRUE((*model)->output().empty()) << "The warm-up's output is on show.";
  EXPECT_EQ((*model)->decode().reasons, Reasons(Reason::OutputSize));

  expect_run(**model, frame, {0, 0, 0});
  expect_run(**model, frame, {0.1f, -0.2f, 0.3f});  // the angles reach the model
  const Decoded decoded = (*model)->decode();
  EXPECT_TRUE(decoded.reasons.is_empty());
  EXPECT_EQ(decoded.prediction.known_left, kAllDriverFields);
  EXPECT_TRUE(decoded.prediction.known_wheel);
  EXPECT_FLOAT_EQ(decoded.prediction.left.face_orientation[0], (*model)->output()[0]);
  EXPECT_NEAR(decoded.prediction.wheel_on_right_prob,
              1 / (1 + std::exp(-static_cast<double>((*model)->output()[40]))), 1e-6);
  frame.fill([](int, int x, int y) { return (x + 3 * y) % 256; });
  expect_run(**model, frame, {0, 0, 0});
}

// Width changes from 1928 to 1344 in mid-stream: rebind, new matrix, nothing of the old frame (section 10.6).
TEST_F(Comma553, ARebindTakesTheNewGeometry) {
  auto model = load({});
  ASSERT_TRUE(model);
  TestFrame a(testing::layout_a()), b(testing::layout_b());
  a.fill_random(2);
  b.fill_random(3);
  ASSERT_TRUE((*model)->bind(a.frame.layout, testing::camera_of(a.frame.layout)));
  expect_run(**model, a, {0, 0, 0});
  const auto refused = (*model)->run(b.frame, {0, 0, 0}, testing::soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "LayoutChanged");
  EXPECT_TRUE((*model)->output().empty());
  ASSERT_TRUE((*model)->bind(b.frame.layout, testing::camera_of(b.frame.layout)));
  EXPECT_TRUE((*model)->output().empty());
  expect_run(**model, b, {0, 0, 0});
}

// Either order of the inputs, and files in half precision: outputs below 8 are good to 2^-9.
TEST_F(Comma553, TakesInputsInEitherOrderAndHalfPrecision) {
  TestFrame frame(testing::layout_b());
  frame.fill_random(6);
  for (const bool is_half : {false, true}) {
    auto model = load({.is_half = is_half, .is_calibration_first = true});
    ASSERT_TRUE(model) << model.error().to_string();
    ASSERT_TRUE((*model)->bind(frame.frame.layout, testing::camera_of(frame.frame.layout)));
    expect_run(**model, frame, {0.25f, -0.5f, 0.125f}, is_half ? 1.0 / 256 : 1e-4);
  }
}

TEST_F(Comma553, RefusesFramesAndCamerasThatDoNotFit) {
  auto model = load({});
  ASSERT_TRUE(model);
  TestFrame frame(testing::layout_a());
  const Camera camera = testing::camera_of(frame.frame.layout);
  EXPECT_FALSE((*model)->run(frame.frame, {0, 0, 0}, testing::soon())) << "not bound yet";
  FrameLayout broken = frame.frame.layout;
  broken.y_stride = 1900;
  EXPECT_FALSE((*model)->bind(broken, camera));
  broken = frame.frame.layout;
  broken.u_offset = int64_t{1} << 60;
  EXPECT_FALSE((*model)->bind(broken, camera));
  EXPECT_FALSE((*model)->bind(testing::layout_b(), camera));
  ASSERT_TRUE((*model)->bind(frame.frame.layout, camera));
  Frame torn = frame.frame;
  torn.bytes = torn.bytes.first(torn.bytes.size() - 1);
  EXPECT_FALSE((*model)->run(torn, {0, 0, 0}, testing::soon()));
  EXPECT_TRUE((*model)->run(frame.frame, {0, 0, 0}, testing::soon()));
}

TEST_F(Comma553, RunsAgainAfterADeadlineThatHadPassed) {
  auto model = load({});
  ASSERT_TRUE(model);
  TestFrame frame(testing::layout_a());
  frame.fill_random(4);
  ASSERT_TRUE((*model)->bind(frame.frame.layout, testing::camera_of(frame.frame.layout)));
  const auto late = (*model)->run(frame.frame, {0, 0, 0}, std::chrono::steady_clock::now());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::Timeout);
  EXPECT_TRUE((*model)->output().empty());
  expect_run(**model, frame, {0, 0, 0});
}

// A deadline in the middle of a run costs the device; the next run has a new one.
TEST_F(Comma553, RunsAgainAfterARunThatWasCutOff) {
  auto model = load({});
  ASSERT_TRUE(model);
  TestFrame frame(testing::layout_a());
  frame.fill_random(5);
  ASSERT_TRUE((*model)->bind(frame.frame.layout, testing::camera_of(frame.frame.layout)));
  for (int i = 0; i < 5; ++i) {
    const auto cut = (*model)->run(
        frame.frame, {0, 0, 0}, std::chrono::steady_clock::now() + std::chrono::microseconds(30));
    if (cut) continue;
    EXPECT_EQ(cut.error().code(), ErrorCode::Timeout) << cut.error().to_string();
    EXPECT_TRUE((*model)->output().empty());
  }
  expect_run(**model, frame, {0, 0, 0});
}

TEST_F(Comma553, OutputsThatCannotBeTrustedAreNamed) {
  TestFrame frame(testing::layout_b());
  const struct {
    const char* what;
    SyntheticModel model;
    Reasons reasons;
    const char* head;
    uint64_t unused;
  } cases[] = {
      {"NaN at index 3", {.biases = {{3, kNan}}}, Reason::NonFinite, "face_descs_lhd", 0},
      {"infinity in a head", {.biases = {{34, kInf}}}, Reason::NonFinite, "right_eye_prob_rhd", 0},
      {"NaN in the features", {.biases = {{100, kNan}}}, Reasons(), "", 1},
      {"all zero", {.is_zero = true}, Reason::DegenerateOutput, "", 0},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    auto model = load(c.model);
    ASSERT_TRUE(model) << model.error().to_string();
    ASSERT_TRUE((*model)->bind(frame.frame.layout, testing::camera_of(frame.frame.layout)));
    ASSERT_TRUE((*model)->run(frame.frame, {0, 0, 0}, testing::soon()));
    const Decoded decoded = (*model)->decode();
    EXPECT_EQ(decoded.reasons & Reasons(Reason::NonFinite), c.reasons & Reasons(Reason::NonFinite));
    EXPECT_EQ(decoded.reasons & Reasons(Reason::DegenerateOutput),
              c.reasons & Reasons(Reason::DegenerateOutput));
    EXPECT_EQ(decoded.reasons.is_empty(), c.reasons.is_empty());
    EXPECT_EQ(decoded.head, c.head);
    EXPECT_EQ(decoded.unused_non_finite, c.unused);
    EXPECT_EQ(decoded.prediction.left.has_lists, c.reasons.is_empty());
  }
}

// base64(pickle) of {"face_descs_lhd": slice(0, 9)} and the like would do as well; the table's own faults are tested
// beside it. Here: that they come out of a file as load errors.
TEST_F(Comma553, FilesWithFaultsAreLoadErrorsWithTheirReason) {
  const struct {
    const char* what;
    SyntheticModel model;
    const char* reason;
    Reasons bits;
  } cases[] = {
      {"a vector shorter than the map",
       {.output_count = 552},
       "SliceOutOfRange",
       Reasons(Reason::SliceOutOfRange)},
      {"a descriptor of 9",
       {.slices = std::string(testing::kShortDescriptorMap)},
       "SliceWidth",
       Reasons(Reason::SliceWidth)},
      {"a slice up to 560",
       {.slices = std::string(testing::kOverLongMap)},
       "SliceOutOfRange",
       Reasons(Reason::SliceOutOfRange)},
      {"two heads at one place",
       {.slices = std::string(testing::kOverlappingMap)},
       "SliceOverlap",
       Reasons(Reason::SliceOverlap)},
      {"a map that would run a command",
       {.slices = "Y29zCnN5c3RlbQooUyd0cnVlJwp0Ui4="},
       "SliceMap",
       Reasons(Reason::ArtifactMismatch)},
      {"no base64", {.slices = "?"}, "SliceMap", Reasons(Reason::ArtifactMismatch)},
      {"no map and an unknown length",
       {.output_count = 596, .slices = std::nullopt},
       "SliceMissing",
       Reasons(Reason::ArtifactMismatch)},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    const auto model = load(c.model);
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().reason(), c.reason) << model.error().to_string();
    EXPECT_EQ(load_reasons(model.error()), c.bits | Reason::ModelUnavailable);
  }
  EXPECT_TRUE(load({.slices = std::nullopt})) << "553 outputs have a default";
}

TEST(LoadModel, NamesWhatIsWrongWithTheFile) {
  const auto missing = load_model("/no/such/model.onnx");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::NotFound);
  EXPECT_EQ(load_reasons(missing.error()), Reasons(Reason::ModelUnavailable));

  const auto path = std::filesystem::temp_directory_path() / "ignis_load_model.onnx";
  const std::string bytes = SyntheticModel().bytes();
  for (const size_t size : {size_t{0}, size_t{5}, size_t{100}, bytes.size() / 2}) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    EXPECT_FALSE(load_model(path.string())) << size;
  }
  std::ofstream(path, std::ios::binary) << bytes;
  ModelOptions options;
  options.profile = "comma-38";
  EXPECT_EQ(load_model(path.string(), options).error().reason(), "ArtifactMismatch");
  options.profile = "other";
  EXPECT_EQ(load_model(path.string(), options).error().code(), ErrorCode::NotFound);
  options.profile = "comma-553";
  options.device = "quantum";
  EXPECT_FALSE(load_model(path.string(), options));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ignis::pipeline
