#include "ignis/engine/eager/array.h"

#include "ignis/base/math.h"
#include "ignis/engine/eager/state.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

namespace ignis::engine {
namespace {

Error bad_view(const std::string& sentence) {
  return Error(ErrorCode::InvalidArgument, sentence, "BadView");
}

std::vector<int64_t> row_major(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

std::atomic<uint64_t> next_array_id{1};

}  // namespace

uint64_t new_array_id() { return next_array_id.fetch_add(1); }

tensor::Tensor apply_view(const std::vector<ArrayStep>& view, tensor::Tensor value) {
  for (const ArrayStep& step : view) {
    switch (step.kind) {
      case ArrayStep::Kind::Slice: value = tensor::shrink(value, step.bounds); break;
      case ArrayStep::Kind::Permute: value = tensor::permute(value, step.numbers); break;
      case ArrayStep::Kind::Reshape: value = tensor::reshape(value, step.numbers); break;
    }
  }
  return value;
}

tensor::Tensor spread_view(const std::vector<ArrayStep>& view, tensor::Tensor value) {
  for (auto step = view.rbegin(); step != view.rend(); ++step) {
    switch (step->kind) {
      case ArrayStep::Kind::Slice: {
        std::vector<std::pair<int64_t, int64_t>> around;
        for (size_t i = 0; i < step->bounds.size(); ++i) {
          around.emplace_back(step->bounds[i].first, step->from[i] - step->bounds[i].second);
        }
        value = tensor::pad(value, around);
        break;
      }
      case ArrayStep::Kind::Permute: {
        std::vector<int64_t> inverse(step->numbers.size());
        for (size_t i = 0; i < inverse.size(); ++i) {
          inverse[static_cast<size_t>(step->numbers[i])] = static_cast<int64_t>(i);
        }
        value = tensor::permute(value, inverse);
        break;
      }
      case ArrayStep::Kind::Reshape: value = tensor::reshape(value, step->from); break;
    }
  }
  return value;
}

void Array::State::set_storage(StorageRef to) {
  storage = std::move(to);
  if (view.empty()) {
    shape = storage->shape;
    strides = row_major(shape);
  }
  dtype = storage->dtype;
  device = storage->device;
  if (!name.empty() && storage->name.empty()) storage->name = name;
  storage->is_constant |= is_constant;
  shape_numbers.clear();
  stride_numbers.clear();
  for (const int64_t extent : shape) shape_numbers.push_back({.value = extent});
  for (const int64_t stride : strides) stride_numbers.push_back({.value = stride});
  expression = tensor::Tensor();
  held.clear();
}

bool Array::State::is_contiguous() const {
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != stride) return false;
    stride *= shape[i];
  }
  return true;
}

DType Array::dtype() const { return state_->dtype; }
const Shape& Array::shape() const { return state_->shape; }
const std::string& Array::device() const { return state_->device; }
bool Array::is_realized() const { return state_->storage != nullptr; }
bool Array::is_virtual() const { return state_->storage == nullptr && state_->is_virtual; }
uint64_t Array::id() const { return state_->id; }
uint64_t Array::base() const { return state_->storage == nullptr ? 0 : state_->storage->id; }

tensor::Tensor Array::value() const {
  if (const Status status = check(); !status) throw tensor::GraphError(status.error());
  State& state = *state_;
  if (state.storage == nullptr) return state.expression;
  const ir::Node leaf = state.workspace->leaves->leaf(*state.storage);
  if (!(state.viewed_leaf == leaf)) {
    state.viewed_leaf = leaf;
    state.viewed = apply_view(state.view, tensor::Tensor(state.workspace->leaves->graph(),
                                                         state.viewed_leaf, state.name));
  }
  return state.viewed;
}

Array Array::with_result(exec::OutputHandle handle, int output) const {
  Array made = *this;
  made.result_ = std::move(handle);
  made.output_ = output;
  return made;
}

Status Array::check() const {
  if (!is_stale()) return {};
  return Error(ErrorCode::InvalidArgument,
               "Output " + std::to_string(output_) + " of replay " + std::to_string(sequence()) +
                   " was written over by a later replay; read it before, or capture with the mode "
                   "copy or ring.",
               "StaleOutput");
}

bool Array::is_sole() const {
  return state_.use_count() == 1 &&
         (state_->storage == nullptr || state_->storage.use_count() == 1);
}

Result<Array> Array::slice(const std::vector<std::pair<int64_t, int64_t>>& bounds) const {
  const State& from = *state_;
  if (bounds.size() != from.shape.size()) {
    return bad_view("A slice of " + to_string(from.shape) + " has " +
                    std::to_string(bounds.size()) +
                    " pairs of bounds; it needs one for each axis.");
  }
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (bounds[i].first >= 0 && bounds[i].first <= bounds[i].second &&
        bounds[i].second <= from.shape[i]) {
      continue;
    }
    return bad_view("A slice of " + to_string(from.shape) + " takes [" +
                    std::to_string(bounds[i].first) + ", " + std::to_string(bounds[i].second) +
                    ") of axis " + std::to_string(i) + ".");
  }
  Shape shape;
  int64_t offset = from.offset;
  for (size_t i = 0; i < bounds.size(); ++i) {
    shape.push_back(bounds[i].second - bounds[i].first);
    if (is_realized()) offset += bounds[i].first * from.strides[i];
  }
  return view({ArrayStep::Kind::Slice, from.shape, bounds, {}}, std::move(shape), from.strides,
              offset);
}

Result<Array> Array::permute(const std::vector<int64_t>& perm) const {
  const State& from = *state_;
  std::vector<int64_t> sorted = perm, all(from.shape.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) {
    return bad_view("A permutation of " + to_string(from.shape) + " must name each axis once.");
  }
  Shape shape;
  std::vector<int64_t> strides;
  for (const int64_t axis : perm) {
    shape.push_back(from.shape[static_cast<size_t>(axis)]);
    if (is_realized()) strides.push_back(from.strides[static_cast<size_t>(axis)]);
  }
  return view({ArrayStep::Kind::Permute, from.shape, {}, perm}, std::move(shape),
              std::move(strides), from.offset);
}

Result<Array> Array::reshape(const Shape& shape) const {
  const State& from = *state_;
  IGNIS_TRY_ASSIGN(const int64_t count, checked_element_count(shape));
  if (count != element_count(from.shape)) {
    return bad_view(to_string(from.shape) + " has other elements than " + to_string(shape) + ".");
  }
  if (is_realized() && !from.is_contiguous()) {
    return bad_view("The elements of a view of " + to_string(from.shape) +
                    " do not lie one after the other; make it contiguous() before the reshape to " +
                    to_string(shape) + ".");
  }
  return view({ArrayStep::Kind::Reshape, from.shape, {}, shape}, shape, row_major(shape),
              from.offset);
}

Result<Array> Array::view(ArrayStep step, Shape shape, std::vector<int64_t> strides,
                          int64_t offset) const {
  IGNIS_TRY(check());
  const auto from = [this](std::shared_ptr<State> state) {
    Array array(std::move(state));
    array.result_ = result_;
    array.output_ = output_;
    return array;
  };
  auto made = std::make_shared<State>();
  made->workspace = state_->workspace;
  made->id = new_array_id();
  made->device = state_->device;
  made->dtype = state_->dtype;
  made->shape = std::move(shape);
  if (!is_realized()) {
    made->expression = apply_view({std::move(step)}, state_->expression);
    made->held = state_->held;
    made->is_virtual = state_->is_virtual;
    return from(std::move(made));
  }
  made->view = state_->view;
  made->view.push_back(std::move(step));
  made->strides = std::move(strides);
  made->offset = offset;
  made->set_storage(state_->storage);
  return from(std::move(made));
}

exec::Placement Array::base_memory(int lane) const {
  if (state_->storage == nullptr) return {};
  return state_->storage->placement(static_cast<size_t>(lane));
}

int Array::lane_count() const { return static_cast<int>(split_devices(state_->device).size()); }
int64_t Array::offset_elements() const { return state_->offset; }
std::vector<int64_t> Array::strides() const { return state_->strides; }
bool Array::is_contiguous() const { return state_->storage != nullptr && state_->is_contiguous(); }
const std::string& Array::name() const { return state_->name; }

Array& Array::set_name(std::string name) {
  state_->name = std::move(name);
  if (state_->storage != nullptr) state_->storage->name = state_->name;
  return *this;
}

Array& Array::mark_constant() {
  state_->is_constant = true;
  if (state_->storage != nullptr) state_->storage->is_constant = true;
  return *this;
}

TensorArgument describe(const Array& array) {
  const Array::State& state = *array.state_;
  TensorArgument made;
  made.tensor = state.id;
  made.is_realized = state.storage != nullptr;
  made.description.dtype = state.dtype;
  if (state.storage == nullptr) return made;
  Storage& storage = *state.storage;
  made.base = storage.id;
  for (size_t i = 0; i < storage.lanes.size(); ++i) {
    const runtime::QueuedDevice* device = state.workspace->machine->find(storage.lanes[i].device);
    storage.input_devices[i].generation = device == nullptr ? 1 : device->generation();
  }
  exec::InputDescription& to = made.description;
  const auto item = static_cast<int64_t>(size_bytes(state.dtype));
  to.layout = storage.layout;
  to.devices = storage.input_devices;
  to.memory_class = storage.memory_class;
  to.size_bytes.value = element_count(state.shape) * item;
  to.base_bytes = storage.size_bytes;
  to.shape = state.shape_numbers;
  to.strides = state.stride_numbers;
  to.offset_bytes.value = state.offset * item;
  // Memory that the host does not see starts where its device wants it: aligned for everything.
  to.alignment_bytes = exec::alignment_class(0);
  for (const StorageLane& lane : storage.lanes) {
    const std::byte* host = lane.memory == nullptr ? nullptr : lane.memory->host();
    to.alignment_bytes =
        std::min(to.alignment_bytes,
                 exec::alignment_class(reinterpret_cast<uint64_t>(host) + storage.offset_bytes +
                                       static_cast<uint64_t>(to.offset_bytes.value)));
  }
  return made;
}

}  // namespace ignis::engine
