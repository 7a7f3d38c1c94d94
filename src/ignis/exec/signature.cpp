#include "ignis/exec/signature.h"

#include "ignis/exec/word_mixer.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

namespace ignis::exec {
namespace {

void mix(const SymbolicNumber& number, WordMixer& mixer) {
  mixer.add(number.expression);
  if (number.expression.empty()) {
    mixer.add(static_cast<uint64_t>(number.value));
  } else {
    mixer.add(static_cast<uint64_t>(number.min));
    mixer.add(static_cast<uint64_t>(number.max));
  }
}

void mix(std::span<const SymbolicNumber> numbers, WordMixer& mixer) {
  mixer.add(uint64_t{numbers.size()});
  for (const SymbolicNumber& number : numbers) mix(number, mixer);
}

bool are_equal(const SymbolicNumber& a, const SymbolicNumber& b) {
  if (a.expression != b.expression) return false;
  return a.expression.empty() ? a.value == b.value : a.min == b.min && a.max == b.max;
}

bool are_equal(std::span<const SymbolicNumber> a, std::span<const SymbolicNumber> b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const SymbolicNumber& x, const SymbolicNumber& y) { return are_equal(x, y); });
}

bool is_in_range(const SymbolicNumber& number) {
  return number.expression.empty() || (number.min <= number.value && number.value <= number.max);
}

bool are_names_equal(std::span<const InputDevice> a, std::span<const InputDevice> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const InputDevice& x, const InputDevice& y) { return x.name == y.name; });
}

bool are_generations_equal(std::span<const InputDevice> a, std::span<const InputDevice> b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const InputDevice& x, const InputDevice& y) { return x.generation == y.generation; });
}

/// The first field that differs; the names are known to be equal. Allocates nothing.
std::optional<SignatureField> first_difference(const InputDescription& captured,
                                               const InputDescription& current) {
  if (captured.layout != current.layout) return SignatureField::Layout;
  if (!are_names_equal(captured.devices, current.devices)) return SignatureField::Device;
  if (!are_generations_equal(captured.devices, current.devices)) {
    return SignatureField::DeviceGeneration;
  }
  if (captured.memory_class != current.memory_class) return SignatureField::MemoryClass;
  if (captured.dtype != current.dtype) return SignatureField::Type;
  if (!are_equal(captured.size_bytes, current.size_bytes)) return SignatureField::TotalBytes;
  if (captured.base_bytes != current.base_bytes) return SignatureField::BaseBytes;
  if (captured.shape.size() != current.shape.size()) return SignatureField::Rank;
  if (!are_equal(captured.shape, current.shape)) return SignatureField::Shape;
  if (!are_equal(captured.strides, current.strides)) return SignatureField::Strides;
  if (!are_equal(captured.offset_bytes, current.offset_bytes)) return SignatureField::ByteOffset;
  if (captured.alignment_bytes > current.alignment_bytes) return SignatureField::AlignmentClass;
  if (!is_in_range(current.size_bytes) || !is_in_range(current.offset_bytes) ||
      !std::all_of(current.shape.begin(), current.shape.end(), is_in_range) ||
      !std::all_of(current.strides.begin(), current.strides.end(), is_in_range)) {
    return SignatureField::Range;
  }
  return std::nullopt;
}

std::optional<SignatureField> first_difference(const VariableBinding& captured,
                                               const VariableBinding& current) {
  if (captured.name != current.name || captured.min != current.min || captured.max != current.max) {
    return SignatureField::Variables;
  }
  if (current.value < current.min || current.value > current.max) return SignatureField::Range;
  return std::nullopt;
}

std::string print(const SymbolicNumber& number, bool with_value = false) {
  if (number.expression.empty()) return std::to_string(number.value);
  std::string text = std::string(number.expression) + " in [" + std::to_string(number.min) + ", " +
                     std::to_string(number.max) + "]";
  if (with_value) text += " = " + std::to_string(number.value);
  return text;
}

std::string print(std::span<const SymbolicNumber> numbers, bool with_values = false) {
  std::string text = "[";
  for (const SymbolicNumber& number : numbers) {
    if (text.size() > 1) text += ", ";
    text += print(number, with_values);
  }
  return text + "]";
}

std::string print(const VariableBinding& variable, bool with_value) {
  return print(SymbolicNumber{variable.value, variable.name, variable.min, variable.max},
               with_value);
}

std::string print(std::span<const VariableBinding> variables) {
  std::string text = "[";
  for (const VariableBinding& variable : variables) {
    if (text.size() > 1) text += ", ";
    text += print(variable, false);
  }
  return text + "]";
}

std::string print_names(std::span<const InputDescription> inputs) {
  std::string text = "[";
  for (const InputDescription& input : inputs) {
    if (text.size() > 1) text += ", ";
    text += input.name;
  }
  return text + "]";
}

std::string print(SignatureField field, const InputDescription& input) {
  std::string text;
  switch (field) {
    case SignatureField::Layout:
      return input.layout.empty() ? "none" : "'" + std::string(input.layout) + "'";
    case SignatureField::Device:
      for (const InputDevice& device : input.devices) {
        text += (text.empty() ? "" : ", ") + std::string(device.name);
      }
      return text.empty() ? "none" : text;
    case SignatureField::DeviceGeneration:
      for (const InputDevice& device : input.devices) {
        text += (text.empty() ? "" : ", ") + std::to_string(device.generation);
      }
      return text;
    case SignatureField::MemoryClass: return std::string(to_string(input.memory_class));
    case SignatureField::Type: return std::string(to_string(input.dtype));
    case SignatureField::TotalBytes: return print(input.size_bytes);
    case SignatureField::BaseBytes: return std::to_string(input.base_bytes);
    case SignatureField::Rank: return std::to_string(input.shape.size());
    case SignatureField::Shape: return print(input.shape);
    case SignatureField::Strides: return print(input.strides);
    case SignatureField::ByteOffset: return print(input.offset_bytes);
    case SignatureField::AlignmentClass: return std::to_string(input.alignment_bytes);
    case SignatureField::Range:
      return "size " + print(input.size_bytes, true) + ", offset " +
             print(input.offset_bytes, true) + ", shape " + print(input.shape, true) +
             ", strides " + print(input.strides, true);
    case SignatureField::Names:
    case SignatureField::Variables: break;
  }
  return std::string(input.name);
}

bool are_names_equal(std::span<const InputDescription> a, std::span<const InputDescription> b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const InputDescription& x, const InputDescription& y) { return x.name == y.name; });
}

}  // namespace

std::string_view to_string(MemoryClass memory_class) {
  switch (memory_class) {
    case MemoryClass::Device: return "device";
    case MemoryClass::HostMapped: return "host-mapped";
    case MemoryClass::External: return "external";
  }
  return "?";
}

std::string_view to_string(SignatureField field) {
  switch (field) {
    case SignatureField::Names: return "names";
    case SignatureField::Layout: return "layout";
    case SignatureField::Device: return "device";
    case SignatureField::DeviceGeneration: return "device generation";
    case SignatureField::MemoryClass: return "memory class";
    case SignatureField::Type: return "type";
    case SignatureField::TotalBytes: return "total bytes";
    case SignatureField::BaseBytes: return "base bytes";
    case SignatureField::Rank: return "rank";
    case SignatureField::Shape: return "shape";
    case SignatureField::Strides: return "strides";
    case SignatureField::ByteOffset: return "byte offset";
    case SignatureField::AlignmentClass: return "alignment class";
    case SignatureField::Variables: return "variables";
    case SignatureField::Range: return "range";
  }
  return "?";
}

uint32_t alignment_class(uint64_t address) {
  const uint64_t bits = address | 256U;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

std::string frame_layout(std::string_view format, int64_t width_px, int64_t height_px,
                         int64_t stride_bytes) {
  return std::string(format) + " " + std::to_string(width_px) + "x" + std::to_string(height_px) +
         " stride " + std::to_string(stride_bytes);
}

uint64_t hash_signature(std::span<const InputDescription> inputs,
                        std::span<const VariableBinding> variables) {
  WordMixer mixer;
  mixer.add(uint64_t{inputs.size()});
  for (const InputDescription& input : inputs) {
    mixer.add(input.name);
    mixer.add(input.layout);
    mixer.add(uint64_t{input.devices.size()});
    for (const InputDevice& device : input.devices) mixer.add(device.name);
    mixer.add(static_cast<uint64_t>(input.memory_class) << 8U | static_cast<uint64_t>(input.dtype));
    mix(input.size_bytes, mixer);
    mixer.add(input.base_bytes);
    mix(input.shape, mixer);
    mix(input.strides, mixer);
    mix(input.offset_bytes, mixer);
  }
  mixer.add(uint64_t{variables.size()});
  for (const VariableBinding& variable : variables) {
    mixer.add(variable.name);
    mixer.add(static_cast<uint64_t>(variable.min));
    mixer.add(static_cast<uint64_t>(variable.max));
  }
  return mixer.result();
}

struct Signature::Data {
  uint64_t hash = 0;
  std::vector<InputDescription> inputs;
  std::vector<VariableBinding> variables;
  // What these look at. Deques, because their elements stay where they are.
  std::deque<std::string> texts;
  std::deque<std::vector<SymbolicNumber>> numbers;
  std::deque<std::vector<InputDevice>> devices;

  std::string_view keep(std::string_view text) { return texts.emplace_back(text); }
  SymbolicNumber keep(SymbolicNumber number) {
    number.expression = keep(number.expression);
    return number;
  }
  std::span<const SymbolicNumber> keep(std::span<const SymbolicNumber> some) {
    std::vector<SymbolicNumber>& kept = numbers.emplace_back(some.begin(), some.end());
    for (SymbolicNumber& number : kept) number = keep(number);
    return kept;
  }
  std::span<const InputDevice> keep(std::span<const InputDevice> some) {
    std::vector<InputDevice>& kept = devices.emplace_back(some.begin(), some.end());
    for (InputDevice& device : kept) device.name = keep(device.name);
    return kept;
  }
};

Signature::Signature(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

Signature Signature::make(std::span<const InputDescription> inputs,
                          std::span<const VariableBinding> variables) {
  auto data = std::make_shared<Data>();
  for (InputDescription input : inputs) {
    input.name = data->keep(input.name);
    input.layout = data->keep(input.layout);
    input.devices = data->keep(input.devices);
    input.size_bytes = data->keep(input.size_bytes);
    input.shape = data->keep(input.shape);
    input.strides = data->keep(input.strides);
    input.offset_bytes = data->keep(input.offset_bytes);
    data->inputs.push_back(input);
  }
  for (VariableBinding variable : variables) {
    variable.name = data->keep(variable.name);
    data->variables.push_back(variable);
  }
  data->hash = hash_signature(data->inputs, data->variables);
  return Signature(std::move(data));
}

uint64_t Signature::hash() const { return data_->hash; }
std::span<const InputDescription> Signature::inputs() const { return data_->inputs; }
std::span<const VariableBinding> Signature::variables() const { return data_->variables; }

std::optional<SignatureDifference> Signature::find_difference(
    std::span<const InputDescription> inputs, std::span<const VariableBinding> variables) const {
  if (!are_names_equal(data_->inputs, inputs)) {
    return SignatureDifference{SignatureField::Names, -1, print_names(data_->inputs),
                               print_names(inputs)};
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputDescription& captured = data_->inputs[i];
    if (const auto field = first_difference(captured, inputs[i])) {
      return SignatureDifference{*field, static_cast<int>(i), print(*field, captured),
                                 print(*field, inputs[i])};
    }
  }
  if (data_->variables.size() != variables.size()) {
    return SignatureDifference{SignatureField::Variables, -1, print(data_->variables),
                               print(variables)};
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    const VariableBinding& captured = data_->variables[i];
    if (const auto field = first_difference(captured, variables[i])) {
      const bool with_value = *field == SignatureField::Range;
      return SignatureDifference{*field, -1, print(captured, with_value),
                                 print(variables[i], with_value)};
    }
  }
  return std::nullopt;
}

Status Signature::check(std::span<const InputDescription> inputs,
                        std::span<const VariableBinding> variables) const {
  // Equal hashes are no proof, and some fields are not in them; unequal ones leave only the question of where.
  const bool is_same_hash = hash_signature(inputs, variables) == data_->hash;
  const std::optional<SignatureDifference> difference = find_difference(inputs, variables);
  if (!difference) {
    IGNIS_CHECK(is_same_hash) << "Equal signatures have different hashes.";
    return Status::ok();
  }
  const std::string who =
      difference->input < 0
          ? "The call"
          : "Input '" + std::string(data_->inputs[static_cast<size_t>(difference->input)].name) +
                "'";
  const std::string what = std::string(to_string(difference->field)) + " " + difference->captured +
                           " -> " + difference->current;
  if (difference->field == SignatureField::DeviceGeneration) {
    return Error(ErrorCode::DeviceLost,
                 who + " lies on a device that was opened anew since the capture: " + what +
                     "; rebind the capture or capture again.",
                 "StaleCapture");
  }
  return Error(ErrorCode::InvalidArgument,
               who + " is not what was captured: " + what + "; pass what fits or capture again.",
               "SignatureMismatch");
}

}  // namespace ignis::exec
