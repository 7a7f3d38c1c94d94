#include "ignis/engine/callable/argument_list.h"

#include <algorithm>
#include <utility>

namespace ignis::engine {
namespace {

exec::VariableBinding binding_of(const RunVariable& variable) {
  return {variable.name, variable.value, variable.min, variable.max};
}

// A lazy expression has no device yet: the same as a tensor without storage.
TensorArgument virtual_tensor(const tensor::Tensor& expression) {
  TensorArgument made;
  made.tensor = expression.node() ? expression.node().id() : 0;
  made.is_realized = false;
  made.description.dtype = expression.dtype();
  return made;
}

}  // namespace

ArgumentList::ArgumentList(Workspace workspace, bool allow_read_only_duplicates)
    : workspace_(std::move(workspace)),
      collector_(
          InputRules{.allow_read_only_duplicates = allow_read_only_duplicates, .realize = {}}) {}

Result<TensorArgument> ArgumentList::make_tensor(const Array& array) {
  if (!array) {
    return Error(ErrorCode::InvalidArgument, "An argument is an empty array.", "VirtualInput");
  }
  IGNIS_TRY(array.check());
  if (!array.is_realized() && !array.is_virtual()) {
    Array handle = array;
    IGNIS_TRY(workspace_.realize(handle));
  }
  seen_.push_back(&array);
  return describe(array);
}

Result<ElementValue> ArgumentList::make_element(const Value& value) {
  if (const auto* array = std::get_if<Array>(&value.data())) {
    IGNIS_TRY_ASSIGN(const TensorArgument made, make_tensor(*array));
    return ElementValue(made);
  }
  if (const auto* expression = std::get_if<tensor::Tensor>(&value.data())) {
    return ElementValue(virtual_tensor(*expression));
  }
  if (const auto* variable = std::get_if<RunVariable>(&value.data())) {
    return ElementValue(binding_of(*variable));
  }
  const bool is_container = std::holds_alternative<Sequence>(value.data()) ||
                            std::holds_alternative<ValueMap>(value.data());
  if (is_container) return ElementValue(DeeperContainer());
  return ElementValue(HostScalar());
}

Status ArgumentList::add(const Value& value, ArgumentValue& to) {
  const auto* sequence = std::get_if<Sequence>(&value.data());
  const auto* map = std::get_if<ValueMap>(&value.data());
  if (sequence == nullptr && map == nullptr) {
    IGNIS_TRY_ASSIGN(const ElementValue element, make_element(value));
    if (const auto* tensor = std::get_if<TensorArgument>(&element)) to = *tensor;
    else if (const auto* binding = std::get_if<exec::VariableBinding>(&element)) to = *binding;
    else to = HostScalar();
    return {};
  }
  if (container_count_ == elements_.size()) elements_.emplace_back();
  std::vector<Element>& elements = elements_[container_count_++];
  elements.clear();
  if (sequence != nullptr) {
    for (const Value& element : *sequence) {
      IGNIS_TRY_ASSIGN(ElementValue made, make_element(element));
      elements.push_back({{}, std::move(made)});
    }
  } else {
    for (const auto& [key, element] : *map) {
      IGNIS_TRY_ASSIGN(ElementValue made, make_element(element));
      elements.push_back({key, std::move(made)});
    }
  }
  to = Container{map != nullptr, elements};
  return {};
}

Status ArgumentList::collect(const Arguments& arguments) {
  seen_.clear();
  container_count_ = 0;
  // Lists of elements are looked at while others are added.
  size_t containers = 0;
  const auto count = [&](const Value& value) {
    containers += std::holds_alternative<Sequence>(value.data()) ||
                  std::holds_alternative<ValueMap>(value.data());
  };
  for (const Value& value : arguments.positional) count(value);
  for (const auto& [name, value] : arguments.keyword) count(value);
  if (elements_.size() < containers) elements_.resize(containers);
  positional_.resize(arguments.positional.size());
  keyword_.resize(arguments.keyword.size());
  for (size_t i = 0; i < positional_.size(); ++i) {
    IGNIS_TRY(add(arguments.positional[i], positional_[i]));
  }
  for (size_t i = 0; i < keyword_.size(); ++i) {
    keyword_[i].name = arguments.keyword[i].first;
    IGNIS_TRY(add(arguments.keyword[i].second, keyword_[i].value));
  }
  IGNIS_TRY(collector_.collect(positional_, keyword_));
  input_count_ = collector_.tensors().size();
  arrays_.clear();
  if (memory_.size() < input_count_) memory_.resize(input_count_);
  for (size_t i = 0; i < input_count_; ++i) {
    const uint64_t id = collector_.tensors()[i].tensor;
    const auto found = std::find_if(seen_.begin(), seen_.end(),
                                    [&](const Array* array) { return array->id() == id; });
    IGNIS_CHECK(found != seen_.end());
    arrays_.push_back(*found);
    memory_[i].lanes.resize(1);
    memory_[i].lanes[0] = (*found)->base_memory();
  }
  return {};
}

Status ArgumentList::bind_variables() const {
  for (const exec::VariableBinding& variable : collector_.variables()) {
    const std::string name(variable.name);
    IGNIS_TRY(workspace_.variable(name, variable.min, variable.max));
    IGNIS_TRY(workspace_.bind(name, variable.value));
  }
  return {};
}

void ArgumentList::release() {
  for (exec::BoundInput& input : memory_) {
    for (exec::Placement& lane : input.lanes) lane.memory.reset();
  }
}

bool ArgumentList::has_base(uint64_t base) const {
  const auto tensors = collector_.tensors();
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const TensorArgument& tensor) { return tensor.base == base; });
}

}  // namespace ignis::engine
