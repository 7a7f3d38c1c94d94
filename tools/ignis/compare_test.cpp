#include "tools/ignis/compare.h"

#include "tools/ignis/exit_code.h"
#include "tools/ignis/percentiles.h"
#include "tools/ignis/terminal.h"
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ignis::tools {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

HostTensor tensor(const std::vector<double>& v, DType dtype = DType::Float32) {
  HostTensor t = HostTensor::zeros(dtype, {static_cast<int64_t>(v.size())});
  for (size_t i = 0; i < v.size(); ++i) store_element(t, static_cast<int64_t>(i), v[i]);
  return t;
}

TEST(Compare, Flags) {
  EXPECT_EQ(inspect_values(tensor({0, 0})).to_string(), "all zero");
  EXPECT_EQ(inspect_values(tensor({2, 2})).to_string(), "constant");
  EXPECT_EQ(inspect_values(tensor({kNan, 1, kInf, kNan})).to_string(), "NaN 2, Inf 1");
  EXPECT_EQ(inspect_values(tensor({0})).to_string(), "");
  const Flags flags = inspect_values(tensor({-1, 2, kNan, 5}));
  EXPECT_EQ(flags.min, -1);
  EXPECT_EQ(flags.max, 5);
  EXPECT_EQ(flags.mean, 2);
}

TEST(Compare, NamedValues) {
  const NamedValues v = NamedValues::parse({"1e-3", "a:b:0.5"}, "--rtol").value();
  EXPECT_EQ(v.value("x", 7), 1e-3);
  EXPECT_EQ(v.value("a:b", 7), 0.5);
  EXPECT_EQ(NamedValues().value("x", 7), 7);
  for (const char* bad : {"", "x", "x:", "a:-1", "1e-3x"}) {
    EXPECT_EQ(exit_code(NamedValues::parse({bad}, "--rtol").error()), Exit::Usage) << bad;
  }
}

TEST(Compare, IndexText) {
  EXPECT_EQ(index_text(7, {2, 3, 2}), "[1, 0, 1]");
  EXPECT_EQ(index_text(0, {}), "[]");
}

TEST(Percentiles, NearestRank) {
  std::vector<double> sorted;
  for (int i = 1; i <= 10; ++i) sorted.push_back(i);
  EXPECT_EQ(percentile(sorted, 0.5), 5);
  EXPECT_EQ(percentile(sorted, 0.9), 9);
  EXPECT_EQ(percentile(sorted, 0.99), 10);
  EXPECT_EQ(percentile({3}, 0.5), 3);
  const LatencyStats stats = latency_stats({4, 2});
  EXPECT_EQ(stats.mean, 3);
  EXPECT_NEAR(stats.deviation, std::sqrt(2.0), 1e-12);
  EXPECT_EQ(stats.max, 4);
  EXPECT_EQ(latency_stats({}).count, 0u);
  EXPECT_EQ(latency_stats({1, 1, 1, 1, 1, 1, 2, 2, 2}).trend, 2);
}

TEST(ExitCodes, FollowTheErrorsReasonAndCode) {
  EXPECT_EQ(exit_code(usage_error("x")), Exit::Usage);
  EXPECT_EQ(exit_code(as_file(Error(ErrorCode::InvalidArgument, "x"))), Exit::File);
  EXPECT_EQ(exit_code(as_model(Error(ErrorCode::NotFound, "x"))), Exit::Model);
  EXPECT_EQ(exit_code(as_device(Error(ErrorCode::NotFound, "x"))), Exit::Device);
  EXPECT_EQ(exit_code(as_model(Error(ErrorCode::OutOfMemory, "x"))), Exit::Memory);
  EXPECT_EQ(exit_code(as_model(Error(ErrorCode::Timeout, "x"))), Exit::Device);
  EXPECT_EQ(exit_code(Error(ErrorCode::Internal, "x")), Exit::Internal);
  EXPECT_EQ(exit_code(Error(ErrorCode::Unsupported, "x")), Exit::Model);
}

TEST(Terminal, TableAlignsColumns) {
  choose_color(ColorMode::Never);
  Table table({"name", "ms"});
  table.add({"a", "1.5"});
  table.add({"conv_µ", "10"});
  EXPECT_EQ(table.to_string(), "name     ms\na       1.5\nconv_µ   10\n");
  EXPECT_EQ(format_seconds(0.0123), "12.300 ms");
  EXPECT_EQ(format_bytes(2048), "2.0 KiB");
}

}  // namespace
}  // namespace ignis::tools
