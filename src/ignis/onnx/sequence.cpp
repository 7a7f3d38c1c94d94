#include "ignis/onnx/graph_importer.h"
#include "ignis/onnx/ops_common.h"

#include <algorithm>
#include <string>

// Sequences of tensors are lists that exist at import alone: what is put in and taken out is known by position. They may
// not be inputs or outputs of a model, nor be carried by a loop.
namespace ignis::onnx {
namespace {

constexpr std::string_view kSequenceOps[] = {
    "SequenceEmpty", "SequenceConstruct", "SequenceInsert",  "SequenceErase",
    "SequenceAt",    "SequenceLength",    "SplitToSequence", "ConcatFromSequence",
};

/// Input `i` as a position in [-count, count), counted from 0.
Result<size_t> read_position(const OpContext& ctx, int i, size_t count) {
  IGNIS_TRY_ASSIGN(int64_t position, ctx.const_int(i));
  const int64_t size = static_cast<int64_t>(count);
  if (position < -size || position >= size) {
    return ctx.error("Position " + std::to_string(position) + " is outside a sequence of " +
                     std::to_string(size) + ".");
  }
  return static_cast<size_t>(position < 0 ? position + size : position);
}

Result<Sequence> insert(const OpContext& ctx, const Sequence& from) {
  size_t position = from.size();
  if (ctx.has_input(2)) {
    // One more place than there are elements: behind the last one.
    IGNIS_TRY_ASSIGN(const int64_t stated, ctx.const_int(2));
    const int64_t size = static_cast<int64_t>(from.size());
    if (stated < -size || stated > size) {
      return ctx.error("Position " + std::to_string(stated) + " is outside a sequence of " +
                       std::to_string(size) + ".");
    }
    position = static_cast<size_t>(stated < 0 ? stated + size : stated);
  }
  Sequence made = from;
  made.insert(made.begin() + static_cast<std::ptrdiff_t>(position), ctx.input(1));
  return made;
}

Result<Sequence> erase(const OpContext& ctx, const Sequence& from) {
  if (from.empty()) return ctx.error("The sequence is empty.");
  size_t position = from.size() - 1;
  if (ctx.has_input(1)) {
    IGNIS_TRY_ASSIGN(position, read_position(ctx, 1, from.size()));
  }
  Sequence made = from;
  made.erase(made.begin() + static_cast<std::ptrdiff_t>(position));
  return made;
}

Result<Sequence> split(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int64_t axis = ctx.axis(ctx.attr_int("axis", 0), x.rank());
  const int64_t extent = x.dim(static_cast<int>(axis));
  if (extent > ctx.limits().max_fold_elements)
    return ctx.error("Too many parts of " + x.describe() + ".");
  if (!ctx.has_input(1)) {
    Sequence parts = tensor::chunk(x, axis, 1);
    if (ctx.attr_int("keepdims", 1) == 0) {
      for (Tensor& part : parts) part = tensor::squeeze(part, {axis});
    }
    return parts;
  }
  IGNIS_TRY_ASSIGN(const std::vector<int64_t> sizes, ctx.const_ints(1));
  if (ctx.input(1).rank() != 0) return tensor::split(x, axis, sizes);
  if (sizes[0] < 1) return ctx.error("The parts have " + std::to_string(sizes[0]) + " elements.");
  return tensor::chunk(x, axis, sizes[0]);
}

Result<Tensor> concat(const OpContext& ctx, Sequence parts) {
  if (parts.empty()) return ctx.error("The sequence is empty.");
  const bool is_new_axis = ctx.attr_int("new_axis", 0) != 0;
  const int64_t axis = ctx.axis(ctx.attr_int("axis"), parts[0].rank() + (is_new_axis ? 1 : 0));
  if (is_new_axis) {
    for (Tensor& part : parts) part = tensor::unsqueeze(part, {axis});
  }
  return concat_all(std::move(parts), axis);
}

}  // namespace

bool is_sequence_op(std::string_view domain, std::string_view name, int64_t opset) {
  if ((!domain.empty() && domain != "ai.onnx") || opset < 11) return false;
  return std::find(std::begin(kSequenceOps), std::end(kSequenceOps), name) !=
         std::end(kSequenceOps);
}

Status GraphImporter::bind_sequence(const NodeProto& node, Sequence made, Scope& scope) {
  // Every step of a chain of insertions is kept, so their sum is what counts.
  sequence_elements_ += static_cast<int64_t>(made.size());
  if (sequence_elements_ > state_.limits().max_fold_elements) {
    return Error(ErrorCode::InvalidArgument, "The model's sequences are too long.",
                 "LimitExceeded");
  }
  if (node.outputs.empty()) return Status::ok();
  scope.bind_sequence(node.outputs[0], std::move(made));
  return Status::ok();
}

Status GraphImporter::run_sequence_op(const NodeProto& node, const Values& inputs, Scope& scope,
                                      const Environment& env) {
  const OpContext ctx(state_, node, env.opset(node.domain), env.attributes, inputs);
  const std::string_view op = node.op_type;
  if (op == "SequenceEmpty") return bind_sequence(node, {}, scope);
  if (op == "SequenceConstruct") return bind_sequence(node, ctx.inputs(), scope);
  if (op == "SplitToSequence") {
    IGNIS_TRY_ASSIGN(Sequence parts, split(ctx));
    return bind_sequence(node, std::move(parts), scope);
  }
  const Sequence* from = node.inputs.empty() ? nullptr : scope.find_sequence(node.inputs[0]);
  if (from == nullptr) return ctx.error("Input 0 is not a sequence.");
  if (op == "SequenceInsert" || op == "SequenceErase") {
    IGNIS_TRY_ASSIGN(Sequence made,
                     op == "SequenceInsert" ? insert(ctx, *from) : erase(ctx, *from));
    return bind_sequence(node, std::move(made), scope);
  }
  if (op == "SequenceLength") {
    return bind_outputs(node, {ctx.scalar_int(DType::Int64, static_cast<int64_t>(from->size()))},
                        scope, env);
  }
  if (op == "SequenceAt") {
    IGNIS_TRY_ASSIGN(const size_t position, read_position(ctx, 1, from->size()));
    return bind_outputs(node, {(*from)[position]}, scope, env);
  }
  IGNIS_TRY_ASSIGN(Tensor joined, concat(ctx, *from));
  return bind_outputs(node, {std::move(joined)}, scope, env);
}

}  // namespace ignis::onnx
