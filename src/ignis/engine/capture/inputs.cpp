#include "ignis/engine/capture/inputs.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace ignis::engine {
namespace {

/// The decimal digits of an index, without allocating.
class IndexText {
 public:
  explicit IndexText(size_t index) {
    end_ = std::to_chars(digits_.data(), digits_.data() + digits_.size(), index).ptr;
  }
  std::string_view view() const {
    return {digits_.data(), static_cast<size_t>(end_ - digits_.data())};
  }

 private:
  std::array<char, 24> digits_{};
  char* end_ = nullptr;
};

/// 0 … count - 1, sorted by `name_of`.
template <typename NameOf>
void sort_by_name(size_t count, const NameOf& name_of, std::vector<uint32_t>& order) {
  order.resize(count);
  for (size_t i = 0; i < count; ++i) order[i] = static_cast<uint32_t>(i);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return name_of(a) != name_of(b) ? name_of(a) < name_of(b) : a < b;
  });
}

bool is_virtual(const TensorArgument& tensor) {
  return tensor.description.devices.empty() || size_bytes(tensor.description.dtype) == 0;
}

}  // namespace

Status InputCollector::collect(std::span<const ArgumentValue> positional,
                               std::span<const KeywordArgument> keyword) {
  tensors_.clear();
  inputs_.clear();
  variables_.clear();
  shared_.clear();
  name_count_ = 0;
  Status status = collect_all(positional, keyword);
  if (!status) {
    tensors_.clear();
    inputs_.clear();
    variables_.clear();
    shared_.clear();
  }
  return status;
}

Status InputCollector::collect_all(std::span<const ArgumentValue> positional,
                                   std::span<const KeywordArgument> keyword) {
  sort_by_name(keyword.size(), [&](uint32_t i) { return keyword[i].name; }, order_);
  for (size_t i = 1; i < order_.size(); ++i) {
    if (keyword[order_[i]].name != keyword[order_[i - 1]].name) continue;
    return Error(ErrorCode::InvalidArgument,
                 "Two arguments have the name '" + std::string(keyword[order_[i]].name) + "'.",
                 "DuplicateArgument");
  }
  for (size_t i = 0; i < positional.size(); ++i) {
    IGNIS_TRY(add_argument(IndexText(i).view(), positional[i]));
  }
  for (const uint32_t i : order_) IGNIS_TRY(add_argument(keyword[i].name, keyword[i].value));
  for (size_t i = 0; i < positional.size(); ++i) {
    if (const auto* container = std::get_if<Container>(&positional[i])) {
      IGNIS_TRY(add_container(IndexText(i).view(), *container));
    }
  }
  for (const uint32_t i : order_) {
    if (const auto* container = std::get_if<Container>(&keyword[i].value)) {
      IGNIS_TRY(add_container(keyword[i].name, *container));
    }
  }
  return find_shared_bases();
}

/// Of the top level; containers come later.
Status InputCollector::add_argument(std::string_view name, const ArgumentValue& value) {
  if (const auto* tensor = std::get_if<TensorArgument>(&value)) {
    return add_tensor(*tensor, name, {});
  }
  if (const auto* variable = std::get_if<exec::VariableBinding>(&value)) {
    return add_variable(*variable);
  }
  if (const auto* scalar = std::get_if<HostScalar>(&value); scalar && scalar->is_variable) {
    return add_variable({keep_name(name, {}), scalar->value, scalar->min, scalar->max});
  }
  return Status::ok();
}

Status InputCollector::add_container(std::string_view argument, const Container& container) {
  const std::span<const Element> elements = container.elements;
  if (container.is_map) {
    sort_by_name(elements.size(), [&](uint32_t i) { return elements[i].key; }, inner_order_);
  }
  for (size_t i = 0; i < elements.size(); ++i) {
    const Element& element = elements[container.is_map ? inner_order_[i] : i];
    const IndexText index(i);
    const std::string_view key = container.is_map ? element.key : index.view();
    if (const auto* tensor = std::get_if<TensorArgument>(&element.value)) {
      const bool is_known =
          std::any_of(tensors_.begin(), tensors_.end(),
                      [&](const TensorArgument& known) { return known.tensor == tensor->tensor; });
      if (!is_known) IGNIS_TRY(add_tensor(*tensor, argument, key));
    } else if (const auto* variable = std::get_if<exec::VariableBinding>(&element.value)) {
      IGNIS_TRY(add_variable(*variable));
    } else if (const auto* scalar = std::get_if<HostScalar>(&element.value);
               scalar && scalar->is_variable) {
      IGNIS_TRY(add_variable({keep_name(argument, key), scalar->value, scalar->min, scalar->max}));
    }
  }
  return Status::ok();
}

Status InputCollector::add_tensor(const TensorArgument& tensor, std::string_view argument,
                                  std::string_view element) {
  TensorArgument input = tensor;
  input.description.name = keep_name(argument, element);
  if (is_virtual(input)) {
    return Error(
        ErrorCode::InvalidArgument,
        "Input '" + std::string(input.description.name) + "' has " +
            (input.description.devices.empty()
                 ? "no device"
                 : "the undecided type " + std::string(to_string(input.description.dtype))) +
            " and so no storage; clone it first.",
        "VirtualInput");
  }
  if (!input.is_realized) {
    if (!rules_.realize) {
      return Error(ErrorCode::InvalidArgument,
                   "Input '" + std::string(input.description.name) +
                       "' has no storage yet; realize it first.",
                   "VirtualInput");
    }
    const std::string_view name = input.description.name;
    IGNIS_TRY(rules_.realize(input));
    input.description.name = name;
  }
  for (const exec::VariableBinding& variable : input.variables) IGNIS_TRY(add_variable(variable));
  tensors_.push_back(input);
  inputs_.push_back(input.description);
  return Status::ok();
}

Status InputCollector::add_variable(const exec::VariableBinding& variable) {
  const auto at = std::lower_bound(
      variables_.begin(), variables_.end(), variable.name,
      [](const exec::VariableBinding& a, std::string_view name) { return a.name < name; });
  if (at == variables_.end() || at->name != variable.name) {
    variables_.insert(at, variable);
    return Status::ok();
  }
  if (at->value == variable.value && at->min == variable.min && at->max == variable.max) {
    return Status::ok();
  }
  const auto print = [](const exec::VariableBinding& a) {
    return std::to_string(a.value) + " in [" + std::to_string(a.min) + ", " +
           std::to_string(a.max) + "]";
  };
  return Error(ErrorCode::InvalidArgument,
               "Variable '" + std::string(variable.name) + "' is " + print(*at) + " and " +
                   print(variable) + " in one call.",
               "VariableConflict");
}

Status InputCollector::find_shared_bases() {
  order_.resize(tensors_.size());
  for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<uint32_t>(i);
  std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
    return tensors_[a].base != tensors_[b].base ? tensors_[a].base < tensors_[b].base : a < b;
  });
  for (size_t begin = 0; begin < order_.size();) {
    size_t end = begin + 1;
    while (end < order_.size() && tensors_[order_[end]].base == tensors_[order_[begin]].base) ++end;
    for (size_t i = begin; i < end; ++i) {
      for (size_t k = i + 1; k < end; ++k) {
        const auto first = static_cast<int>(order_[i]), second = static_cast<int>(order_[k]);
        if (!rules_.allow_read_only_duplicates) return duplicate(first, second);
        shared_.emplace_back(first, second);
      }
    }
    begin = end;
  }
  return Status::ok();
}

Status InputCollector::check_shared_bases(std::span<const uint8_t> is_written) const {
  for (const auto& [first, second] : shared_) {
    for (const int input : {first, second}) {
      // One that nobody says anything of counts as written.
      const auto index = static_cast<size_t>(input);
      if (index >= is_written.size() || is_written[index] != 0) return duplicate(first, second);
    }
  }
  return Status::ok();
}

std::string_view InputCollector::keep_name(std::string_view argument, std::string_view element) {
  if (name_count_ == names_.size()) names_.push_back(std::make_unique<std::string>());
  std::string& name = *names_[name_count_++];
  name = argument;
  if (!element.empty()) {
    name += '.';
    name += element;
  }
  return name;
}

Error InputCollector::duplicate(int first, int second) const {
  const auto name = [&](int input) {
    return std::string(tensors_[static_cast<size_t>(input)].description.name);
  };
  return Error(ErrorCode::InvalidArgument,
               "Inputs '" + name(first) + "' and '" + name(second) +
                   "' lie in one storage; clone one of them" +
                   (rules_.allow_read_only_duplicates ? ", because one is written." : "."),
               "DuplicateInput");
}

}  // namespace ignis::engine
