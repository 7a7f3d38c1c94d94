#include "ignis/engine/tune/model_bench.h"

#include "ignis/engine/tune/kernel_bench.h"
#include "ignis/exec/plan.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <sstream>

namespace ignis::engine {
namespace {

constexpr int kRunsInTurn = 3;  // the first brings the model's memory into the caches

}  // namespace

struct ModelBench::Compiled {
  Session session;
  std::vector<HostTensor> outputs;
  std::vector<void*> output_pointers;
  std::vector<double> run_ns;
  std::map<std::string, std::vector<double>> kernel_ns;  // by kernel_key()

  bool has_code_of(const Compiled& other) const {
    return std::ranges::equal(session.plan()->programs, other.session.plan()->programs,
                              [](const ProgramImage& x, const ProgramImage& y) {
                                return x.name == y.name && x.object == y.object;
                              });
  }

  // The first output that differs, in words; empty: none.
  std::string difference_to(const Compiled& reference) const {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const HostTensor& want = reference.outputs[i];
      const Comparison c = compare(outputs[i], want, tolerance_of(want));
      if (c.passed) continue;
      std::ostringstream text;
      text << "output '" << session.outputs()[i].name << "' is " << c.worst_got << " at element "
           << c.worst << " and is " << c.worst_want << " as the heuristics compile the model";
      return text.str();
    }
    return {};
  }

  void keep_times(const std::vector<CallInfo>& calls) {
    const size_t key_digits = kernel_key(std::string(64, '0')).size();
    std::map<std::string, double> sums;
    const exec::Plan& plan = *session.plan();
    for (size_t c = 0; c < calls.size(); ++c) {
      const std::string& symbol = plan.programs[static_cast<size_t>(plan.calls[c].program)].name;
      sums[symbol.substr(symbol.size() - std::min(symbol.size(), key_digits))] +=
          1e9 * calls[c].seconds;
    }
    for (const auto& [key, ns] : sums) kernel_ns[key].push_back(ns);
  }
};

Result<Variant> ModelBench::add(const exec::TuningRecord& record) {
  Variant variant;
  compiled_.emplace_back();
  SessionOptions options = options_;
  options.tuning = std::make_shared<const exec::TuningRecord>(record);
  Result<Session> session = Session::load(model_, options);
  if (!session) {
    variant.why = session.error().message();
    return variant;
  }
  if (inputs_.empty()) {
    std::mt19937_64 random(1);
    for (const PortInfo& port : session->inputs()) {
      inputs_.push_back(HostTensor::zeros(port.dtype, port.shape));
      for (int64_t i = 0; i < inputs_.back().count(); ++i)
        store_random(inputs_.back(), i, random, false);
    }
    for (const HostTensor& input : inputs_) input_pointers_.push_back(input.bytes.data());
  }
  const auto made = std::make_shared<Compiled>(Compiled{*std::move(session), {}, {}, {}, {}});
  for (const PortInfo& port : made->session.outputs())
    made->outputs.push_back(HostTensor::zeros(port.dtype, port.shape));
  for (HostTensor& output : made->outputs) made->output_pointers.push_back(output.bytes.data());
  IGNIS_TRY(made->session.run_raw(input_pointers_.data(), made->output_pointers.data()));
  for (size_t other = 0; other + 1 < compiled_.size(); ++other) {
    if (compiled_[other] == nullptr || !made->has_code_of(*compiled_[other])) continue;
    variant.outcome = Trial::Outcome::Same;
    variant.why = "the code of variant " + std::to_string(other);
    return variant;
  }
  if (compiled_.front() != nullptr) variant.why = made->difference_to(*compiled_.front());
  variant.outcome = variant.why.empty() ? Trial::Outcome::Timed : Trial::Outcome::Wrong;
  if (variant.is_sound()) compiled_.back() = made;
  return variant;
}

Status ModelBench::take_turn(size_t n) {
  using Clock = std::chrono::steady_clock;
  Compiled& one = *compiled_[n];
  for (int run = 0; run < kRunsInTurn; ++run) {
    const Clock::time_point begin = Clock::now();
    IGNIS_TRY(one.session.run_raw(input_pointers_.data(), one.output_pointers.data()));
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
    if (run > 0) one.run_ns.push_back(took.count());
  }
  for (int run = 1; run < kRunsInTurn; ++run) {
    std::vector<CallInfo> calls;
    IGNIS_TRY(one.session.profile(input_pointers_.data(), one.output_pointers.data(), &calls));
    one.keep_times(calls);
  }
  return {};
}

Variant ModelBench::result(size_t n) const {
  Variant variant;
  variant.outcome = Trial::Outcome::Timed;
  variant.run_ns = typical(compiled_[n]->run_ns);
  for (const auto& [key, ns] : compiled_[n]->kernel_ns)
    variant.kernel_ns.emplace_back(key, typical(ns));
  return variant;
}

double typical(std::vector<double> times) {
  if (times.empty()) return 0;
  const auto at = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 4);
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

}  // namespace ignis::engine
