#include "tests/errors/models.h"

#include "tests/support/onnx_builder.h"

namespace ignis::testing {

std::string small_model() {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2, 3}).output("y", OnnxType::Float, {2, 3});
  model.graph.initializer(onnx_floats("two", {}, {2})).initializer(onnx_floats("one", {}, {1}));
  model.graph.node(OnnxNode("Mul", {"x", "two"}, {"a"}).name("scale"));
  model.graph.node(OnnxNode("Sub", {"a", "one"}, {"b"}).name("shift"));
  model.graph.node(OnnxNode("Relu", {"b"}, {"y"}).name("clip"));
  return model.bytes();
}

std::string attention_model() {
  OnnxModel model(17);
  model.graph.input("q", OnnxType::Float, {1, 2, 9, 4})
      .input("k", OnnxType::Float, {1, 2, 4, 7})
      .input("v", OnnxType::Float, {1, 2, 7, 5})
      .output("y", OnnxType::Float, {1, 2, 9, 5});
  OnnxNode softmax("Softmax", {"s"}, {"p"});
  softmax.attr("axis", int64_t{-1});
  model.graph.node(OnnxNode("MatMul", {"q", "k"}, {"s"}).name("scores"))
      .node(softmax.name("weights"))
      .node(OnnxNode("MatMul", {"p", "v"}, {"y"}).name("values"));
  return model.bytes();
}

std::string open_model() {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {"batch", 3}).output("y", OnnxType::Float, {"batch", 3});
  model.graph.node(OnnxNode("Add", {"x", "x"}, {"y"}));
  return model.bytes();
}

std::string unsupported_model() {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2}).output("y", OnnxType::Float, {2});
  model.graph.node(OnnxNode("Frobnicate", {"x"}, {"a"})).node(OnnxNode("Quux", {"a"}, {"y"}));
  return model.bytes();
}

std::string cyclic_model() {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2}).output("y", OnnxType::Float, {2});
  model.graph.node(OnnxNode("Add", {"x", "b"}, {"a"}))
      .node(OnnxNode("Add", {"x", "a"}, {"b"}))
      .node(OnnxNode("Relu", {"b"}, {"y"}));
  return model.bytes();
}

std::string shape_error_model() {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2, 3})
      .input("z", OnnxType::Float, {4})
      .output("y", OnnxType::Float, {2, 3});
  model.graph.node(OnnxNode("Add", {"x", "z"}, {"y"}).name("sum"));
  return model.bytes();
}

std::string dtype_error_model() {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2})
      .input("z", OnnxType::Int64, {2})
      .output("y", OnnxType::Float, {2});
  model.graph.node(OnnxNode("MatMul", {"x", "missing"}, {"y"}).name("product"));
  return model.bytes();
}

std::string escaping_model() {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {2}).output("y", OnnxType::Float, {2});
  model.graph.initializer(onnx_external("w", OnnxType::Float, {2}, {{"location", "../secret"}}));
  model.graph.node(OnnxNode("Add", {"x", "w"}, {"y"}));
  return model.bytes();
}

std::string huge_model() {
  OnnxModel model(17);
  model.graph.input("x", OnnxType::Float, {1, 1}).output("y", OnnxType::Float, {32768, 32768});
  model.graph.initializer(onnx_ints("shape", {2}, {32768, 32768}));
  model.graph.node(OnnxNode("Expand", {"x", "shape"}, {"y"}));
  return model.bytes();
}

std::string nested_model(int depth) {
  OnnxModel model(17);
  model.graph.input("c", OnnxType::Bool, {}).output("y", OnnxType::Float, {1});
  OnnxGraph inner;
  inner.output("y0", OnnxType::Float, {1});
  inner.node(OnnxNode("Constant", {}, {"y0"}).attr_tensor("value", onnx_floats("v", {1}, {1})));
  for (int i = 1; i < depth; ++i) {
    const std::string name = "y" + std::to_string(i);
    OnnxGraph outer;
    outer.output(name, OnnxType::Float, {1});
    outer.node(OnnxNode("If", {"c"}, {name})
                   .attr_graph("then_branch", inner)
                   .attr_graph("else_branch", inner));
    inner = outer;
    if (i == 12) break;  // both branches are written out: 2^12 copies are enough
  }
  for (int i = 13; i < depth; ++i) {  // from here on the else branch is flat
    const std::string name = "y" + std::to_string(i);
    OnnxGraph flat, outer;
    flat.output("f", OnnxType::Float, {1});
    flat.node(OnnxNode("Constant", {}, {"f"}).attr_tensor("value", onnx_floats("v", {1}, {1})));
    outer.output(name, OnnxType::Float, {1});
    outer.node(OnnxNode("If", {"c"}, {name})
                   .attr_graph("then_branch", inner)
                   .attr_graph("else_branch", flat));
    inner = outer;
  }
  model.graph.node(OnnxNode("If", {"c"}, {"y"})
                       .attr_graph("then_branch", inner)
                       .attr_graph("else_branch", inner));
  return model.bytes();
}

}  // namespace ignis::testing
