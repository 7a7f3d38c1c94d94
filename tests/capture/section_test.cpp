// Captures and templates as bytes (capture spec 13).

#include "ignis/engine/queues/test_random.h"
#include "ignis/exec/captured_section.h"
#include "ignis/exec/template_section.h"

#include "tests/capture/capture_rig.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ignis::testing {
namespace {

using exec::OutputMode;

/// The weights' region of a file: 256-byte aligned, equal bytes once.
struct Weights {
  std::vector<std::byte> bytes;
  std::vector<uint64_t> offsets;

  exec::PlaceWeights place() {
    return [this](std::span<const std::byte> put) {
      bytes.resize((bytes.size() + 255) / 256 * 256);
      offsets.push_back(bytes.size());
      bytes.insert(bytes.end(), put.begin(), put.end());
      return offsets.back();
    };
  }
};

/// A capture as a file has it.
struct Saved {
  Weights weights;
  std::vector<std::byte> bytes;

  explicit Saved(const exec::Captured& captured, bool is_retargetable = false) {
    ByteWriter to;
    const Status status = exec::write_captured(to, captured, weights.place(), is_retargetable);
    EXPECT_TRUE(status) << (status ? "" : status.error().to_string());
    bytes = to.take();
  }
  Result<exec::CapturedRef> read(std::span<const std::byte> from) const {
    return exec::read_captured(from, weights.bytes, nullptr);
  }
  exec::CapturedRef load() const {
    Result<exec::CapturedRef> made = read(bytes);
    EXPECT_TRUE(made) << (made ? "" : made.error().to_string());
    return made ? *std::move(made) : nullptr;
  }
};

// Damaged templates move arguments to any address.
float get(const std::byte* from, int i) {
  float value = 0;
  std::memcpy(&value, from + static_cast<size_t>(i) * sizeof value, sizeof value);
  return value;
}
void put(std::byte* to, int i, float value) {
  std::memcpy(to + static_cast<size_t>(i) * sizeof value, &value, sizeof value);
}

/// state += x; y = state * w + once(w); everything that a capture may hold.
struct WholeRig : CaptureRig {
  explicit WholeRig(OutputMode mode = OutputMode::Borrow) : CaptureRig(1) {
    parts.output_mode = mode;
    const int add = add_program("add", 3, [](std::span<std::byte* const> buffers) {
      for (int i = 0; i < 2; ++i) {
        put(buffers[0], i, get(buffers[1], i) + get(buffers[2], i));
      }
    });
    const int times = add_program("times", 3, [](std::span<std::byte* const> buffers) {
      for (int i = 0; i < 2; ++i) {
        put(buffers[0], i, get(buffers[1], i) * get(buffers[2], i));
      }
    });
    const int scale = add_program("scale", 3, [](std::span<std::byte* const> buffers) {
      int64_t value = 0;
      std::memcpy(&value, buffers[2], sizeof value);
      for (int i = 0; i < 2; ++i) {
        put(buffers[0], i, get(buffers[1], i) * static_cast<float>(value));
      }
    });
    variable_list = {{{"i", 1, 1, 4}}};
    variables = variable_list;
    guards = {{"driver_side", std::string_view("left")},
              {"model_size", int64_t{2}},
              {"gain", 0.5},
              {"is_wide", true}};
    const exec::BufferView x = in("x", 2), y = out("y", 2);
    described[0].layout = "NV12 2x1 stride 2";
    const exec::BufferView state = held("state", exec::HeldKind::State, {10, 20});
    const exec::BufferView w = held("w", exec::HeldKind::Weights, {3, 4});
    const exec::BufferView once = held("once", exec::HeldKind::OneTime, {}, 2);
    const exec::BufferView t = temporary("t", 2), s = temporary("s", 2);
    const exec::BufferView cell = buffer("i", {"CPU"}, exec::kVariableBytes);
    schedule.buffers.back().variable = 0;
    call(times, once, {w, w});
    call(add, state, {state, x});
    call(times, t, {state, w});
    call(scale, s, {t, cell});
    call(add, y, {s, once});
    one_time_calls = {0};
  }
  std::array<exec::VariableBinding, 1> variable_list;
  exec::CapturedRef whole;  ///< for comparison
};

std::vector<float> frame(const WholeRig& rig, exec::Replay& replay, const exec::Placement& x) {
  return read(run(rig, replay, {x}), 0, 2);
}

TEST(CapturedSection, SE1_SE5_SavedAndLoadedItReplaysTheSame) {
  for (const auto mode : {OutputMode::Borrow, OutputMode::Copy, OutputMode::Ring}) {
    WholeRig rig(mode);
    const exec::CapturedRef captured = rig.capture();
    const Saved saved(*captured);
    const exec::CapturedRef loaded = saved.load();
    const auto direct = exec::Replay::create(captured, rig.machine).value();
    const auto replay = exec::Replay::create(loaded, rig.machine).value();
    EXPECT_EQ(replay->counts().links, 0U);
    for (int i = 1; i < 5; ++i) {
      rig.variable_list[0].value = i;
      const exec::Placement x = rig.block({static_cast<float>(i), 1});
      // state = (10, 20) + what came; y = state * (3, 4) * i + (9, 16).
      const float first = 10 + static_cast<float>(i * (i + 1) / 2),
                  second = 20 + static_cast<float>(i);
      const std::vector<float> expected = {first * 3 * static_cast<float>(i) + 9,
                                           second * 4 * static_cast<float>(i) + 16};
      EXPECT_EQ(frame(rig, *direct, x), expected);
      EXPECT_EQ(frame(rig, *replay, x), expected);
    }
    EXPECT_EQ(replay->counts().links, 1U);
    EXPECT_EQ(loaded->group_report, captured->group_report);
    EXPECT_EQ(loaded->peak_bytes, captured->peak_bytes);
    EXPECT_EQ(loaded->signature.hash(), captured->signature.hash());
    EXPECT_EQ(loaded->guards.hash(), captured->guards.hash());
    rig.guards[1].value = int64_t{3};
    EXPECT_EQ(run_error(rig, *replay, {rig.block({1, 1})}).reason(), "GuardMismatch");
    // Equal captures give equal bytes, and what was read writes the same.
    EXPECT_EQ(Saved(*captured).bytes, saved.bytes);
    EXPECT_EQ(Saved(*loaded).bytes, saved.bytes);
  }
}

TEST(CapturedSection, SE10_LoadedTwiceTheyShareNothingThatIsWritten) {
  WholeRig rig;
  const Saved saved(*rig.capture());
  const auto a = exec::Replay::create(saved.load(), rig.machine).value();
  const auto b = exec::Replay::create(saved.load(), rig.machine).value();
  const exec::Placement x = rig.block({1, 1});
  const exec::OutputHandle first = run(rig, *a, {x});
  EXPECT_EQ(frame(rig, *b, x), (std::vector<float>{42, 100}));
  EXPECT_EQ(frame(rig, *b, x), (std::vector<float>{45, 104}));
  EXPECT_EQ(read(first, 0, 2), (std::vector<float>{42, 100})) << "written by the other";
  EXPECT_EQ(frame(rig, *a, x), (std::vector<float>{45, 104}));
  EXPECT_NE(a->held_place("w").value().memory, b->held_place("w").value().memory);
}

TEST(CapturedSection, SE4_WeightsLieAtMultiplesOf256) {
  CaptureRig rig;
  const int add = rig.add_program("add", 4, [](std::span<std::byte* const> buffers) {
    floats(buffers[0])[0] = floats(buffers[1])[0] + floats(buffers[2])[24] + floats(buffers[3])[74];
  });
  const exec::BufferView x = rig.in("x", 1), y = rig.out("y", 1);
  std::vector<float> a(25), b(75);
  a[24] = 10;
  b[74] = 100;
  const exec::BufferView first = rig.held("a", exec::HeldKind::Weights, a);
  const exec::BufferView second = rig.held("b", exec::HeldKind::Weights, b);
  rig.call(add, y, {x, first, second});
  const Saved saved(*rig.capture());
  EXPECT_EQ(saved.weights.offsets, (std::vector<uint64_t>{0, 256}));
  EXPECT_EQ(saved.weights.bytes.size(), 556U);
  const auto replay = exec::Replay::create(saved.load(), rig.machine).value();
  EXPECT_EQ(read(run(rig, *replay, {rig.block({1})}), 0, 1)[0], 111);
  // And so they do in one arena on the device.
  const exec::Placement at = replay->held_place("a").value(),
                        other = replay->held_place("b").value();
  EXPECT_EQ(at.memory, other.memory);
  EXPECT_EQ(other.offset_bytes - at.offset_bytes, 256U);
}

TEST(CapturedSection, SE3_WeightsAreBroughtInPiecesOf32MiB) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  CaptureRig rig;
  const int last = rig.add_program("last", 3, [](std::span<std::byte* const> buffers) {
    floats(buffers[0])[0] =
        floats(buffers[1])[0] + floats(buffers[2])[100 * kMiB / sizeof(float) - 1];
  });
  const exec::BufferView x = rig.in("x", 1), y = rig.out("y", 1);
  std::vector<float> many(100 * kMiB / sizeof(float));
  many.back() = 5;
  rig.call(last, y, {x, rig.held("w", exec::HeldKind::Weights, many)});
  const auto replay = rig.replay();
  const exec::PrepareReport report = replay->prepare(kLong).value();
  EXPECT_EQ(report.uploaded.bytes, 100 * kMiB);
  EXPECT_EQ(report.uploaded.pieces, 4U) << "32, 32, 32 and 4 MiB";
  EXPECT_EQ(read(run(rig, *replay, {rig.block({1})}), 0, 1)[0], 6);
}

TEST(CapturedSection, SE8_DamageIsATypedError) {
  WholeRig rig;
  const Saved saved(*rig.capture());
  std::vector<std::byte> bytes = saved.bytes;
  bytes[0] = std::byte{9};
  EXPECT_EQ(saved.read(bytes).error().reason(), "VersionMismatch");
  bytes = saved.bytes;
  bytes.push_back(std::byte{0});
  EXPECT_EQ(saved.read(bytes).error().reason(), "TrailingBytes");
  // Weights that are shorter than what the capture says of them.
  EXPECT_EQ(exec::read_captured(saved.bytes, std::span(saved.weights.bytes).first(8), nullptr)
                .error()
                .reason(),
            "BadCaptured");
}

TEST(CapturedSection, SE9_ARetargetableOneHasNoProgramsOfAHost) {
  WholeRig rig;
  exec::QueueTemplate queues = rig.capture()->queues->queues();
  exec::SubmitProgram program;
  program.image.name = "submit";
  program.image.object = {std::byte{1}, std::byte{2}};
  queues.submit_programs = {program};
  for (exec::TemplateStep& step : queues.steps) step.batch.submit_program = 0;
  ByteWriter with, without;
  exec::write_template(with, queues);
  exec::write_template(without, queues, /*is_retargetable=*/true);
  const exec::QueueTemplate kept = exec::read_template(with.bytes()).value();
  ASSERT_EQ(kept.submit_programs.size(), 1U);
  EXPECT_EQ(kept.submit_programs[0].image.object, program.image.object);
  EXPECT_EQ(kept.steps, queues.steps);
  const exec::QueueTemplate dropped = exec::read_template(without.bytes()).value();
  EXPECT_TRUE(dropped.submit_programs.empty());
  for (const exec::TemplateStep& step : dropped.steps) EXPECT_EQ(step.batch.submit_program, -1);

  const Saved saved(*rig.capture(), /*is_retargetable=*/true);
  const exec::CapturedRef loaded = saved.load();
  EXPECT_TRUE(loaded->is_retargetable);
  const auto replay = exec::Replay::create(loaded, rig.machine).value();
  EXPECT_EQ(frame(rig, *replay, rig.block({1, 1})), (std::vector<float>{42, 100}));
}

TEST(CapturedSection, WhatOnlyADeviceHasIsCopiedToTheHostFirst) {
  WholeRig rig;
  const auto replay = rig.replay();
  const exec::Placement x = rig.block({1, 1});
  EXPECT_EQ(frame(rig, *replay, x), (std::vector<float>{42, 100}));
  // As a capture in a process has it: in memory of the device and nowhere else.
  exec::Captured parts = *replay->captured();
  for (exec::HeldBuffer& held : parts.held) {
    held.bytes.clear();
    held.lanes = {replay->held_place(held.name).value()};
  }
  parts.one_time = nullptr;
  const exec::CapturedRef here = exec::Captured::make(parts).value();
  Weights weights;
  ByteWriter to;
  EXPECT_EQ(exec::write_captured(to, *here, weights.place()).error().reason(), "NoHostCopy");
  const exec::CapturedRef copied = exec::copy_held_to_host(*here, *rig.machine, kLong).value();
  const Saved saved(*copied);
  // Its state goes on from where it was.
  const auto loaded = exec::Replay::create(saved.load(), rig.machine).value();
  EXPECT_EQ(frame(rig, *loaded, x), (std::vector<float>{45, 104}));
  EXPECT_EQ(frame(rig, *replay, x), (std::vector<float>{45, 104}));
}

/// An encoded template of a random schedule on random devices.
Result<exec::TemplateRef> random_template(Rig& rig, std::mt19937_64& rng) {
  engine::add_random_devices(rig, 2, rng);
  rig.add_missing_devices();
  rig.add_program("kernel", 4, [](std::span<std::byte* const>) {});
  std::vector<exec::BufferView> views = engine::add_random_buffers(rig, rng);
  if (rng() % 2 == 0) {
    for (size_t i = 0; i < views.size(); i += 2) {
      rig.schedule.buffers[static_cast<size_t>(views[i].buffer)].input = static_cast<int>(i / 2);
    }
  }
  engine::add_random_calls(rig, views, rng);
  rig.options.is_profiled = rng() % 3 == 0;
  rig.options.link_time_threshold = rng() % 4 == 0 ? 0 : 1000;
  return rig.compile_shared();
}

TEST(TemplateSection, RandomTemplatesComeBackAsTheyWere) {
  int templates = 0, batches = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    std::mt19937_64 rng(engine::test_seed() * 1'000'003 + i);
    Rig rig;
    const Result<exec::TemplateRef> made = random_template(rig, rng);
    if (!made) continue;  // a copy that nothing can do
    const exec::QueueTemplate& queues = (*made)->queues();
    ByteWriter to;
    exec::write_template(to, queues);
    const Result<exec::QueueTemplate> back = exec::read_template(to.bytes());
    ASSERT_TRUE(back) << "IGNIS_TEST_SEED=" << engine::test_seed() << ", template " << i << ": "
                      << back.error().to_string();
    ++templates;
    batches += static_cast<int>(queues.steps.size());
    EXPECT_EQ(back->buffers, queues.buffers);
    EXPECT_EQ(back->steps, queues.steps);
    EXPECT_EQ(back->input_uses, queues.input_uses);
    EXPECT_EQ(back->aliased_inputs, queues.aliased_inputs);
    EXPECT_EQ(back->input_count, queues.input_count);
    EXPECT_EQ(back->has_link_time_inputs, queues.has_link_time_inputs);
    EXPECT_EQ(back->is_profiled, queues.is_profiled);
    ByteWriter again;
    exec::write_template(again, *back);
    EXPECT_EQ(again.bytes(), to.bytes());
  }
  EXPECT_GT(templates, 1500);
  EXPECT_GT(batches, templates);
}

/// Whether everything that a device or a program is told is as it was.
bool has_same_words(const exec::TemplateRef& before, const exec::TemplateRef& now) {
  if (before == nullptr || now == nullptr) return before == now;
  const exec::QueueTemplate &old = before->queues(), &made = now->queues();
  const auto same_words = [](const exec::QueueStream& a, const exec::QueueStream& b) {
    return a.encoded == b.encoded;
  };
  const auto same_step = [&](const exec::TemplateStep& a, const exec::TemplateStep& b) {
    return std::equal(a.batch.streams.begin(), a.batch.streams.end(), b.batch.streams.begin(),
                      b.batch.streams.end(), same_words);
  };
  const auto same_object = [](const ProgramImage& a, const ProgramImage& b) {
    return a.object == b.object;
  };
  return std::equal(old.steps.begin(), old.steps.end(), made.steps.begin(), made.steps.end(),
                    same_step) &&
         std::equal(old.programs.begin(), old.programs.end(), made.programs.begin(),
                    made.programs.end(), same_object);
}
bool has_same_words(const exec::Captured& before, const exec::Captured& now) {
  return has_same_words(before.queues, now.queues) &&
         has_same_words(before.one_time, now.one_time) &&
         std::equal(before.shadow_copies.begin(), before.shadow_copies.end(),
                    now.shadow_copies.begin(), now.shadow_copies.end(),
                    [](const exec::TemplateRef& a, const exec::TemplateRef& b) {
                      return has_same_words(a, b);
                    });
}

/// What was changed reads as a typed error, or as something that links and runs to an end of any kind: never past memory.
void try_damaged(WholeRig& rig, const Saved& saved, std::span<const std::byte> bytes, bool runs,
                 int& good) {
  const Result<exec::CapturedRef> read_back = saved.read(bytes);
  if (!read_back) {
    EXPECT_EQ(read_back.error().code(), ErrorCode::InvalidArgument)
        << read_back.error().to_string();
    EXPECT_FALSE(read_back.error().reason().empty());
    return;
  }
  ++good;
  ByteWriter again;
  Weights weights;
  EXPECT_TRUE(exec::write_captured(again, **read_back, weights.place()));
  EXPECT_EQ(again.size(), bytes.size());
  // What other words make a device do is the device's to bound, not the reader's.
  if (!runs || !has_same_words(*rig.whole, **read_back)) return;
  const Result<std::shared_ptr<exec::Replay>> replay =
      exec::Replay::create(*read_back, rig.machine);
  if (!replay) return;
  TestCall call(rig, {rig.block({1, 1})});
  call.call.limits = {1'000'000, 1'000'000};
  const Result<exec::OutputHandle> result = (*replay)->run(call.call);
  if (result) {
    std::array<float, 2> values{};
    (void)result->read(0, std::as_writable_bytes(std::span(values)), {1'000'000, 1'000'000});
  }
  runtime::QueuedDevice& device = *rig.world.find("G");
  if (!device.is_online()) {
    rig.world.heal("G");
    EXPECT_TRUE(device.reopen());
    rig.describe_again();
  }
}

TEST(CapturedSection, ChangedBytesAreErrorsOrCapturesNeverMore) {
  WholeRig rig;
  rig.whole = rig.capture();
  const Saved saved(*rig.whole);
  int good = 0;
  for (size_t i = 0; i < saved.bytes.size(); ++i) {
    for (const int mask : {0x01, 0x80, 0xff}) {
      std::vector<std::byte> bytes = saved.bytes;
      bytes[i] ^= static_cast<std::byte>(mask);
      try_damaged(rig, saved, bytes, true, good);
      if (::testing::Test::HasFailure()) FAIL() << "byte " << i << ", mask " << mask;
    }
  }
  for (size_t size = 0; size < saved.bytes.size(); ++size) {
    int cut = 0;
    try_damaged(rig, saved, std::span(saved.bytes).first(size), false, cut);
    ASSERT_EQ(cut, 0) << "cut to " << size;
  }
  EXPECT_GT(good, 100) << "words, names and numbers may be any";
  // The machine is what it was.
  const auto replay = exec::Replay::create(saved.load(), rig.machine).value();
  EXPECT_EQ(frame(rig, *replay, rig.block({1, 1})), (std::vector<float>{42, 100}));
}

}  // namespace
}  // namespace ignis::testing
