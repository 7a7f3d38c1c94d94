// A bounded run of captures_fuzz.cpp: damaged copies of a template and of a capture. Passing is not crashing, also under the
// sanitizers.
#include "ignis/exec/captured_section.h"
#include "ignis/exec/template_section.h"

#include "tests/fuzz/mutate.h"
#include <gtest/gtest.h>

#include <array>

namespace ignis {
namespace {

/// out = program(in, weights) on device G: one batch of one stream, with a hole of every kind.
exec::QueueTemplate small_template() {
  exec::QueueTemplate queues;
  for (const char* name : {"in", "out", "weights"}) {
    exec::ScheduleBuffer& buffer = queues.buffers.emplace_back();
    buffer.name = name;
    buffer.devices = {"G"};
    buffer.size_bytes = 64;
  }
  queues.buffers[0].input = 0;
  queues.input_count = 1;
  queues.input_uses = {{0, 0, 0, 64, false}};
  ProgramImage& program = queues.programs.emplace_back();
  program.name = "program";
  program.object.resize(40, std::byte{7});
  program.buffer_count = 3;

  exec::TemplateStep& step = queues.steps.emplace_back();
  exec::Batch& batch = step.batch;
  batch.devices = {"G"};
  batch.table = {{0, 0, 0}};
  exec::BatchCall& call = batch.calls.emplace_back();
  call.name = "call";
  call.program = 0;
  call.arguments = {{1, 0, 0, 64, 4}, {0, 0, 0, 64, 4}, {2, 0, 0, 64, 4}};
  call.outs = {0};
  call.ins = {1, 2};
  call.variables = {{"i", 3, -1}};
  exec::QueueStream& stream = batch.streams.emplace_back();
  stream.signal = 0;
  using Command = runtime::Command;
  stream.commands = {Command{.kind = Command::Kind::WaitReached, .device = 0},
                     Command{.kind = Command::Kind::Exec, .tag = 0},
                     Command{.kind = Command::Kind::StoreReached, .device = 0}};
  stream.addresses = {{exec::LinkAddress::Kind::Program, 0, 0, 0},
                      {exec::LinkAddress::Kind::Buffer, 1, 0, 0},
                      {exec::LinkAddress::Kind::Timeline, 0, 0, 0},
                      {exec::LinkAddress::Kind::Signals, 0, 0, 0}};
  using Source = runtime::Patch::Source;
  stream.encoded.bytes.resize(48);
  stream.encoded.patches = {{0, 8, Source::Address, 0, 0},
                            {8, 8, Source::Part, 0, 0},
                            {16, 8, Source::Timeline, 0, 1},
                            {24, 4, Source::Timeline, 0, 0}};
  runtime::EncodedPart& part = stream.encoded.parts.emplace_back();
  part.bytes.resize(24);
  part.patches = {{0, 8, Source::Address, 1, 0}, {8, 8, Source::Input, 0, 4}};
  return queues;
}

exec::CapturedRef small_capture() {
  exec::Captured parts;
  parts.queues = std::make_shared<const exec::SharedTemplate>(small_template());
  const std::array<exec::InputDevice, 1> devices = {{{"G", 1}}};
  const std::array<exec::SymbolicNumber, 1> shape = {{{4, "n", 1, 16}}};
  const std::array<exec::SymbolicNumber, 1> strides = {{{1}}};
  exec::InputDescription input;
  input.name = "in";
  input.layout = "NV12 4x4 stride 4";
  input.devices = devices;
  input.size_bytes = {16, "4*n", 4, 64};
  input.base_bytes = 64;
  input.shape = shape;
  input.strides = strides;
  const std::array<exec::VariableBinding, 1> variables = {{{"n", 4, 1, 16}}};
  parts.signature = exec::Signature::make(std::span(&input, 1), variables);
  parts.outputs = {{"out", DType::Float32, {16}, {1, 0, 0, 64, 4}, 4}};
  const std::array<exec::GuardValue, 2> guards = {
      {{"side", std::string_view("left")}, {"gain", 0.5}}};
  parts.guards = exec::GuardSet::make(guards).value();
  alignas(256) static const std::byte bytes[64] = {};
  exec::HeldBuffer held;
  held.buffer = 2;
  held.kind = exec::HeldKind::Weights;
  held.name = "weights";
  held.bytes = {{bytes, nullptr}};
  parts.held = {held};
  parts.devices = {{"G", {}, 1}};
  parts.peak_bytes = {{"G", 64}};
  parts.group_report = "graph 1 (end)";
  return exec::Captured::make(std::move(parts)).value();
}

TEST(CapturesFuzz, DamagedSectionsAreRefusedOrReadButNeverCrash) {
  SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(fuzz::test_seed()));
  std::mt19937_64 rng(fuzz::test_seed());
  ByteWriter queues, captured;
  exec::write_template(queues, small_template());
  ASSERT_TRUE(exec::write_captured(captured, *small_capture(),
                                   [](std::span<const std::byte>) { return uint64_t{256}; }));
  ASSERT_TRUE(exec::read_template(queues.bytes()));
  for (const std::vector<std::byte>& good : {queues.bytes(), captured.bytes()}) {
    for (int i = 0; i < 20000; ++i) {
      const std::vector<std::byte> damaged = fuzz::mutate(good, rng);
      LLVMFuzzerTestOneInput(reinterpret_cast<const unsigned char*>(damaged.data()),
                             damaged.size());
    }
  }
}

}  // namespace
}  // namespace ignis
