// The genuine cabin model on the synthetic cabin: it tells apart what the scene's truth says (README.md).

#include "ignis/pipeline/driver_monitoring/build/models.h"

#include "tools/video/open_source.h"
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

namespace ignis {
namespace {

using pipeline::DriverData;
using pipeline::Shown;

std::string model_path() {
  const char* shared = std::getenv("IGNIS_SHARED");
  return (shared != nullptr ? std::string(shared) : std::string(IGNIS_SOURCE_DIR) + "/../shared") +
         "/models/dmonitoring_model_0.8.9.onnx";
}

/// What the model says is seen, by the thresholds of the specification's section 8.3; a blink is more likely than not.
Shown seen(const DriverData& driver) {
  if (driver.face_prob <= 0.7F) return Shown::Empty;
  if (driver.sunglasses_prob >= 0.9F) return Shown::Glasses;
  const float blink = (driver.left_blink_prob + driver.right_blink_prob) / 2;
  return blink > 0.5F ? Shown::EyesClosed : Shown::Front;
}

struct Scene {
  const char* size;
  const char* side;
};

class CabinClip : public testing::TestWithParam<Scene> {};

TEST_P(CabinClip, TellsTheSpellsApart) {
  if (!std::filesystem::exists(model_path())) {
    GTEST_SKIP() << "SKIPPED: no model at " << model_path()
                 << "; set IGNIS_SHARED to the folder that holds models/.";
  }
  const Scene& scene = GetParam();
  const bool is_left = std::string(scene.side) == "left";
  // Every fourth frame of the scenario's 20 s.
  const auto source = tools::open_synthetic(std::string("synthetic:drive,pace=fast,size=") +
                                            scene.size + ",side=" + scene.side);
  ASSERT_TRUE(source) << source.error().to_string();
  pipeline::ModelOptions options;
  options.side = is_left ? pipeline::DriverSide::Left : pipeline::DriverSide::Right;
  auto model = pipeline::load_model(model_path(), options);
  ASSERT_TRUE(model) << model.error().to_string();

  struct Count {
    int right = 0, all = 0;
  };
  std::map<std::pair<int64_t, std::string>, Count> spells;
  bool is_bound = false;
  for (int i = 0; i < 400; ++i) {
    const auto frame = (*source)->receive(std::chrono::seconds(5));
    ASSERT_TRUE(frame) << frame.error().to_string();
    if (i % 4 != 0) continue;
    if (!std::exchange(is_bound, true)) {
      const auto camera = pipeline::find_camera(pipeline::known_cameras(), frame->layout);
      ASSERT_TRUE(camera) << camera.error().to_string();
      const Status bound = (*model)->bind(frame->layout, *camera);
      ASSERT_TRUE(bound) << bound.error().to_string();
    }
    const auto times = (*model)->run(*frame, {0, 0, 0},
                                     std::chrono::steady_clock::now() + std::chrono::seconds(30));
    ASSERT_TRUE(times) << times.error().to_string();
    const pipeline::Decoded decoded = (*model)->decode();
    ASSERT_TRUE(decoded.reasons.is_empty());
    const pipeline::SyntheticTruth truth = (*source)->truth(frame->info.frame_id);
    Count& count = spells[{truth.spell_index, std::string(to_string(truth.shown))}];
    ++count.all;
    const DriverData& driver = is_left ? decoded.prediction.left : decoded.prediction.right;
    count.right += seen(driver) == truth.shown ? 1 : 0;
  }
  EXPECT_EQ(spells.size(), 5u);
  for (const auto& [spell, count] : spells) {
    EXPECT_GE(count.right, 0.95 * count.all)
        << "spell " << spell.first << ", " << spell.second << ": " << count.right << " of "
        << count.all << " frames";
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, CabinClip,
                         testing::Values(Scene{"1928x1208", "left"}, Scene{"1928x1208", "right"},
                                         Scene{"1344x760", "left"}, Scene{"1344x760", "right"}),
                         [](const testing::TestParamInfo<Scene>& scene) {
                           return std::string(scene.param.size).substr(0, 4) + scene.param.side;
                         });

}  // namespace
}  // namespace ignis
