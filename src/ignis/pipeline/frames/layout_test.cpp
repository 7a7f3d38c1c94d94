#include "ignis/pipeline/frames/layout.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace ignis::pipeline {
namespace {

/// Wide enough for any product of two 64-bit numbers.
__extension__ typedef __int128 Wide;

struct Row {
  int width_px, height_px;
  int64_t stride, y_height, uv_height, size_bytes, uv_offset, luma_bytes, road_copy_bytes;
};

// The table of section 2.1 of the driver-monitoring specification.
const Row kTable[] = {
    {1928, 1208, 2048, 1216, 608, 4804608, 2490368, 2473984, 3735552},
    {1344, 760, 1408, 768, 384, 2428928, 1081344, 1070080, 1622016},
    {640, 480, 640, 480, 240, 1007616, 307200, 307200, 460800},
    {1280, 720, 1280, 736, 368, 2220032, 942080, 921600, 1413120},
    {1920, 1080, 1920, 1088, 544, 4202496, 2088960, 2073600, 3133440},
    {2688, 1520, 2688, 1536, 768, 7794688, 4128768, 4085760, 6193152},
};

TEST(Nv12Layout, IsTheTableOfTheSpecification) {
  for (const Row& row : kTable) {
    SCOPED_TRACE(std::to_string(row.width_px) + "x" + std::to_string(row.height_px));
    const FrameLayout layout = nv12_layout(row.width_px, row.height_px).value();
    EXPECT_EQ(layout.format, PixelFormat::Nv12);
    EXPECT_EQ(layout.width_px, row.width_px);
    EXPECT_EQ(layout.height_px, row.height_px);
    EXPECT_EQ(layout.y_stride, row.stride);
    EXPECT_EQ(layout.uv_stride, row.stride);
    EXPECT_EQ(layout.u_offset, row.uv_offset);
    EXPECT_EQ(layout.u_offset, row.stride * row.y_height);
    EXPECT_EQ(layout.v_offset, row.uv_offset + 1);
    EXPECT_EQ(layout.size_bytes, row.size_bytes);
    EXPECT_EQ(luma_bytes(layout), static_cast<uint64_t>(row.luma_bytes));
    EXPECT_EQ(road_copy_bytes(layout), static_cast<uint64_t>(row.road_copy_bytes));
    EXPECT_EQ(row.road_copy_bytes, row.stride * (row.y_height + row.uv_height));
    EXPECT_TRUE(check_layout(layout, static_cast<uint64_t>(row.size_bytes)));
    EXPECT_EQ(check_layout(layout, static_cast<uint64_t>(row.size_bytes) - 1).error().reason(),
              "FrameLength");
  }
}

TEST(Nv12Layout, RefusesSizesThatAreOddOrOutOfBounds) {
  for (const auto& [w, h] : std::vector<std::pair<int, int>>{{0, 0},
                                                             {-2, 4},
                                                             {4, -2},
                                                             {1, 2},
                                                             {2, 1},
                                                             {641, 480},
                                                             {640, 481},
                                                             {4098, 2},
                                                             {2, 3074},
                                                             {std::numeric_limits<int>::min(), 2},
                                                             {2147483646, 2147483646}}) {
    SCOPED_TRACE(std::to_string(w) + "x" + std::to_string(h));
    ASSERT_FALSE(nv12_layout(w, h));
    EXPECT_EQ(nv12_layout(w, h).error().reason(), "FrameSize");
    EXPECT_EQ(nv12_layout(w, h).error().code(), ErrorCode::InvalidArgument);
    EXPECT_FALSE(i420_layout(w, h));
    EXPECT_FALSE(tight_nv12_layout(w, h));
  }
  EXPECT_TRUE(nv12_layout(2, 2));
  EXPECT_TRUE(nv12_layout(4096, 3072));
}

TEST(TightLayouts, HaveNoPadding) {
  const FrameLayout i420 = i420_layout(6, 4).value();
  EXPECT_EQ(i420.y_stride, 6);
  EXPECT_EQ(i420.uv_stride, 3);
  EXPECT_EQ(i420.u_offset, 24);
  EXPECT_EQ(i420.v_offset, 30);
  EXPECT_EQ(i420.size_bytes, 36);
  EXPECT_TRUE(check_layout(i420, 36));
  EXPECT_FALSE(check_layout(i420, 35));
  EXPECT_EQ(road_copy_bytes(i420), 0u);
  const FrameLayout nv12 = tight_nv12_layout(6, 4).value();
  EXPECT_EQ(nv12.u_offset, 24);
  EXPECT_EQ(nv12.size_bytes, 36);
  EXPECT_TRUE(check_layout(nv12, 36));
  EXPECT_EQ(road_copy_bytes(nv12), 0u);
}

TEST(CheckLayout, RefusesWhatDoesNotFit) {
  const FrameLayout good = nv12_layout(640, 480).value();
  const uint64_t bytes = static_cast<uint64_t>(good.size_bytes);
  const auto reason = [&](auto change) {
    FrameLayout layout = good;
    change(layout);
    const Status status = check_layout(layout, bytes);
    return status ? std::string() : status.error().reason();
  };
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(reason([](FrameLayout&) {}), "");
  EXPECT_EQ(reason([](FrameLayout& l) { l.format = static_cast<PixelFormat>(0); }), "FrameSize");
  EXPECT_EQ(reason([](FrameLayout& l) { l.format = static_cast<PixelFormat>(77); }), "FrameSize");
  EXPECT_EQ(reason([](FrameLayout& l) { l.range = static_cast<ColorRange>(2); }), "FrameSize");
  EXPECT_EQ(reason([](FrameLayout& l) { l.width_px = 639; }), "FrameSize");
  EXPECT_EQ(reason([](FrameLayout& l) { l.height_px = 4000; }), "FrameSize");
  EXPECT_EQ(reason([](FrameLayout& l) { l.y_stride = 639; }), "FrameLayout");
  EXPECT_EQ(reason([](FrameLayout& l) { l.y_stride = kHuge; }), "FrameLayout");
  EXPECT_EQ(reason([](FrameLayout& l) { l.y_stride = -640; }), "FrameLayout");
  EXPECT_EQ(reason([](FrameLayout& l) { l.uv_stride = 0; }), "FrameLayout");
  EXPECT_EQ(reason([](FrameLayout& l) { l.u_offset = 640 * 480 - 1, l.v_offset = 640 * 480; }),
            "FrameLayout");
  EXPECT_EQ(reason([](FrameLayout& l) { l.u_offset = -1, l.v_offset = 0; }), "FrameLayout");
  EXPECT_EQ(reason([](FrameLayout& l) { l.u_offset = kHuge - 1, l.v_offset = kHuge; }),
            "FrameLayout");
  EXPECT_EQ(reason([](FrameLayout& l) { l.v_offset += 1; }), "FrameLayout");
  EXPECT_EQ(reason([](FrameLayout& l) { l.size_bytes = 640 * 480; }), "FrameLayout");
  EXPECT_EQ(reason([](FrameLayout& l) { l.size_bytes = 0; }), "FrameLength");
  EXPECT_EQ(reason([](FrameLayout& l) { l.size_bytes = -1; }), "FrameLength");
  EXPECT_EQ(reason([](FrameLayout& l) { l.size_bytes = kHuge; }), "FrameLength");
  FrameLayout i420 = i420_layout(640, 480).value();
  i420.v_offset = i420.u_offset + 1;
  EXPECT_EQ(check_layout(i420, bytes).error().reason(), "FrameLayout");
}

// Whatever the numbers are: a layout that is let through keeps every pixel inside its buffer.
TEST(CheckLayout, LetsNothingOutOfTheBuffer) {
  std::mt19937_64 rng(20240611);
  const auto number = [&]() -> int64_t {
    switch (rng() % 5) {
      case 0: return static_cast<int64_t>(rng());
      case 1: return static_cast<int64_t>(rng() % 70000) - 100;
      case 2: return std::numeric_limits<int64_t>::max() - static_cast<int64_t>(rng() % 4);
      case 3: return static_cast<int64_t>(rng() % 64);
      default: return static_cast<int64_t>(rng() % 1000000);
    }
  };
  int let_through = 0;
  for (int i = 0; i < 200000; ++i) {
    FrameLayout layout =
        rng() % 2 == 0 ? tight_nv12_layout(64, 32).value() : i420_layout(64, 32).value();
    for (int change = static_cast<int>(rng() % 3); change >= 0; --change) {
      switch (rng() % 7) {
        case 0: layout.width_px = static_cast<int>(number()); break;
        case 1: layout.height_px = static_cast<int>(number()); break;
        case 2: layout.y_stride = number(); break;
        case 3: layout.uv_stride = number(); break;
        case 4:
          layout.u_offset = number(),
          layout.v_offset =
              layout.u_offset < 1 << 30 ? layout.u_offset + (rng() % 2 ? 1 : 512) : number();
          break;
        case 5: layout.size_bytes = number(); break;
        default: break;
      }
    }
    const uint64_t buffer_bytes = static_cast<uint64_t>(number());
    if (!check_layout(layout, buffer_bytes)) continue;
    ++let_through;
    const Wide w = layout.width_px, h = layout.height_px;
    ASSERT_GE(w, 2);
    ASSERT_GE(h, 2);
    const Wide last_luma = layout.y_stride * (h - 1) + w - 1;
    const bool is_nv12 = layout.format == PixelFormat::Nv12;
    const Wide last_chroma = layout.uv_stride * (h / 2 - 1) + (is_nv12 ? w - 2 : w / 2 - 1);
    for (const Wide byte :
         {last_luma, layout.u_offset + last_chroma, layout.v_offset + last_chroma}) {
      ASSERT_TRUE(byte >= 0 && byte < static_cast<Wide>(buffer_bytes)) << to_string(layout);
    }
  }
  EXPECT_GT(let_through, 1000);
}

TEST(PixelFormats, AreReadAsPeopleWriteThem) {
  EXPECT_EQ(parse_pixel_format("NV12").value(), PixelFormat::Nv12);
  EXPECT_EQ(parse_pixel_format("yuv420p").value(), PixelFormat::I420);
  EXPECT_EQ(parse_pixel_format("rgb24").error().reason(), "FrameFormat");
  EXPECT_EQ(to_string(nv12_layout(640, 480).value()), "nv12 640x480, stride 640");
}

}  // namespace
}  // namespace ignis::pipeline
