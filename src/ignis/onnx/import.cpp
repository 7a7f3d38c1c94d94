#include "ignis/onnx/import.h"

#include "ignis/onnx/graph_importer.h"
#include "ignis/onnx/info.h"
#include "ignis/onnx/input_binding.h"
#include "ignis/onnx/support.h"
#include "ignis/onnx/wire.h"

#include <new>
#include <optional>
#include <utility>

namespace ignis::onnx {
namespace {

/// Binds the model's inputs in `scope`: given ones as constants, the others as parameters in order.
Status bind_inputs(const ModelProto& proto, const ImportOptions& options, ImportState& state,
                   Scope& scope, Model& model) {
  IGNIS_TRY_ASSIGN(const std::vector<BoundInput> inputs, resolve_inputs(proto.graph, options));
  for (const BoundInput& input : inputs) {
    if (input.constant != nullptr) {
      scope.bind(input.name, state.constant(*input.constant).named(std::string(input.name)));
      continue;
    }
    const int64_t slot = static_cast<int64_t>(model.inputs.size());
    const Tensor value =
        Tensor::input(state.graph(), slot, std::string(input.name), input.dtype, input.shape);
    model.input_names.emplace_back(input.name);
    model.inputs.push_back(value);
    scope.bind(input.name, value);
  }
  return Status::ok();
}

Result<Model> import_parsed(const ModelProto& proto, const FileBytes& file, ExternalFiles external,
                            const ImportOptions& options) {
  IGNIS_TRY(check_support(proto));
  Model model;
  model.info = describe_model(proto, file.bytes);
  ImportState state(options, file, std::move(external));
  model.graph = state.graph();
  Scope scope;
  IGNIS_TRY(bind_inputs(proto, options, state, scope, model));
  GraphImporter importer(state, proto, model.layers);
  IGNIS_TRY_ASSIGN(model.outputs, importer.run(proto.graph, scope, make_environment(proto.opsets)));
  for (const ValueInfoProto& output : proto.graph.outputs)
    model.output_names.emplace_back(output.name);
  if (model.outputs.empty()) {
    return Error(ErrorCode::InvalidArgument, "The model has no outputs.", "Malformed");
  }
  return model;
}

/// Turns what the tensor front end or the allocator throws outside of a node into an Error.
Result<Model> import_guarded(const FileBytes& file, ExternalFiles external,
                             const ImportOptions& options) {
  try {
    IGNIS_TRY_ASSIGN(const ModelProto proto, parse_model(file.bytes, options.limits));
    return import_parsed(proto, file, std::move(external), options);
  } catch (const tensor::GraphError& e) {
    return e.error();
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::OutOfMemory, "The model needs more memory than there is.");
  }
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<Model> import_model(const std::string& path, const ImportOptions& options) {
  IGNIS_TRY_ASSIGN(const FileBytes file, map_file(path, options.limits.max_file_bytes));
  auto model =
      import_guarded(file, ExternalFiles(folder_of(path), options.limits.max_file_bytes), options);
  if (!model) return std::move(model).error().with_context("file '" + path + "'");
  return model;
}

Result<Model> import_bytes(std::string_view bytes, const ImportOptions& options) {
  // Without an owner every constant is copied: the caller may free the bytes afterwards.
  return import_guarded(FileBytes{bytes, nullptr}, ExternalFiles(), options);
}

}  // namespace ignis::onnx
