#include "ignis/onnx/external.h"

#include "ignis/onnx/test_import.h"

#include <sys/stat.h>

#include <fstream>

namespace ignis::onnx {
namespace {

namespace fs = std::filesystem;
using namespace ignis::testing;  // NOLINT: the builder

using Keys = std::vector<std::pair<std::string, std::string>>;

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string float_bytes(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Where the tensor with external data stands in the model: the rules are the same for all of them.
enum class Place { Initializer, Sparse, Constant, SparseConstant };

OnnxModel model_with(const Keys& keys, Place place) {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2}).output("y", OnnxType::Float, {2});
  const OnnxMessage values = onnx_external("w", OnnxType::Float, {2}, keys);
  const OnnxMessage sparse = onnx_sparse(values, onnx_ints("", {2}, {0, 1}), {2});
  switch (place) {
    case Place::Initializer: model.graph.initializer(values); break;
    case Place::Sparse: model.graph.sparse_initializer(sparse); break;
    case Place::Constant:
      model.graph.node(OnnxNode("Constant", {}, {"w"}).attr_tensor("value", values));
      break;
    case Place::SparseConstant:
      model.graph.node(OnnxNode("Constant", {}, {"w"}).attr_sparse("sparse_value", sparse));
      break;
  }
  model.graph.node(OnnxNode("Add", {"x", "w"}, {"y"}));
  return model;
}

class External : public ::testing::TestWithParam<Place> {
 protected:
  External() {
    fs::create_directory(root_.path() / "model");
    fs::create_directory(folder() / "sub");
    write_file(root_.path() / "outside", float_bytes({9, 9}));
    write_file(folder() / "data", float_bytes({0, 1, 2, 3}));
    write_file(folder() / "sub" / "data", float_bytes({5, 6}));
    write_file(folder() / "twice", float_bytes({9, 9}));
    fs::create_hard_link(folder() / "twice", root_.path() / "other_name");
    fs::create_symlink("data", folder() / "link");
    fs::create_directory_symlink("sub", folder() / "sub_link");
    fs::create_symlink("/dev/zero", folder() / "zero_link");
    EXPECT_EQ(::mkfifo((folder() / "pipe").c_str(), 0600), 0);
  }

  fs::path folder() const { return root_.path() / "model"; }

  Result<Model> import_with(const Keys& keys) const {
    write_file(folder() / "m.onnx", model_with(keys, GetParam()).bytes());
    return import_model((folder() / "m.onnx").string(), test_options());
  }

  TempFolder root_;
};

TEST_P(External, GoodDataIsRead) {
  const std::vector<std::pair<Keys, std::vector<double>>> rows = {
      {{{"location", "data"}}, {10, 21}},
      {{{"location", "./data"}, {"offset", "8"}}, {12, 23}},
      {{{"location", "data"}, {"offset", "4"}, {"length", "8"}}, {11, 22}},
      {{{"location", "sub/data"}}, {15, 26}},
      // Keys of other programs mean nothing here.
      {{{"location", "data"}, {"checksum", "00"}, {"__class__", "x"}, {"basepath", "/etc"}},
       {10, 21}},
  };
  for (const auto& [keys, expected] : rows) {
    const auto model = import_with(keys);
    ASSERT_TRUE(model) << model.error().to_string();
    const auto y = evaluate_model(*model, {floats({2}, {10, 20})});
    ASSERT_TRUE(y);
    EXPECT_EQ(values_of((*y)[0]), expected);
  }
}

TEST_P(External, BadDataIsRefusedWithItsReason) {
  const std::vector<std::pair<Keys, std::string>> rows = {
      {{{"location", "../outside"}}, "ParentPath"},
      {{{"location", "sub/../../outside"}}, "ParentPath"},
      {{{"location", "sub/.."}}, "ParentPath"},
      {{{"location", "/etc/passwd"}}, "AbsolutePath"},
      {{{"location", (root_.path() / "outside").string()}}, "AbsolutePath"},
      {{{"location", "link"}}, "SymbolicLink"},
      {{{"location", "sub_link/data"}}, "SymbolicLink"},
      {{{"location", "zero_link"}}, "SymbolicLink"},
      {{{"location", "twice"}}, "HardLink"},
      {{{"location", "sub"}}, "NotRegular"},
      {{{"location", "pipe"}}, "NotRegular"},
      {{{"location", ""}}, "BadLocation"},
      {{{"location", "."}}, "BadLocation"},
      {{{"location", std::string("data\0x", 6)}}, "BadLocation"},
      {{}, "BadLocation"},
      {{{"offset", "0"}}, "BadLocation"},
      {{{"location", "data"}, {"location", "sub/data"}}, "BadKey"},
      {{{"location", "data"}, {"offset", "9"}}, "OutOfRange"},
      {{{"location", "data"}, {"offset", "16"}}, "OutOfRange"},
      {{{"location", "data"}, {"offset", "9223372036854775807"}}, "OutOfRange"},
      {{{"location", "data"}, {"offset", "9223372036854775808"}}, "OutOfRange"},
      {{{"location", "data"}, {"offset", "-8"}}, "OutOfRange"},
      {{{"location", "data"}, {"offset", "0x8"}}, "OutOfRange"},
      {{{"location", "data"}, {"length", "9223372036854775808"}}, "OutOfRange"},
      {{{"location", "data"}, {"length", "4"}}, "OutOfRange"},
      {{{"location", "data"}, {"length", "16"}}, "OutOfRange"},
  };
  for (const auto& [keys, reason] : rows) {
    const auto model = import_with(keys);
    ASSERT_FALSE(model) << reason;
    EXPECT_EQ(model.error().code(), ErrorCode::InvalidArgument) << model.error().to_string();
    EXPECT_EQ(model.error().reason(), reason) << model.error().to_string();
  }
  const auto absent = import_with({{"location", "none"}});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), ErrorCode::NotFound);
}

TEST_P(External, AModelFromMemoryHasNoFolder) {
  const auto model =
      import_bytes(model_with({{"location", "data"}}, GetParam()).bytes(), test_options());
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().reason(), "NoFolder");
}

INSTANTIATE_TEST_SUITE_P(Everywhere, External,
                         ::testing::Values(Place::Initializer, Place::Sparse, Place::Constant,
                                           Place::SparseConstant));

// A device file cannot be made without privileges; the folder may be one, though.
TEST(ExternalDevice, ADeviceFileIsNotRead) {
  TensorProto tensor;
  tensor.external_data = {{"location", "zero"}};
  ExternalFiles files("/dev", int64_t{1} << 30);
  const auto bytes = files.read(tensor, 8);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().reason(), "NotRegular");
}

}  // namespace
}  // namespace ignis::onnx
