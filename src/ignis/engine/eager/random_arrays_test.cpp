// Random programs over arrays, held against vectors of floats.

#include "ignis/engine/eager/test_places.h"

#include "tests/support/seed.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <random>

namespace ignis::engine {
namespace {

using Floats = std::vector<float>;

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

/// What lies in a storage.
struct Memory {
  Floats values;
};

/// An array and what it must be: elements of a storage, or values that an expression has.
struct Held {
  Array array;
  Shape shape;
  std::string device;
  std::shared_ptr<Memory> memory;  ///< null: not realized
  std::vector<size_t> index;       ///< of the elements in it
  Floats lazy;
  int depth = 0;        ///< of its expression over arrays with storage
  int64_t made_at = 0;  ///< how many writes there were before the expression

  Floats values() const {
    if (memory == nullptr) return lazy;
    Floats made;
    for (const size_t i : index) made.push_back(memory->values[i]);
    return made;
  }
};

float clamp(float x) { return std::min(100.0f, std::max(-100.0f, x)); }
tensor::Tensor clamp(const tensor::Tensor& x) { return tensor::clamp(x, -100.0f, 100.0f); }

/// Rows and columns of a shape of rank 1 or 2.
std::pair<int64_t, int64_t> extents(const Shape& shape) {
  return shape.size() == 1 ? std::pair<int64_t, int64_t>{1, shape[0]}
                           : std::pair<int64_t, int64_t>{shape[0], shape[1]};
}

template <typename T>
std::vector<T> transposed(const std::vector<T>& x, const Shape& shape) {
  const auto [rows, columns] = extents(shape);
  std::vector<T> made;
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) made.push_back(x[static_cast<size_t>(r * columns + c)]);
  }
  return made;
}

class RandomProgram {
 public:
  RandomProgram(Place& place, uint64_t seed) : ws_(place.ws()), rng_(seed) {
    devices_ = {"CPU"};
    for (const runtime::QueuedDevice* device : place.world.devices()) {
      devices_.push_back(device->name());
    }
  }

  void step() {
    if (held_.size() < 3) return make();
    if (held_.size() > 14) return drop();
    if (recorder_ != nullptr && --recorded_steps_ <= 0) return stop_recording();
    switch (rng_() % 16) {
      case 0: return make();
      case 1:
      case 2: return unary();
      case 3:
      case 4: return binary();
      case 5:
      case 6: return realize();
      case 7:
      case 8: return assign();
      case 9: return assign_self();
      case 10:
      case 11: return view();
      case 12: return copy();
      case 13: return drop();
      case 14: return recorder_ == nullptr && rng_() % 3 == 0 ? start_recording() : fill();
      default: return read_one();
    }
  }
  void finish() {
    if (recorder_ != nullptr) stop_recording();
    while (!held_.empty()) {
      read_at(held_.size() - 1);
      held_.pop_back();
    }
  }
  int64_t checked = 0, stale = 0, recordings = 0;

 private:
  size_t pick() { return rng_() % held_.size(); }

  void add_realized(Array array, const Shape& shape, Floats values) {
    Held made;
    made.device = array.device();
    made.array = std::move(array);
    made.shape = shape;
    realized(made, std::move(values));
    held_.push_back(std::move(made));
  }
  static void realized(Held& held, Floats values) {
    held.index.resize(values.size());
    std::iota(held.index.begin(), held.index.end(), 0);
    held.memory = std::make_shared<Memory>(Memory{std::move(values)});
    held.depth = 0;
  }

  /// Whether a call succeeded. It may fail only for what was written since.
  bool succeeded(const Status& status, int64_t made_at) {
    if (status) return true;
    const std::string& why = status.error().reason();
    EXPECT_TRUE(why == "StaleValue" || why == "LostValue") << status.error().to_string();
    EXPECT_LT(made_at, writes_) << "nothing was written since, and yet: "
                                << status.error().to_string();
    ++stale;
    return false;
  }

  void make() {
    static const Shape kShapes[] = {{2, 3}, {3, 2}, {6}};
    const Shape shape = kShapes[rng_() % 3];
    Floats values(6);
    for (float& value : values) value = static_cast<float>(static_cast<int>(rng_() % 17) - 8);
    add_realized(take(ws_.from_host(floats(shape, values), devices_[rng_() % devices_.size()])),
                 shape, values);
  }

  void add_lazy(const Held& from, const tensor::Tensor& value, const Shape& shape, Floats values,
                int64_t made_at, int depth) {
    Result<Array> array = ws_.lazy(value, from.device);
    if (!succeeded(array ? Status() : Status(array.error()), made_at)) return;
    Held made;
    made.array = *std::move(array);
    made.shape = shape;
    made.device = from.device;
    made.lazy = std::move(values);
    made.depth = depth;
    made.made_at = made_at;
    held_.push_back(std::move(made));
  }
  int64_t born(const Held& held) const { return held.memory == nullptr ? held.made_at : writes_; }

  void unary() {
    const Held from = held_[pick()];
    if (from.depth > 1) return;
    const tensor::Tensor x = from.array.value();
    Floats values = from.values();
    Shape shape = from.shape;
    tensor::Tensor y;
    switch (rng_() % 5) {
      case 0:
        y = tensor::neg(x);
        for (float& value : values) value = -value;
        break;
      case 1:
        y = clamp(tensor::add(tensor::mul(x, 2), 1));
        for (float& value : values) value = clamp(value * 2 + 1);
        break;
      case 2:
        y = tensor::flip(x, {0});
        if (shape.size() == 1) std::reverse(values.begin(), values.end());
        else values = flip_rows(values, shape);
        break;
      case 3: {
        if (shape.size() != 2) return;
        y = tensor::transpose(x);
        values = transposed(values, shape);
        std::swap(shape[0], shape[1]);
        break;
      }
      default: {
        const float sum = std::accumulate(values.begin(), values.end(), 0.0f);
        y = clamp(tensor::sub(x, tensor::sum(x, {}, false)));
        for (float& value : values) value = clamp(value - sum);
      }
    }
    add_lazy(from, y, shape, std::move(values), born(from), from.depth + 1);
  }
  static Floats flip_rows(const Floats& x, const Shape& shape) {
    const auto [rows, columns] = extents(shape);
    Floats made;
    for (int64_t r = rows; r-- > 0;) {
      made.insert(made.end(), x.begin() + r * columns, x.begin() + (r + 1) * columns);
    }
    return made;
  }

  void binary() {
    const Held a = held_[pick()], b = held_[pick()];
    if (a.shape != b.shape || a.device != b.device || a.depth + b.depth > 1) return;
    Floats values = a.values(), other = b.values();
    tensor::Tensor y;
    if (rng_() % 2 == 0) {
      y = clamp(tensor::add(a.array.value(), b.array.value()));
      for (size_t i = 0; i < values.size(); ++i) values[i] = clamp(values[i] + other[i]);
    } else {
      y = tensor::maximum(a.array.value(), b.array.value());
      for (size_t i = 0; i < values.size(); ++i) values[i] = std::max(values[i], other[i]);
    }
    add_lazy(a, y, a.shape, std::move(values), std::min(born(a), born(b)), a.depth + b.depth + 1);
  }

  void realize() {
    std::vector<Held*> group;
    std::vector<Array*> arrays;
    int64_t made_at = writes_;
    for (uint64_t i = 0; i < 1 + rng_() % 3; ++i) {
      Held& held = held_[pick()];
      if (std::find(group.begin(), group.end(), &held) != group.end()) continue;
      made_at = std::min(made_at, born(held));
      group.push_back(&held);
      arrays.push_back(&held.array);
    }
    // What did not get storage stays an expression; other devices' may have got it.
    (void)succeeded(ws_.realize(arrays), made_at);
    for (Held* held : group) {
      if (held->memory == nullptr && held->array.is_realized()) realized(*held, held->lazy);
    }
  }

  /// Writes into `to`, wherever it looks.
  void write(Held& to, const Floats& values) {
    ++writes_;
    for (size_t i = 0; i < values.size(); ++i) to.memory->values[to.index[i]] = values[i];
  }
  /// Storage for what is assigned to; false when it is stale.
  bool realize_one(Held& held) {
    if (held.memory != nullptr) return true;
    if (!succeeded(ws_.realize(held.array), held.made_at)) return false;
    realized(held, held.lazy);
    return true;
  }

  void assign() {
    Held& to = held_[pick()];
    const Held from = held_[pick()];
    if (from.shape != to.shape || from.device != to.device || !realize_one(to)) return;
    const Floats values = from.values();
    if (succeeded(ws_.assign(to.array, from.array), born(from))) write(to, values);
  }

  void assign_self() {
    Held& to = held_[pick()];
    if (!realize_one(to)) return;
    const tensor::Tensor x = to.array.value();
    Floats values = to.values();
    tensor::Tensor y;
    if (rng_() % 2 == 0) {
      y = clamp(tensor::add(x, 3));
      for (float& value : values) value = clamp(value + 3);
    } else {
      y = tensor::flip(x, {0});
      if (to.shape.size() == 1) std::reverse(values.begin(), values.end());
      else values = flip_rows(values, to.shape);
    }
    if (succeeded(ws_.assign(to.array, y), writes_)) write(to, values);
  }

  void fill() {
    Held& to = held_[pick()];
    if (!realize_one(to)) return;
    const auto value = static_cast<float>(rng_() % 5);
    if (succeeded(ws_.assign(to.array, tensor::Tensor::scalar(ws_.graph(), double{value})),
                  writes_)) {
      write(to, Floats(to.index.size(), value));
    }
  }

  void view() {
    const Held from = held_[pick()];
    Held made = from;
    std::vector<size_t> index(from.values().size());
    std::iota(index.begin(), index.end(), 0);
    Result<Array> array = Error(ErrorCode::Internal, "none");
    if (from.shape.size() == 2 && rng_() % 2 == 0) {
      array = from.array.permute({1, 0});
      index = transposed(index, from.shape);
      std::swap(made.shape[0], made.shape[1]);
    } else if (from.memory != nullptr && from.array.is_contiguous() && from.shape.size() == 2 &&
               rng_() % 2 == 0) {
      made.shape = {from.shape[0] * from.shape[1]};
      array = from.array.reshape(made.shape);
    } else {
      const auto [rows, columns] = extents(from.shape);
      const bool from_start = rng_() % 2 == 0;
      const int64_t part = columns > 1 ? columns - 1 : 1;
      const int64_t begin = from_start ? 0 : columns - part;
      std::vector<std::pair<int64_t, int64_t>> bounds = {{begin, begin + part}};
      if (from.shape.size() == 2) bounds.insert(bounds.begin(), {0, rows});
      array = from.array.slice(bounds);
      made.shape.back() = part;
      index.clear();
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = begin; c < begin + part; ++c) {
          index.push_back(static_cast<size_t>(r * columns + c));
        }
      }
    }
    ASSERT_TRUE(array) << array.error().to_string();
    made.array = *array;
    if (from.memory != nullptr) {
      for (size_t i = 0; i < index.size(); ++i) index[i] = from.index[index[i]];
      made.index = index;
    } else {
      made.lazy.clear();
      for (const size_t i : index) made.lazy.push_back(from.lazy[i]);
      made.depth = from.depth + 1;
    }
    held_.push_back(std::move(made));
  }

  void copy() {
    Held& from = held_[pick()];
    if (!realize_one(from)) return;
    const Floats values = from.values();
    const Shape shape = from.shape;
    Result<Array> array = rng_() % 3 == 0
                              ? ws_.clone(from.array)
                              : ws_.copy_to(from.array, devices_[rng_() % devices_.size()]);
    ASSERT_TRUE(array) << array.error().to_string();
    add_realized(*std::move(array), shape, values);
  }

  void drop() { held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(pick())); }

  void read_one() {
    if (recorder_ != nullptr) {
      EXPECT_EQ(reason(ws_.to_host(held_[pick()].array)), "DataAccessDuringCapture");
      return;
    }
    read_at(pick());
  }
  void read_at(size_t at) {
    Held& held = held_[at];
    if (!realize_one(held)) return;
    ++checked;
    ASSERT_EQ(read(ws_, held.array), held.values());
  }

  // Calls are recorded for some steps and run afterwards: to the same values.
  void start_recording() {
    recorder_ = std::make_unique<Recorder>();
    recorded_steps_ = 2 + static_cast<int>(rng_() % 8);
    ASSERT_TRUE(ok(ws_.set_recorder(recorder_.get())));
  }
  void stop_recording() {
    ASSERT_TRUE(ok(ws_.set_recorder(nullptr)));
    const Recording made = take(recorder_->finish());
    if (!made.schedule.calls.empty()) {
      ASSERT_TRUE(ok(ws_.run(made)));
      ++recordings;
      ++writes_;  // of everything that it computed
    }
    recorder_->mark_computed();
    recorder_.reset();
  }

  Workspace& ws_;
  std::mt19937_64 rng_;
  std::vector<std::string> devices_;
  std::vector<Held> held_;
  int64_t writes_ = 0;
  std::unique_ptr<Recorder> recorder_;
  int recorded_steps_ = 0;
};

class RandomArrays : public ::testing::TestWithParam<PlaceKind> {};
INSTANTIATE_TEST_SUITE_P(Places, RandomArrays,
                         ::testing::Values(PlaceKind::Cpu, PlaceKind::TwoDevices,
                                           PlaceKind::NoCopyQueue, PlaceKind::Unified,
                                           PlaceKind::Hidden));

TEST_P(RandomArrays, ProgramsComeToWhatVectorsComeTo) {
  const uint64_t seed = ignis::testing::test_seed();
  const int64_t steps = from_environment("IGNIS_TEST_STEPS", 1500);
  SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(seed));
  const auto place = make_place(GetParam());
  RandomProgram program(*place, seed);
  for (int64_t i = 0; i < steps; ++i) {
    program.step();
    ASSERT_FALSE(HasFailure()) << "step " << i;
  }
  program.finish();
  EXPECT_GT(program.checked, steps / 40);
  EXPECT_GT(program.stale, 0);
  EXPECT_GT(program.recordings, 0);
}

}  // namespace
}  // namespace ignis::engine
