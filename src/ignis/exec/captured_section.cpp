#include "ignis/exec/captured_section.h"

#include "ignis/base/math.h"
#include "ignis/exec/held_memory.h"
#include "ignis/exec/run_linked.h"
#include "ignis/exec/section_fields.h"
#include "ignis/exec/template_section.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace ignis::exec {
namespace {

constexpr uint32_t kCapturedVersion = 1;

Error damaged(const std::string& what) {
  return Error(ErrorCode::InvalidArgument, "The capture " + what + ".", "BadCaptured");
}

void put_template(ByteWriter& to, const TemplateRef& made, bool is_retargetable) {
  put_bool(to, made != nullptr);
  if (made == nullptr) return;
  ByteWriter bytes;
  write_template(bytes, made->queues(), is_retargetable);
  to.put_blob(bytes.bytes());
}
Result<TemplateRef> take_template(FieldReader& from) {
  if (!from.take_bool()) return TemplateRef();
  IGNIS_TRY_ASSIGN(QueueTemplate queues, read_template(from.take_blob()));
  return TemplateRef(std::make_shared<const SharedTemplate>(std::move(queues)));
}

void put_capabilities(ByteWriter& to, const runtime::Capabilities& of) {
  for (const bool flag : {of.is_queued, of.has_unified_memory, of.has_network_card, of.is_in_order,
                          of.chains_launches, of.has_device_graphs, of.crosses_host_memory,
                          of.can_recover, of.is_host_coherent}) {
    put_bool(to, flag);
  }
  put_int(to, of.copy_queues);
  put_int(to, of.signal_bits);
  to.put(of.ticks_per_us);
  to.put_text(of.peer_group);
}
runtime::Capabilities take_capabilities(FieldReader& from) {
  runtime::Capabilities of;
  for (bool* flag : {&of.is_queued, &of.has_unified_memory, &of.has_network_card, &of.is_in_order,
                     &of.chains_launches, &of.has_device_graphs, &of.crosses_host_memory,
                     &of.can_recover, &of.is_host_coherent}) {
    *flag = from.take_bool();
  }
  of.copy_queues = from.take_int();
  of.signal_bits = from.take_int();
  of.ticks_per_us = from.take<uint32_t>();
  of.peer_group = from.take_text();
  return of;
}

void put_dtype(ByteWriter& to, DType dtype) { to.put_text(to_string(dtype)); }
DType take_dtype(FieldReader& from) {
  const std::string text = from.take_text();
  const Result<DType> dtype = parse_dtype(text);
  if (dtype && to_string(*dtype) == text && size_bytes(*dtype) > 0) return *dtype;
  from.refuse();
  return DType::Float32;
}

void put_number(ByteWriter& to, const SymbolicNumber& number) {
  to.put(number.value);
  to.put_text(number.expression);
  if (number.expression.empty()) return;
  to.put(number.min);
  to.put(number.max);
}
void put_numbers(ByteWriter& to, std::span<const SymbolicNumber> numbers) {
  put_count(to, numbers);
  for (const SymbolicNumber& number : numbers) put_number(to, number);
}

/// A signature while it is read: its texts and lists stay where they are.
class SignatureReader {
 public:
  explicit SignatureReader(FieldReader& from) : from_(from) {}

  Signature read() {
    const uint64_t input_count = from_.take_count(60);
    for (uint64_t i = 0; i < input_count; ++i) inputs_.push_back(take_input());
    const uint64_t variable_count = from_.take_count(28);
    for (uint64_t i = 0; i < variable_count; ++i) {
      VariableBinding variable;
      variable.name = take_text();
      variable.value = from_.take<int64_t>();
      variable.min = from_.take<int64_t>();
      variable.max = from_.take<int64_t>();
      if (variable.value < variable.min || variable.value > variable.max) from_.refuse();
      if (!variables_.empty() && variables_.back().name >= variable.name) from_.refuse();
      variables_.push_back(variable);
    }
    return Signature::make(inputs_, variables_);
  }

 private:
  std::string_view take_text() { return texts_.emplace_back(from_.take_text()); }

  SymbolicNumber take_number() {
    SymbolicNumber number;
    number.value = from_.take<int64_t>();
    number.expression = take_text();
    if (number.expression.empty()) return number;
    number.min = from_.take<int64_t>();
    number.max = from_.take<int64_t>();
    if (number.value < number.min || number.value > number.max) from_.refuse();
    return number;
  }
  std::span<const SymbolicNumber> take_numbers() {
    std::vector<SymbolicNumber>& numbers = numbers_.emplace_back(from_.take_count(12));
    for (SymbolicNumber& number : numbers) number = take_number();
    return numbers;
  }

  InputDescription take_input() {
    InputDescription input;
    input.name = take_text();
    input.layout = take_text();
    std::vector<InputDevice>& devices = devices_.emplace_back(from_.take_count(4));
    for (InputDevice& device : devices) device = {take_text(), 0};  // any generation will do
    input.devices = devices;
    input.memory_class = from_.take_enum(MemoryClass::External);
    input.dtype = take_dtype(from_);
    input.size_bytes = take_number();
    input.base_bytes = from_.take<uint64_t>();
    input.shape = take_numbers();
    input.strides = take_numbers();
    input.offset_bytes = take_number();
    input.alignment_bytes = from_.take<uint32_t>();
    if (!is_power_of_two(input.alignment_bytes) || input.alignment_bytes > 256) from_.refuse();
    const auto is_negative = [](const SymbolicNumber& number) { return number.value < 0; };
    if (is_negative(input.size_bytes) || is_negative(input.offset_bytes) ||
        std::any_of(input.shape.begin(), input.shape.end(), is_negative)) {
      from_.refuse();
    }
    return input;
  }

  FieldReader& from_;
  std::vector<InputDescription> inputs_;
  std::vector<VariableBinding> variables_;
  std::deque<std::string> texts_;
  std::deque<std::vector<SymbolicNumber>> numbers_;
  std::deque<std::vector<InputDevice>> devices_;
};

void put_signature(ByteWriter& to, const Signature& signature) {
  put_count(to, signature.inputs());
  for (const InputDescription& input : signature.inputs()) {
    to.put_text(input.name);
    to.put_text(input.layout);
    put_count(to, input.devices);
    for (const InputDevice& device : input.devices) to.put_text(device.name);
    put_enum(to, input.memory_class);
    put_dtype(to, input.dtype);
    put_number(to, input.size_bytes);
    to.put(input.base_bytes);
    put_numbers(to, input.shape);
    put_numbers(to, input.strides);
    put_number(to, input.offset_bytes);
    to.put(input.alignment_bytes);
  }
  put_count(to, signature.variables());
  for (const VariableBinding& variable : signature.variables()) {
    to.put_text(variable.name);
    to.put(variable.value);
    to.put(variable.min);
    to.put(variable.max);
  }
}

void put_output(ByteWriter& to, const CapturedOutput& output) {
  to.put_text(output.name);
  put_dtype(to, output.dtype);
  put_count(to, output.shape);
  for (const int64_t extent : output.shape) to.put(extent);
  put_int(to, output.range.buffer);
  put_int(to, output.range.lane);
  to.put(output.range.offset_bytes);
  to.put(output.range.size_bytes);
  put_int(to, output.range.item_bytes);
  to.put(output.alignment_bytes);
}
CapturedOutput take_output(FieldReader& from) {
  CapturedOutput output;
  output.name = from.take_text();
  output.dtype = take_dtype(from);
  output.shape.resize(from.take_count(sizeof(int64_t)));
  for (int64_t& extent : output.shape) extent = from.take<int64_t>();
  output.range.buffer = from.take_int();
  output.range.lane = from.take_int();
  output.range.offset_bytes = from.take<uint64_t>();
  output.range.size_bytes = from.take<uint64_t>();
  output.range.item_bytes = from.take_int();
  output.alignment_bytes = from.take<uint32_t>();
  return output;
}

void put_guards(ByteWriter& to, const GuardSet& guards) {
  const std::vector<GuardValue> values = guards.values();
  put_count(to, values);
  for (const GuardValue& guard : values) {
    to.put_text(guard.name);
    to.put(static_cast<uint8_t>(guard.value.index()));
    switch (guard.value.index()) {
      case 0: put_bool(to, std::get<bool>(guard.value)); break;
      case 1: to.put(std::get<int64_t>(guard.value)); break;
      case 2: to.put(std::get<double>(guard.value)); break;
      default: to.put_text(std::get<std::string_view>(guard.value)); break;
    }
  }
}
Result<GuardSet> take_guards(FieldReader& from) {
  std::deque<std::string> texts;
  std::vector<GuardValue> values(from.take_count(6));
  for (GuardValue& guard : values) {
    guard.name = texts.emplace_back(from.take_text());
    switch (from.take<uint8_t>()) {
      case 0: guard.value = from.take_bool(); break;
      case 1: guard.value = from.take<int64_t>(); break;
      case 2: guard.value = from.take<double>(); break;
      case 3: guard.value = std::string_view(texts.emplace_back(from.take_text())); break;
      default: from.refuse();
    }
  }
  return GuardSet::make(values);
}

Status put_held(ByteWriter& to, const HeldBuffer& held, const PlaceWeights& place) {
  put_int(to, held.buffer);
  put_enum(to, held.kind);
  to.put_text(held.name);
  put_count(to, held.bytes);
  for (const HostBytes& bytes : held.bytes) {
    to.put(place(bytes.bytes));
    to.put(uint64_t{bytes.bytes.size()});
  }
  return Status::ok();
}
Result<HeldBuffer> take_held(FieldReader& from, std::span<const std::byte> weights,
                             const std::shared_ptr<const void>& owner) {
  HeldBuffer held;
  held.buffer = from.take_int();
  held.kind = from.take_enum(HeldKind::Scratch);
  held.name = from.take_text();
  held.bytes.resize(from.take_count(16));
  for (HostBytes& bytes : held.bytes) {
    const auto offset = from.take<uint64_t>();
    const auto size = from.take<uint64_t>();
    if (offset % kHeldAlignmentBytes != 0 || !is_range_inside(offset, size, weights.size())) {
      return damaged("holds '" + held.name + "' of " + std::to_string(size) + " bytes at " +
                     std::to_string(offset) + " of " + std::to_string(weights.size()) +
                     " bytes of weights");
    }
    bytes = {weights.subspan(offset, size), owner};
  }
  return held;
}

Status check_written(const Captured& captured) {
  for (const HeldBuffer& held : captured.held) {
    const bool comes_back = held.kind == HeldKind::State || held.kind == HeldKind::Scratch ||
                            !held.bytes.empty() ||
                            (held.kind == HeldKind::OneTime && captured.one_time != nullptr);
    if (comes_back) continue;
    return Error(ErrorCode::InvalidArgument,
                 "The bytes of '" + held.name + "' (" + std::string(to_string(held.kind)) +
                     ") are only on a device; copy them to the host before the capture is written.",
                 "NoHostCopy");
  }
  return Status::ok();
}

}  // namespace

Status write_captured(ByteWriter& to, const Captured& captured, const PlaceWeights& place,
                      bool is_retargetable) {
  IGNIS_TRY(check_written(captured));
  const bool drops = is_retargetable || captured.is_retargetable;
  to.put(kCapturedVersion);
  put_bool(to, drops);
  put_template(to, captured.queues, drops);
  put_template(to, captured.one_time, drops);
  put_count(to, captured.shadow_copies);
  for (const TemplateRef& copy : captured.shadow_copies) put_template(to, copy, drops);
  put_signature(to, captured.signature);
  put_count(to, captured.outputs);
  for (const CapturedOutput& output : captured.outputs) put_output(to, output);
  put_enum(to, captured.output_mode);
  put_int(to, captured.ring_size);
  put_int(to, captured.max_sets);
  put_guards(to, captured.guards);
  put_count(to, captured.held);
  for (const HeldBuffer& held : captured.held) IGNIS_TRY(put_held(to, held, place));
  put_count(to, captured.devices);
  for (const CapturedDevice& device : captured.devices) {
    to.put_text(device.name);
    put_capabilities(to, device.capabilities);
  }
  put_count(to, captured.peak_bytes);
  for (const auto& [device, bytes] : captured.peak_bytes) {
    to.put_text(device);
    to.put(bytes);
  }
  to.put_text(captured.group_report);
  return Status::ok();
}

Result<CapturedRef> read_captured(std::span<const std::byte> bytes,
                                  std::span<const std::byte> weights,
                                  const std::shared_ptr<const void>& owner) {
  FieldReader from(bytes);
  const auto version = from.take<uint32_t>();
  if (version != kCapturedVersion && bytes.size() >= sizeof version) {
    return Error(ErrorCode::InvalidArgument,
                 "The capture has version " + std::to_string(version) +
                     "; this code reads version " + std::to_string(kCapturedVersion) + ".",
                 "VersionMismatch");
  }
  Captured made;
  made.is_retargetable = from.take_bool();
  IGNIS_TRY_ASSIGN(made.queues, take_template(from));
  IGNIS_TRY_ASSIGN(made.one_time, take_template(from));
  made.shadow_copies.resize(from.take_count(1));
  for (TemplateRef& copy : made.shadow_copies) {
    IGNIS_TRY_ASSIGN(copy, take_template(from));
  }
  made.signature = SignatureReader(from).read();
  made.outputs.resize(from.take_count(44));
  for (CapturedOutput& output : made.outputs) output = take_output(from);
  made.output_mode = from.take_enum(OutputMode::Caller);
  made.ring_size = from.take_int();
  made.max_sets = from.take_int();
  IGNIS_TRY_ASSIGN(made.guards, take_guards(from));
  const uint64_t held_count = from.take_count(13);
  for (uint64_t i = 0; i < held_count; ++i) {
    IGNIS_TRY_ASSIGN(HeldBuffer held, take_held(from, weights, owner));
    if (i > 0 && made.held.back().buffer >= held.buffer) from.refuse();
    made.held.push_back(std::move(held));
  }
  made.devices.resize(from.take_count(29));
  for (CapturedDevice& device : made.devices) {
    device.name = from.take_text();
    device.capabilities = take_capabilities(from);
    if (&device != &made.devices.front() && (&device)[-1].name >= device.name) from.refuse();
  }
  made.peak_bytes.resize(from.take_count(12));
  for (auto& [device, peak] : made.peak_bytes) {
    device = from.take_text();
    peak = from.take<uint64_t>();
  }
  made.group_report = from.take_text();
  IGNIS_TRY(from.check("capture", "BadCaptured"));
  IGNIS_TRY(check_written(made));
  return Captured::make(std::move(made));
}

Result<CapturedRef> copy_held_to_host(const Captured& captured, Machine& machine,
                                      const runtime::WaitLimits& limits) {
  Captured made = captured;
  bool runs_once = false;
  for (HeldBuffer& held : made.held) {
    if (!held.lanes.empty() && (held.kind != HeldKind::Weights || held.bytes.empty())) {
      held.bytes.clear();
      const uint64_t size_bytes =
          captured.queues->queues().buffers[static_cast<size_t>(held.buffer)].size_bytes;
      for (const Placement& at : held.lanes) {
        if (at.memory == nullptr || at.memory->host() == nullptr) {
          return Error(ErrorCode::Unsupported,
                       "The host does not reach the memory of '" + held.name + "'.",
                       "NotHostVisible");
        }
        IGNIS_TRY(make_readable(machine, at, limits));
        const std::byte* begin = at.memory->host() + at.offset_bytes;
        auto copy = std::make_shared<const std::vector<std::byte>>(begin, begin + size_bytes);
        const std::span<const std::byte> bytes = *copy;
        held.bytes.push_back({bytes, std::move(copy)});
      }
    }
    if (held.kind == HeldKind::OneTime && !held.bytes.empty()) held.kind = HeldKind::Weights;
    runs_once = runs_once || held.kind == HeldKind::OneTime;
    held.lanes.clear();
  }
  if (!runs_once) made.one_time = nullptr;
  for (CapturedDevice& device : made.devices) device.generation = 0;
  return Captured::make(std::move(made));
}

}  // namespace ignis::exec
