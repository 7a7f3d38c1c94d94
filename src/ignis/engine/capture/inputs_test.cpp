// Capture spec, section 3.

#include "ignis/engine/capture/inputs.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

namespace ignis::engine {
namespace {

using exec::VariableBinding;

constexpr exec::InputDevice kDevice[] = {{"G", 1}};

/// A tensor object and storage of its own for each number.
TensorArgument tensor(uint64_t number) {
  TensorArgument made;
  made.tensor = number;
  made.base = 1000 + number;
  made.description.devices = kDevice;
  made.description.size_bytes.value = 4;
  made.description.base_bytes = 4;
  return made;
}
const TensorArgument kA = tensor(1), kB = tensor(2), kC = tensor(3);

TensorArgument view_of(const TensorArgument& base, uint64_t number, int64_t offset_bytes) {
  TensorArgument made = base;
  made.tensor = number;
  made.description.offset_bytes.value = offset_bytes;
  return made;
}

/// Elements live as long as the test.
Container list(const std::vector<Element>& elements) { return {false, elements}; }
Container map(const std::vector<Element>& elements) { return {true, elements}; }

std::vector<std::string> names(const InputCollector& collector) {
  std::vector<std::string> result;
  for (const auto& input : collector.inputs()) result.emplace_back(input.name);
  return result;
}
std::vector<uint64_t> tensors(const InputCollector& collector) {
  std::vector<uint64_t> result;
  for (const auto& input : collector.tensors()) result.push_back(input.tensor);
  return result;
}
using Names = std::vector<std::string>;
using Tensors = std::vector<uint64_t>;

void expect_reason(const Status& status, const std::string& reason) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(status.error().reason(), reason) << status.error().to_string();
}

TEST(CaptureInputs, IN1_PositionsAreNames) {
  InputCollector collector;
  ASSERT_TRUE(collector.collect(std::vector<ArgumentValue>{kA, kB}));
  EXPECT_EQ(tensors(collector), (Tensors{1, 2}));
  EXPECT_EQ(names(collector), (Names{"0", "1"}));
}

TEST(CaptureInputs, IN2_KeywordsComeInTheOrderOfNames) {
  InputCollector collector;
  ASSERT_TRUE(collector.collect({}, std::vector<KeywordArgument>{{"second", kB}, {"first", kA}}));
  EXPECT_EQ(names(collector), (Names{"first", "second"}));
  EXPECT_EQ(tensors(collector), (Tensors{1, 2}));
  ASSERT_TRUE(collector.collect({}, std::vector<KeywordArgument>{{"first", kA}, {"second", kB}}));
  EXPECT_EQ(names(collector), (Names{"first", "second"}));
  EXPECT_EQ(tensors(collector), (Tensors{1, 2}));
}

TEST(CaptureInputs, IN3_ElementsOfContainersHaveNames) {
  InputCollector collector;
  const std::vector<Element> elements = {{{}, kB}};
  ASSERT_TRUE(collector.collect(std::vector<ArgumentValue>{kA, list(elements)}));
  EXPECT_EQ(tensors(collector), (Tensors{1, 2}));
  EXPECT_EQ(names(collector), (Names{"0", "1.0"}));
}

TEST(CaptureInputs, IN4_OneTensorTwiceIsADuplicate) {
  InputCollector collector;
  expect_reason(collector.collect(std::vector<ArgumentValue>{kA, kA}), "DuplicateInput");
  EXPECT_TRUE(collector.inputs().empty());
}

TEST(CaptureInputs, IN5_ViewsOfOneBaseAreDuplicates) {
  InputCollector collector;
  expect_reason(
      collector.collect(std::vector<ArgumentValue>{view_of(kA, 10, 0), view_of(kA, 11, 8)}),
      "DuplicateInput");
}

TEST(CaptureInputs, IN6_AContainersKnownTensorIsSkipped) {
  InputCollector collector;
  const std::vector<Element> elements = {{{}, kA}};
  ASSERT_TRUE(collector.collect(std::vector<ArgumentValue>{kA, list(elements)}));
  EXPECT_EQ(names(collector), (Names{"0"}));
  // Another object of the same storage is not skipped.
  const std::vector<Element> other = {{{}, view_of(kA, 10, 0)}};
  expect_reason(collector.collect(std::vector<ArgumentValue>{kA, list(other)}), "DuplicateInput");
}

TEST(CaptureInputs, IN7_DeeperContainersAreNotSearched) {
  InputCollector collector;
  const std::vector<Element> elements = {{{}, DeeperContainer{}}};
  ASSERT_TRUE(collector.collect(std::vector<ArgumentValue>{kA, list(elements)}));
  EXPECT_EQ(names(collector), (Names{"0"}));
}

TEST(CaptureInputs, IN8_AScalarConstantIsVirtual) {
  int realized = 0;
  InputRules rules;
  rules.realize = [&](TensorArgument& input) {
    ++realized;
    input.is_realized = true;
    return Status::ok();
  };
  InputCollector collector(rules);
  TensorArgument weak = tensor(7);
  weak.description.dtype = DType::WeakFloat;
  TensorArgument nowhere = tensor(8);
  nowhere.description.devices = {};
  for (TensorArgument constant : {weak, nowhere}) {
    for (const bool is_realized : {false, true}) {
      constant.is_realized = is_realized;
      expect_reason(collector.collect(std::vector<ArgumentValue>{kA, constant}), "VirtualInput");
      const std::vector<Element> elements = {{{}, constant}};
      expect_reason(collector.collect(std::vector<ArgumentValue>{kA, list(elements)}),
                    "VirtualInput");
    }
  }
  EXPECT_EQ(realized, 0);
}

TEST(CaptureInputs, IN9_InputsOfAnySizeAreRealizedAndTaken) {
  InputRules rules;
  std::vector<uint64_t> realized;
  rules.realize = [&](TensorArgument& input) {
    realized.push_back(input.tensor);
    input.is_realized = true;
    input.base = 500 + input.tensor;
    return Status::ok();
  };
  InputCollector collector(rules);
  TensorArgument one = tensor(1), three = tensor(2);
  three.description.size_bytes.value = 12;
  one.is_realized = false;
  for (int call = 0; call < 5; ++call) {
    ASSERT_TRUE(collector.collect(std::vector<ArgumentValue>{one, three}));
    EXPECT_EQ(collector.tensors()[0].base, 501U);
    EXPECT_EQ(collector.tensors()[1].base, 1002U);
    EXPECT_EQ(collector.inputs()[1].size_bytes.value, 12);
  }
  EXPECT_EQ(realized, (std::vector<uint64_t>{1, 1, 1, 1, 1}));
  rules.realize = [](TensorArgument&) {
    return Status(Error(ErrorCode::OutOfMemory, "The heap is full."));
  };
  const Status status = InputCollector(rules).collect(std::vector<ArgumentValue>{one, three});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::OutOfMemory);
  expect_reason(InputCollector().collect(std::vector<ArgumentValue>{one}), "VirtualInput");
}

TEST(CaptureInputs, IN10_TwoValuesOfAVariableAreAConflict) {
  InputCollector collector;
  const std::array<VariableBinding, 1> two = {{{"i", 2, 1, 10}}}, three = {{{"i", 3, 1, 10}}},
                                       other_range = {{{"i", 2, 1, 11}}};
  const std::array<VariableBinding, 2> more = {{{"z", 1, 0, 1}, {"a", 0, 0, 1}}};
  TensorArgument a = kA, b = kB;
  a.variables = two;
  b.variables = three;
  expect_reason(collector.collect(std::vector<ArgumentValue>{a, b}), "VariableConflict");
  b.variables = other_range;
  expect_reason(collector.collect(std::vector<ArgumentValue>{a, b}), "VariableConflict");
  expect_reason(collector.collect(std::vector<ArgumentValue>{a, three[0]}), "VariableConflict");
  b.variables = more;
  ASSERT_TRUE(collector.collect(std::vector<ArgumentValue>{a, b, two[0]}));
  ASSERT_EQ(collector.variables().size(), 3U);
  EXPECT_EQ(collector.variables()[0].name, "a");
  EXPECT_EQ(collector.variables()[1].name, "i");
  EXPECT_EQ(collector.variables()[1].value, 2);
  EXPECT_EQ(collector.variables()[2].name, "z");
}

TEST(CaptureInputs, IN11_ContainersOfKeywordsAreNotSwapped) {
  InputCollector collector;
  const std::vector<Element> a = {{{}, kA}}, b = {{{}, kB}};
  ASSERT_TRUE(collector.collect({}, std::vector<KeywordArgument>{{"x", list(a)}, {"y", list(b)}}));
  EXPECT_EQ(names(collector), (Names{"x.0", "y.0"}));
  const exec::Signature signature = collector.make_signature();
  const std::vector<Element> a2 = {{{}, tensor(21)}}, b2 = {{{}, tensor(22)}};
  ASSERT_TRUE(
      collector.collect({}, std::vector<KeywordArgument>{{"y", list(b2)}, {"x", list(a2)}}));
  EXPECT_EQ(names(collector), (Names{"x.0", "y.0"}));
  EXPECT_EQ(tensors(collector), (Tensors{21, 22}));
  EXPECT_TRUE(signature.check(collector.inputs(), collector.variables()));
}

TEST(CaptureInputs, IN12_AnotherDivisionIntoContainersIsAMismatch) {
  InputCollector collector;
  const std::vector<Element> ab = {{{}, kA}, {{}, kB}}, c = {{{}, kC}}, a = {{{}, kA}},
                             bc = {{{}, kB}, {{}, kC}};
  ASSERT_TRUE(collector.collect(std::vector<ArgumentValue>{list(ab), list(c)}));
  EXPECT_EQ(names(collector), (Names{"0.0", "0.1", "1.0"}));
  const exec::Signature signature = collector.make_signature();
  ASSERT_TRUE(collector.collect(std::vector<ArgumentValue>{list(a), list(bc)}));
  EXPECT_EQ(tensors(collector), (Tensors{1, 2, 3}));
  expect_reason(signature.check(collector.inputs()), "SignatureMismatch");
}

TEST(CaptureInputs, MapsComeInTheOrderOfKeys) {
  InputCollector collector;
  const std::vector<Element> elements = {{"z", kA}, {"b", kB}, {"m", HostScalar{}}};
  const std::vector<Element> turned = {{"b", kB}, {"m", HostScalar{}}, {"z", kA}};
  for (const auto& some : {elements, turned}) {
    ASSERT_TRUE(collector.collect(std::vector<ArgumentValue>{map(some), kC}));
    EXPECT_EQ(names(collector), (Names{"1", "0.b", "0.z"}));
    EXPECT_EQ(tensors(collector), (Tensors{3, 2, 1}));
  }
}

TEST(CaptureInputs, TopLevelComesBeforeContainersAndPositionsBeforeKeywords) {
  InputCollector collector;
  const std::vector<Element> first = {{{}, tensor(1)}}, second = {{{}, tensor(2)}};
  ASSERT_TRUE(collector.collect(
      std::vector<ArgumentValue>{list(first), tensor(3)},
      std::vector<KeywordArgument>{{"k", tensor(4)}, {"c", list(second)}, {"a", tensor(5)}}));
  EXPECT_EQ(names(collector), (Names{"1", "a", "k", "0.0", "c.0"}));
  EXPECT_EQ(tensors(collector), (Tensors{3, 5, 4, 1, 2}));
  expect_reason(collector.collect({}, std::vector<KeywordArgument>{{"k", kA}, {"k", kB}}),
                "DuplicateArgument");
}

TEST(CaptureInputs, HostScalarsAreFrozenUnlessDeclared) {
  InputCollector collector;
  const HostScalar frozen{false, 7, 0, 0}, declared{true, 3, 0, 9};
  const std::vector<Element> elements = {{{}, declared}};
  ASSERT_TRUE(collector.collect(std::vector<ArgumentValue>{kA, frozen, list(elements)},
                                std::vector<KeywordArgument>{{"scale", declared}}));
  EXPECT_EQ(names(collector), (Names{"0"}));
  ASSERT_EQ(collector.variables().size(), 2U);
  EXPECT_EQ(collector.variables()[0].name, "2.0");
  EXPECT_EQ(collector.variables()[1].name, "scale");
  EXPECT_EQ(collector.variables()[1].value, 3);
  EXPECT_EQ(collector.variables()[1].max, 9);
}

TEST(CaptureInputs, DuplicatesThatAreOnlyReadMayBeAllowed) {
  InputRules rules;
  rules.allow_read_only_duplicates = true;
  InputCollector collector(rules);
  ASSERT_TRUE(
      collector.collect(std::vector<ArgumentValue>{view_of(kA, 10, 0), kB, view_of(kA, 11, 8)}));
  ASSERT_EQ(collector.shared_bases().size(), 1U);
  EXPECT_EQ(collector.shared_bases()[0], std::make_pair(0, 2));
  EXPECT_TRUE(collector.check_shared_bases(std::array<uint8_t, 3>{0, 1, 0}));
  expect_reason(collector.check_shared_bases(std::array<uint8_t, 3>{1, 0, 0}), "DuplicateInput");
  expect_reason(collector.check_shared_bases(std::array<uint8_t, 3>{0, 0, 1}), "DuplicateInput");
  expect_reason(collector.check_shared_bases({}), "DuplicateInput");
}

}  // namespace
}  // namespace ignis::engine
