// A bounded run of npy_fuzz.cpp: damaged copies of good files. Passing is not crashing, also under the sanitizers.
#include "tests/fuzz/mutate.h"
#include "tools/io/image.h"
#include "tools/io/npy.h"
#include <gtest/gtest.h>

namespace ignis {
namespace {

std::vector<std::vector<std::byte>> good_files() {
  std::vector<std::vector<std::byte>> files;
  const HostTensor small =
      HostTensor::from(DType::Float32, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  const HostTensor bytes = HostTensor::from(DType::UInt8, {5}, std::vector<int>{1, 2, 3, 4, 5});
  files.push_back(tools::format_npy(small));
  files.push_back(tools::format_npz({{"a", small}, {"b", bytes}}).value());
  tools::Image image;
  image.width_px = 4;
  image.height_px = 4;
  image.rgb.assign(48, 100);
  files.push_back(tools::format_png(image).value());
  files.push_back(tools::format_ppm(image));
  // TensorProto: dims {2}, data_type FLOAT, raw_data of 8 bytes.
  const unsigned char proto[] = {0x08, 0x02, 0x10, 0x01, 0x4a, 0x08, 0,
                                 0,    0x80, 0x3f, 0,    0,    0,    0x40};
  const auto view = std::as_bytes(std::span(proto));
  files.emplace_back(view.begin(), view.end());
  return files;
}

TEST(NpyFuzz, DamagedFilesAreRefusedOrReadButNeverCrash) {
  RecordProperty("seed", std::to_string(fuzz::test_seed()));
  SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(fuzz::test_seed()));
  std::mt19937_64 rng(fuzz::test_seed());
  const auto files = good_files();
  for (int i = 0; i < 40000; ++i) {
    const auto file = fuzz::mutate(files[static_cast<size_t>(i) % files.size()], rng);
    LLVMFuzzerTestOneInput(reinterpret_cast<const unsigned char*>(file.data()), file.size());
  }
}

}  // namespace
}  // namespace ignis
