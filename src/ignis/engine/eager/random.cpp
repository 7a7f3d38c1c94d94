#include "ignis/engine/eager/random.h"

#include "ignis/engine/eager/state.h"
#include "ignis/tensor/tensor.h"

namespace ignis::engine {
namespace {

using tensor::Tensor;

constexpr int kRounds = 20;
constexpr int kRotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
constexpr int64_t kParity = 0x1BD11BDA;

Tensor rotate_left(const Tensor& x, int count) {
  return tensor::bitwise_or(tensor::shift_left(x, count), tensor::shift_right(x, 32 - count));
}

}  // namespace

std::pair<Tensor, Tensor> threefry2x32(const std::pair<Tensor, Tensor>& key,
                                       const std::pair<Tensor, Tensor>& counter) {
  const std::shared_ptr<ir::Graph>& graph = key.first.graph();
  const Tensor parity = Tensor::full_int(graph, {}, kParity, DType::UInt32);
  const Tensor keys[3] = {key.first, key.second,
                          tensor::bitwise_xor(tensor::bitwise_xor(key.first, key.second), parity)};
  Tensor x0 = tensor::add(counter.first, keys[0]), x1 = tensor::add(counter.second, keys[1]);
  for (int round = 0; round < kRounds; ++round) {
    x0 = tensor::add(x0, x1);
    x1 = tensor::bitwise_xor(rotate_left(x1, kRotations[round % 8]), x0);
    if (round % 4 != 3) continue;
    const int injection = round / 4 + 1;
    x0 = tensor::add(x0, keys[injection % 3]);
    x1 = tensor::add(x1, tensor::add(keys[(injection + 1) % 3],
                                     Tensor::full_int(graph, {}, injection, DType::UInt32)));
  }
  return {x0, x1};
}

Result<WorkspaceState::Generator*> WorkspaceState::generator(const std::string& device) {
  Generator& made = generators[device];
  if (made.counter != nullptr) return &made;
  const uint32_t key[2] = {static_cast<uint32_t>(options.seed),
                           static_cast<uint32_t>(options.seed >> 32)};
  const uint64_t counter = 0;
  const auto place = [&](DType dtype, std::span<const std::byte> bytes,
                         int64_t count) -> Result<StorageRef> {
    StorageRef storage = leaves->make(dtype, {count}, device);
    IGNIS_TRY(allocate(*storage));
    IGNIS_TRY(write_memory(*machine, storage->lanes[0].memory, 0, bytes));
    storage->name = dtype == DType::UInt32 ? "random key" : "random counter";
    storage->is_generator_state = true;
    return storage;
  };
  Generator placed;
  IGNIS_TRY_ASSIGN(placed.key, place(DType::UInt32, std::as_bytes(std::span(key)), 2));
  IGNIS_TRY_ASSIGN(placed.counter, place(DType::UInt64, std::as_bytes(std::span(&counter, 1)), 1));
  made = std::move(placed);
  return &made;
}

Result<Array> Workspace::random_uniform(const Shape& shape, const std::string& device) const {
  IGNIS_TRY_ASSIGN(const int64_t count, checked_element_count(shape));
  IGNIS_TRY_ASSIGN(const std::string name, state_->device_name(device));
  if (split_devices(name).size() > 1) {
    return Error(
        ErrorCode::Unsupported,
        "Random numbers are drawn on one device; draw there and copy_to(\"" + name + "\").",
        "SeveralDevices");
  }
  if (count == 0) return zeros(shape, DType::Float32, name);
  IGNIS_TRY_ASSIGN(const WorkspaceState::Generator* generator, state_->generator(name));
  const StorageRef counter = generator->counter;
  return catch_graph_error([&]() -> Result<Array> {
    const Tensor state(graph(), state_->leaves->leaf(*counter));
    const Tensor key(graph(), state_->leaves->leaf(*generator->key));
    const Tensor position = tensor::add(state, Tensor::arange(graph(), 0, count, 1, DType::UInt64));
    const auto word = [](const Tensor& x) { return tensor::cast(x, DType::UInt32); };
    const Tensor bits = threefry2x32({tensor::select(key, 0, 0), tensor::select(key, 0, 1)},
                                     {word(position), word(tensor::shift_right(position, 32))})
                            .first;
    // 24 bits: every value is a float, and none is 1.
    const Tensor uniform =
        tensor::mul(tensor::cast(tensor::shift_right(bits, 8), DType::Float32), 0x1p-24);
    IGNIS_TRY_ASSIGN(
        std::vector<StorageRef> made,
        state_->compute({tensor::reshape(uniform, shape).node()}, name, /*draws_random=*/true));
    const Tensor next = tensor::add(state, Tensor::full_int(graph(), {1}, count, DType::UInt64));
    IGNIS_TRY(state_->assign(counter, next.node()));
    return state_->make_array(std::move(made.front()));
  });
}

Status Workspace::manual_seed(uint64_t seed) const {
  if (is_recording()) {
    return Error(ErrorCode::InvalidArgument,
                 "The generators are seeded while calls are recorded; seed before the capture.",
                 "DataAccessDuringCapture");
  }
  state_->options.seed = seed;
  const uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  const uint64_t counter = 0;
  for (auto& [device, generator] : state_->generators) {
    if (generator.counter == nullptr) continue;
    const Status state = state_->check_usable(*generator.counter);
    if (!state && state.error().reason() == "StorageLost") {
      generator = {};  // made anew when it is asked for
      continue;
    }
    for (const StorageRef& storage : {generator.key, generator.counter}) {
      IGNIS_TRY(state_->wait_for(*storage));
      const auto bytes = storage == generator.key ? std::as_bytes(std::span(key))
                                                  : std::as_bytes(std::span(&counter, 1));
      IGNIS_TRY(write_memory(*state_->machine, storage->lanes[0].memory, 0, bytes));
      state_->leaves->outdate(*storage);
      storage->contents = Contents::Known;
    }
  }
  return {};
}

}  // namespace ignis::engine
