#include "tools/io/input_spec.h"

#include "tools/io/files.h"
#include "tools/io/npy.h"
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

namespace ignis::tools {
namespace {

InputSpec one(const std::string& argument) {
  auto specs = parse_input(argument);
  EXPECT_TRUE(specs) << specs.error().to_string();
  EXPECT_EQ(specs->size(), 1u);
  return std::move(specs->front());
}

std::string refusal(const std::string& argument) {
  const auto specs = parse_input(argument);
  if (specs) return "accepted";
  return specs.error().reason() + ": " + specs.error().message();
}

class InputFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("ignis_input_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_;
};

TEST(InputSpec, Literals) {
  const InputSpec spec = one("x=2x3xi16=1,-2,3,4,5,6");
  EXPECT_EQ(spec.name, "x");
  EXPECT_EQ(spec.tensor.dtype, DType::Int16);
  EXPECT_EQ(spec.tensor.shape, (Shape{2, 3}));
  EXPECT_EQ(element_as_int(spec.tensor, 1), -2);
  EXPECT_EQ(one("a:0/b=f32=2.5").tensor.shape, Shape{});
  EXPECT_EQ(one("a:0/b=f32=2.5").name, "a:0/b");
  EXPECT_EQ(element_as_double(one("x=4xf32=7").tensor, 3), 7);  // one value for all
  EXPECT_EQ(element_as_int(one("x=2xbool=true,false").tensor, 0), 1);
  EXPECT_EQ(element_as_int(one("x=1xi64=9007199254740993").tensor, 0), 9007199254740993);
  EXPECT_EQ(element_as_int(one("x=1xu64=18446744073709551615").tensor, 0), -1);
  EXPECT_EQ(one("x=0xf32=").tensor.shape, (Shape{0}));
}

TEST(InputSpec, RandomValuesAreRepeatableAndInRange) {
  const InputSpec spec = one("x:uniform(-2,3)");
  std::mt19937_64 a(7), b(7);
  const HostTensor t = make_input(spec, DType::Float32, {1000}, a).value();
  EXPECT_EQ(t.bytes, make_input(spec, DType::Float32, {1000}, b).value().bytes);
  double low = 3, high = -2;
  for (int64_t i = 0; i < 1000; ++i) {
    low = std::min(low, element_as_double(t, i));
    high = std::max(high, element_as_double(t, i));
  }
  EXPECT_TRUE(low >= -2 && low < -1.9 && high <= 3 && high > 2.9) << low << " " << high;
  const HostTensor ints = make_input(one("x:randint(0,3)"), DType::Int64, {100}, a).value();
  for (int64_t i = 0; i < 100; ++i)
    EXPECT_TRUE(element_as_int(ints, i) >= 0 && element_as_int(ints, i) < 3);
  EXPECT_EQ(element_as_double(make_input(one("x:zeros"), DType::Float16, {2}, a).value(), 1), 0);
  EXPECT_EQ(element_as_double(make_input(one("x:ones"), DType::Float16, {2}, a).value(), 1), 1);
}

TEST(InputSpec, RefusesMalformedArguments) {
  for (const char* argument :
       {"x", "", "=", "x=", "x=1", "x=2xf32=1,2,3", "x=2xq9=1,2", "x=?xf32=1", "x=2xf32=1,a",
        "x:gauss(0,1)", "x:uniform(1)", "x:uniform(2,1)", "x:uniform(0,inf)", ":zeros", "=1xf32=1",
        "@f.npy", "=@f.npy", "x=99999999999x99999999999xf32=1", "x=@f.npy,layout=NCHW"}) {
    EXPECT_EQ(refusal(argument).substr(0, 6), "Usage:") << argument << " -> " << refusal(argument);
  }
  EXPECT_EQ(parse_input("x=@/nonexistent/f.npy").error().code(), ErrorCode::NotFound);
}

TEST_F(InputFiles, NpyNpzRawAndImage) {
  const HostTensor t = HostTensor::from(DType::Float32, {2}, std::vector<float>{1, 2});
  ASSERT_TRUE(write_file(path("a.npy"), format_npy(t)));
  ASSERT_TRUE(write_file(path("b.npz"), format_npz({{"p", t}, {"q", t}}).value()));
  ASSERT_TRUE(write_file(path("c.raw"), t.bytes));
  Image image;
  image.width_px = 2;
  image.height_px = 1;
  image.rgb = {0, 1, 2, 3, 4, 5};
  ASSERT_TRUE(write_file(path("d.png"), format_png(image).value()));
  std::mt19937_64 rng(1);
  EXPECT_EQ(make_input(one("x=@" + path("a.npy")), DType::Float32, {2}, rng).value().bytes,
            t.bytes);
  EXPECT_EQ(make_input(one("q=@" + path("b.npz")), DType::Float32, {2}, rng).value().bytes,
            t.bytes);
  EXPECT_EQ(parse_input("@" + path("b.npz"))->size(), 2u);
  EXPECT_FALSE(parse_input("z=@" + path("b.npz")));
  EXPECT_EQ(make_input(one("x=@" + path("c.raw")), DType::Float32, {2}, rng).value().bytes,
            t.bytes);
  EXPECT_EQ(stated_shape(one("x=2xf32=@" + path("c.raw"))), (Shape{2}));
  const InputSpec picture = one("x=@" + path("d.png") + ",layout=HWC,mean=1,scale=2,color=bgr");
  EXPECT_EQ(stated_shape(picture), (Shape{1, 2, 3}));
  EXPECT_EQ(element_as_double(make_input(picture, DType::Float32, {1, 2, 3}, rng).value(), 0), 2);
  EXPECT_FALSE(make_input(picture, DType::Float32, {2, 4, 3}, rng));
  const InputSpec fitted = one("x=@" + path("d.png") + ",layout=HWC,resize=1");
  EXPECT_EQ(make_input(fitted, DType::Float32, {2, 4, 3}, rng).value().shape, (Shape{2, 4, 3}));
}

TEST_F(InputFiles, MismatchNamesBothTypes) {
  std::mt19937_64 rng(1);
  const auto result = make_input(one("x=2xf32=1,2"), DType::Float32, {3}, rng);
  EXPECT_EQ(result.error().message(), "Input 'x' has f32 [2]; the model takes f32 [3].");
  EXPECT_EQ(result.error().reason(), "Usage");
}

TEST_F(InputFiles, WritingReplacesTheWholeFile) {
  ASSERT_TRUE(write_file(path("f"), std::string("first, long")));
  ASSERT_TRUE(write_file(path("f"), std::string("second")));
  EXPECT_EQ(read_file(path("f"))->size(), 6u);
  EXPECT_FALSE(write_file(path("no/such/folder/f"), std::string("x")));
  EXPECT_FALSE(read_file(folder_.string()));
  EXPECT_EQ(read_file(path("absent")).error().code(), ErrorCode::NotFound);
}

}  // namespace
}  // namespace ignis::tools
