#include "ignis/engine/tuning.h"

#include "ignis/engine/program_key.h"

#include <gtest/gtest.h>

namespace ignis::engine {
namespace {

const std::string kDigest(64, 'a');

exec::TuningRecord record_of(const Target& target, FloatLevel level) {
  exec::TuningRecord record;
  record.machine = tuning_machine(target, level).value();
  record.version = generator_id();
  record.choices = {{"winograd", "off"}, {kDigest, "VECTOR(1,16,2); REORDER(0,1)"}};
  return record;
}

TEST(Tuning, AFileHoldsTheWholeRecord) {
  const exec::TuningRecord record = record_of(make_target(Isa::Avx2), FloatLevel::Finite);
  EXPECT_EQ(parse_tuning(format_tuning(record)).value(), record);
}

TEST(Tuning, ChoicesApplyToTheirMachine) {
  const Target target = make_target(Isa::Avx2);
  const auto choices =
      read_choices(record_of(target, FloatLevel::Finite), target, FloatLevel::Finite);
  ASSERT_TRUE(choices.has_value());
  EXPECT_EQ(choices->winograd, Choice::Off);
  EXPECT_FALSE(choices->chain.has_value());
  EXPECT_EQ(choices->actions_of.at(kDigest),
            (std::vector<std::string>{"VECTOR(1,16,2)", "REORDER(0,1)"}));
}

TEST(Tuning, AnyOtherTargetThreadsLevelOrVersionIsForeign) {
  const Target target = make_target(Isa::Avx2);
  const exec::TuningRecord record = record_of(target, FloatLevel::Finite);
  Target threads = target, caches = target;
  threads.threads = 3;
  caches.l2_bytes *= 2;
  for (const Target& other : {threads, caches, make_target(Isa::Sse2)}) {
    const auto choices = read_choices(record, other, FloatLevel::Finite);
    ASSERT_FALSE(choices.has_value());
    EXPECT_EQ(choices.error().reason(), "ForeignTuning");
  }
  EXPECT_EQ(read_choices(record, target, FloatLevel::Strict).error().reason(), "ForeignTuning");
  exec::TuningRecord old = record;
  old.version = "0.0.1";
  const auto choices = read_choices(old, target, FloatLevel::Finite);
  ASSERT_FALSE(choices.has_value());
  EXPECT_NE(choices.error().message().find("0.0.1"), std::string::npos);
}

TEST(Tuning, DamagedFilesAreRefusedByLine) {
  const std::string good = "ignis tuning 1\nmachine m\nversion v\n";
  EXPECT_TRUE(parse_tuning(good).has_value());
  for (const auto& [text, what] : std::vector<std::pair<std::string, std::string>>{
           {"", "does not say"},
           {"ignis tuning 2\n", "Line 1"},
           {good + "chain\n", "Line 4"},
           {good + "chain often\n", "Line 4"},
           {good + " off\n", "Line 4"},
           {good + std::string(64, 'g') + " VECTOR(1,2,3)\n", "Line 4"},
           {good + "abc VECTOR(1,2,3)\n", "Line 4"}}) {
    const auto record = parse_tuning(text);
    ASSERT_FALSE(record.has_value()) << text;
    EXPECT_EQ(record.error().reason(), "BadTuning");
    EXPECT_NE(record.error().message().find(what), std::string::npos) << record.error().message();
  }
}

TEST(Tuning, ActionsOfAnyTextAreSplitAndJoined) {
  for (const std::string text : {"", "A(1)", "A(1); B(2,3)", ";", "; ", "A; ; B"}) {
    const std::vector<std::string> actions = split_actions(text);
    EXPECT_EQ(split_actions(join_actions(actions)), actions) << text;
  }
}

}  // namespace
}  // namespace ignis::engine
