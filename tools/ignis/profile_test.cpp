#include "tools/ignis/profile.h"

#include <gtest/gtest.h>

namespace ignis::tools {
namespace {

// Two runs of three calls: times 1, 4, 2 and 3, 6, 2 (milliseconds).
ProfiledRuns two_runs() {
  const auto run = [](double a, double b, double c) {
    return ProfiledRun{{{"k00_conv_relu", "stem", 1e6, 100, 0, a * 1e-3},
                        {"k01_gemm", "head", 2e6, 200, 5e-3, b * 1e-3},
                        {"k02_conv_relu", "body", 3e6, 300, 12e-3, c * 1e-3}},
                       {a * 1e-4, 14e-3, 5e-4}};
  };
  return {run(1, 4, 2), run(3, 6, 2), run(2, 5, 2)};
}

TEST(Profile, TakesTheMedianOfEachCall) {
  const std::vector<CallInfo> calls = median_calls(two_runs());
  EXPECT_DOUBLE_EQ(calls[0].seconds, 2e-3);
  EXPECT_DOUBLE_EQ(calls[1].seconds, 5e-3);
  EXPECT_DOUBLE_EQ(calls[2].seconds, 2e-3);
}

TEST(Profile, TakesTheMedianOfEachStage) {
  const RunStages stages = median_stages(two_runs());
  EXPECT_DOUBLE_EQ(stages.submit_s, 2e-4);
  EXPECT_DOUBLE_EQ(stages.completion_s, 5e-4);
}

TEST(Profile, SumsUpByWhatIsAskedFor) {
  const std::vector<CallInfo> calls = median_calls(two_runs());
  const std::vector<ProfileRow> by_call = sum_by(calls, ProfileBy::Call);
  ASSERT_EQ(by_call.size(), 3u);
  EXPECT_EQ(by_call[0].name, "k01_gemm");
  EXPECT_EQ(by_call[1].layer, "stem");  // equal times keep the order of the run
  const std::vector<ProfileRow> by_op = sum_by(calls, ProfileBy::Op);
  ASSERT_EQ(by_op.size(), 2u);
  EXPECT_EQ(by_op[0].name, "gemm");
  EXPECT_EQ(by_op[1].name, "conv_relu");
  EXPECT_EQ(by_op[1].calls, 2);
  EXPECT_DOUBLE_EQ(by_op[1].seconds, 4e-3);
  EXPECT_DOUBLE_EQ(by_op[1].flops, 4e6);
  EXPECT_EQ(sum_by(calls, ProfileBy::Layer)[2].name, "body");
  EXPECT_EQ(sum_by({{"k03", "", 0, 8, 0, 1}}, ProfileBy::Op)[0].name, "copy");
}

TEST(Profile, RowsKnowWhatBoundsThem) {
  const Roofline roofline{2, 100e9, {{"L2", 1'000'000, 200e9}, {"memory", INT64_MAX, 10e9}}};
  // 1 GFLOP over little data; 2 MB of copying; 100 kB of copying.
  const std::vector<CallInfo> calls = {
      {"k01_conv", "a", 1e9, 1e5, 0, 20e-3, "VECTOR(0,16,2)", {"tile of 6"}},
      {"k02", "b", 0, 2e6, 20e-3, 400e-6, ""},
      {"k02", "c", 0, 1e5, 21e-3, 1e-6, ""}};
  const std::vector<ProfileRow> rows = sum_by(calls, ProfileBy::Kernel, &roofline);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].bound, "fma");
  EXPECT_DOUBLE_EQ(rows[0].least_s, 10e-3);
  EXPECT_EQ(rows[0].schedule, "VECTOR(0,16,2)");
  EXPECT_EQ(rows[0].why, Notes{"tile of 6"});
  EXPECT_TRUE(sum_by(calls, ProfileBy::Layer)[0].why.empty()) << "of a single call or kernel only";
  EXPECT_EQ(rows[1].bound, "memory") << "of its slowest call";
  EXPECT_DOUBLE_EQ(rows[1].least_s, 200e-6 + 0.5e-6);
}

TEST(Profile, TheRooflineIsMeasured) {
  Target target = detect_host_target();
  target.threads = 2;
  const Roofline roofline = measure_roofline(target);
  EXPECT_EQ(roofline.threads, 2);
  EXPECT_GT(roofline.flops_per_s, 0);
  ASSERT_FALSE(roofline.levels.empty());
  EXPECT_EQ(roofline.levels.back().name, "memory");
  for (const Roofline::Level& level : roofline.levels)
    EXPECT_GT(level.bytes_per_s, 0) << level.name;
}

TEST(Profile, TheTraceHoldsStagesAndCallsInTime) {
  StageTimes stages;
  stages.import_s = 0.5;
  stages.compile_s = 0.25;
  const Json trace = make_trace(stages, two_runs());
  const Json& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 2u + 3 * 6u);
  EXPECT_EQ(events[0]["name"], "import");
  EXPECT_EQ(events[1]["ts"], 500000.0);
  EXPECT_EQ(events[2]["name"], "run 0");
  EXPECT_EQ(events[2]["ts"], 750000.0);
  // The last call begins at 12 ms and takes 2; 0.1 before the first and 0.5 after the last.
  EXPECT_DOUBLE_EQ(events[2]["dur"].get<double>(), 14600.0);
  EXPECT_EQ(events[3]["name"], "submit");
  EXPECT_DOUBLE_EQ(events[3]["dur"].get<double>(), 100.0);
  EXPECT_DOUBLE_EQ(events[5]["ts"].get<double>(), 755100.0);
  EXPECT_EQ(events[5]["args"]["layer"], "head");
  EXPECT_EQ(events[7]["name"], "completion");
  EXPECT_DOUBLE_EQ(events[7]["ts"].get<double>(), 764100.0);
  double end = 0;  // runs follow one another
  for (const Json& event : events) {
    if (event["cat"] != "run") continue;
    EXPECT_GE(event["ts"].get<double>(), end - 1e-6);
    end = event["ts"].get<double>() + event["dur"].get<double>();
  }
}

}  // namespace
}  // namespace ignis::tools
