#include "ignis/runtime/device_spec.h"

#include <gtest/gtest.h>

namespace ignis::runtime {
namespace {

struct Row {
  const char* text;
  DeviceSpec spec;
  const char* canonical;
};

TEST(DeviceSpec, ReadsEveryPart) {
  const Row rows[] = {
      {"cpu", {"", "cpu", 0, "", ""}, "cpu"},
      {"CPU", {"", "cpu", 0, "", ""}, "cpu"},
      {"cpu:0", {"", "cpu", 0, "", ""}, "cpu"},
      {"cpu:interp", {"", "cpu", 0, "interp", ""}, "cpu:interp"},
      {"Cpu:LLVM:Avx2", {"", "cpu", 0, "llvm", "avx2"}, "cpu:llvm:avx2"},
      {"cpu:llvm:sse2", {"", "cpu", 0, "llvm", "sse2"}, "cpu:llvm:sse2"},
      {"cpu:c", {"", "cpu", 0, "c", ""}, "cpu:c"},
      {"cuda:1", {"", "cuda", 1, "", ""}, "cuda:1"},
      {"cuda:007:nvptx", {"", "cuda", 7, "nvptx", ""}, "cuda:7:nvptx"},
      {"usb+amd", {"usb", "amd", 0, "", ""}, "usb+amd"},
      {"USB+AMD:2:LLVM:gfx1100", {"usb", "amd", 2, "llvm", "gfx1100"}, "usb+amd:2:llvm:gfx1100"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    const Result<DeviceSpec> spec = parse_device_spec(row.text);
    ASSERT_TRUE(spec) << spec.error().to_string();
    EXPECT_EQ(*spec, row.spec);
    EXPECT_EQ(spec->to_string(), row.canonical);
    EXPECT_EQ(*parse_device_spec(row.canonical), row.spec);
  }
}

TEST(DeviceSpec, RefusesWhatDoesNotFitAndSaysWhat) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "names no kind"},
      {":1", "names no kind"},
      {"+cpu", "no interface"},
      {"usb+", "names no kind"},
      {"a+b+c", "'b+c'"},
      {"1", "'1'"},
      {"cpu:", "part ''"},
      {"cpu::avx2", "part ''"},
      {"cpu:llvm:avx2:more", "'more' too many"},
      {"cpu:0:llvm:avx2:more", "'more' too many"},
      {"cpu:99999999999", "too large"},
      {"cpu:ll vm", "'ll vm'"},
      {"cp\xc3\xbc", "no name"},
  };
  for (const auto& [text, expected] : rows) {
    SCOPED_TRACE(text);
    const Result<DeviceSpec> spec = parse_device_spec(text);
    ASSERT_FALSE(spec);
    EXPECT_EQ(spec.error().code(), ErrorCode::InvalidArgument);
    EXPECT_NE(spec.error().message().find(expected), std::string::npos) << spec.error().message();
  }
}

TEST(DeviceSpec, ReadsACommaListInOrder) {
  const auto specs = parse_device_list("cuda:1,cpu:c");
  ASSERT_TRUE(specs);
  ASSERT_EQ(specs->size(), 2u);
  EXPECT_EQ((*specs)[0].to_string(), "cuda:1");
  EXPECT_EQ((*specs)[1].to_string(), "cpu:c");
  EXPECT_FALSE(parse_device_list("cpu,"));
  EXPECT_FALSE(parse_device_list(""));
}

}  // namespace
}  // namespace ignis::runtime
