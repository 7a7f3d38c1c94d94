// ignis profile: where the time of a run goes, kernel by kernel, as a table and as a trace.
#include "tools/ignis/profile.h"

#include "tools/ignis/commands.h"
#include "tools/ignis/terminal.h"
#include "tools/io/files.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>

namespace ignis::tools {
namespace {

/// "conv_relu" of "k07_conv_relu_…": the name without its number and without what makes it unique.
std::string op_of(const std::string& kernel) {
  size_t begin = 0;
  if (kernel.size() > 1 && kernel[0] == 'k' &&
      std::isdigit(static_cast<unsigned char>(kernel[1]))) {
    const size_t bar = kernel.find('_');
    if (bar == std::string::npos)
      return "copy";  // computes no operator: moves values into a layout
    begin = bar + 1;
  }
  return kernel.substr(begin);
}

std::string key_of(const CallInfo& call, size_t index, ProfileBy by) {
  switch (by) {
    case ProfileBy::Call: return std::to_string(index);
    case ProfileBy::Kernel: return call.kernel;
    case ProfileBy::Op: return op_of(call.kernel);
    case ProfileBy::Layer: return call.layer.empty() ? call.kernel : call.layer;
  }
  return {};
}

Json span(const std::string& name, const char* category, double begin_s, double seconds) {
  return {{"name", name}, {"cat", category},     {"ph", "X"},           {"pid", 1},
          {"tid", 1},     {"ts", begin_s * 1e6}, {"dur", seconds * 1e6}};
}

}  // namespace

Bound::Bound(const Session& session, std::vector<HostTensor> values) : inputs(std::move(values)) {
  for (const PortInfo& port : session.outputs())
    outputs.push_back(HostTensor::zeros(port.dtype, port.shape));
  for (const HostTensor& t : inputs) input_pointers.push_back(t.bytes.data());
  for (HostTensor& t : outputs) output_pointers.push_back(t.bytes.data());
}

Result<ProfiledRuns> profile_runs(Session& session, Bound& bound, int runs) {
  ProfiledRuns profiled(static_cast<size_t>(runs));
  for (ProfiledRun& run : profiled) {
    IGNIS_TRY(session.profile(bound.input_pointers.data(), bound.output_pointers.data(), &run.calls,
                              &run.stages));
  }
  return profiled;
}

namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double median_of(const ProfiledRuns& runs, const auto& seconds_of) {
  std::vector<double> values;
  for (const ProfiledRun& run : runs) values.push_back(seconds_of(run));
  return median(std::move(values));
}

}  // namespace

std::vector<CallInfo> median_calls(const ProfiledRuns& runs) {
  std::vector<CallInfo> calls = runs.front().calls;
  for (size_t c = 0; c < calls.size(); ++c) {
    calls[c].seconds =
        median_of(runs, [&](const ProfiledRun& run) { return run.calls[c].seconds; });
  }
  return calls;
}

RunStages median_stages(const ProfiledRuns& runs) {
  return {median_of(runs, [](const ProfiledRun& run) { return run.stages.submit_s; }),
          median_of(runs, [](const ProfiledRun& run) { return run.stages.kernels_s; }),
          median_of(runs, [](const ProfiledRun& run) { return run.stages.completion_s; })};
}

std::vector<ProfileRow> sum_by(const std::vector<CallInfo>& calls, ProfileBy by,
                               const Roofline* roofline) {
  std::vector<ProfileRow> rows;
  std::map<std::string, size_t> row_of;
  std::vector<double> slowest;  // of a row's calls
  for (size_t i = 0; i < calls.size(); ++i) {
    const CallInfo& call = calls[i];
    const auto [at, is_new] = row_of.emplace(key_of(call, i, by), rows.size());
    if (is_new) {
      ProfileRow row;
      row.name = by == ProfileBy::Call ? call.kernel : at->first;
      if (by == ProfileBy::Call) row.layer = call.layer;
      if (by == ProfileBy::Call || by == ProfileBy::Kernel) {
        row.schedule = call.schedule;
        row.why = call.why;
      }
      rows.push_back(std::move(row));
      slowest.push_back(-1);
    }
    ProfileRow& row = rows[at->second];
    ++row.calls;
    row.seconds += call.seconds;
    row.flops += call.flops;
    row.bytes += call.bytes;
    if (roofline == nullptr) continue;
    const LeastTime least = least_time(*roofline, call.flops, call.bytes);
    row.least_s += least.seconds;
    if (call.seconds > slowest[at->second]) row.bound = least.bound;
    slowest[at->second] = std::max(slowest[at->second], call.seconds);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
  return rows;
}

void print_profile(const std::vector<ProfileRow>& rows, int top, bool shows_schedules) {
  double total = 0, sum = 0, least = 0;
  int calls = 0;
  for (const ProfileRow& row : rows) {
    total += row.seconds;
    least += row.least_s;
    calls += row.calls;
  }
  const bool has_roofline = least > 0;
  std::vector<std::string> head = {"name", "calls", "time", "%", "cum %", "GFLOP/s", "GB/s"};
  if (has_roofline) head.insert(head.end(), {"% of roof", "bound by"});
  head.emplace_back("layer");
  Table table(head);
  for (size_t i = 0; i < rows.size() && i < static_cast<size_t>(top); ++i) {
    const ProfileRow& row = rows[i];
    sum += row.seconds;
    const double s = std::max(row.seconds, 1e-12);
    std::vector<std::string> cells = {row.name.substr(0, 60),
                                      std::to_string(row.calls),
                                      format_seconds(row.seconds),
                                      format_number(100 * row.seconds / total, 3),
                                      format_number(100 * sum / total, 3),
                                      format_number(row.flops / s * 1e-9, 3),
                                      format_number(row.bytes / s * 1e-9, 3)};
    if (has_roofline)
      cells.insert(cells.end(), {format_number(100 * row.least_s / s, 3), row.bound});
    cells.push_back(row.layer.substr(0, 40));
    table.add(cells);
  }
  std::printf("\n%s%d calls, %s in kernels", table.to_string().c_str(), calls,
              format_seconds(total).c_str());
  if (has_roofline)
    std::printf(", %s %% of what the machine can do",
                format_number(100 * least / total, 3).c_str());
  std::printf("\n");
  for (size_t i = 0; i < rows.size() && i < static_cast<size_t>(top) && shows_schedules; ++i) {
    if (rows[i].schedule.empty()) continue;
    std::printf("\n%s: %s\n", rows[i].name.c_str(), rows[i].schedule.c_str());
    for (const std::string& note : rows[i].why) std::printf("  %s\n", note.c_str());
  }
}

Json to_json(const RunStages& stages) {
  return {{"submit_s", stages.submit_s},
          {"kernels_s", stages.kernels_s},
          {"completion_s", stages.completion_s}};
}

Json make_trace(const StageTimes& stages, const ProfiledRuns& runs) {
  Json events = Json::array();
  double now_s = 0;
  for (const auto& [name, seconds] : {std::pair("import", stages.import_s),
                                      {"schedule", stages.schedule_s},
                                      {"lower", stages.lower_s},
                                      {"compile", stages.compile_s},
                                      {"pack constants", stages.pack_s},
                                      {"capture", stages.capture_s},
                                      {"link", stages.link_s},
                                      {"upload weights", stages.upload_s},
                                      {"first run", stages.first_run_s}}) {
    if (seconds > 0) events.push_back(span(name, "load", now_s, seconds));
    now_s += seconds;
  }
  for (size_t r = 0; r < runs.size(); ++r) {
    if (runs[r].calls.empty()) continue;
    const CallInfo& last = runs[r].calls.back();
    const RunStages& stages_of_run = runs[r].stages;
    const double kernels_s = last.begin_s + last.seconds;
    const double run_s = stages_of_run.submit_s + kernels_s + stages_of_run.completion_s;
    events.push_back(span("run " + std::to_string(r), "run", now_s, run_s));
    if (stages_of_run.submit_s > 0)
      events.push_back(span("submit", "stage", now_s, stages_of_run.submit_s));
    const double end_s = now_s + run_s;
    now_s += stages_of_run.submit_s;
    for (const CallInfo& call : runs[r].calls) {
      Json event = span(call.kernel, "kernel", now_s + call.begin_s, call.seconds);
      event["args"] = {{"layer", call.layer}, {"flops", call.flops}, {"bytes", call.bytes}};
      events.push_back(std::move(event));
    }
    if (stages_of_run.completion_s > 0)
      events.push_back(span("completion", "stage", now_s + kernels_s, stages_of_run.completion_s));
    now_s = end_s;
  }
  return {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
}

Result<Exit> profile_command(const Context& context, const ProfileOptions& options) {
  static const std::map<std::string, ProfileBy> kBy = {{"call", ProfileBy::Call},
                                                       {"kernel", ProfileBy::Kernel},
                                                       {"op", ProfileBy::Op},
                                                       {"layer", ProfileBy::Layer}};
  const auto by = kBy.find(options.by);
  if (by == kBy.end()) return usage_error("--by takes call, kernel, op or layer.");
  Progress progress(context.shows_progress());
  IGNIS_TRY_ASSIGN(BoundModel model, bind_model(options.model, context));
  model.session.progress = progress.callback();
  IGNIS_TRY_ASSIGN(Session session, load_session(model, model.session));
  if (session.plan() == nullptr)
    return usage_error("The reference device has no kernels to profile.");
  IGNIS_TRY_ASSIGN(std::vector<HostTensor> inputs,
                   make_inputs(model, session, Missing::IsRandom, context.seed()));
  Bound bound(session, std::move(inputs));
  progress.show("run");
  IGNIS_TRY_ASSIGN(ProfiledRuns warm_up, profile_runs(session, bound, 3));
  IGNIS_TRY_ASSIGN(const ProfiledRuns runs, profile_runs(session, bound, options.runs));
  progress.clear();
  const Roofline roofline = measure_roofline(session.target());
  const std::vector<ProfileRow> rows = sum_by(median_calls(runs), by->second, &roofline);
  if (!options.trace_file.empty()) {
    Status written = write_file(
        options.trace_file,
        make_trace(session.times(), runs).dump(-1, ' ', false, Json::error_handler_t::replace) +
            "\n");
    if (!written) return as_file(std::move(written).error());
  }
  if (context.prints_text()) {
    print_profile(rows, options.top, options.shows_schedules);
    print_roofline(roofline);
  }
  Json report{{"schema", "ignis.profile/1"},
              {"model", model.path},
              {"device", context.options().device},
              {"machine", describe_machine(&session.target())},
              {"by", options.by},
              {"runs", options.runs}};
  report["stages"] = to_json(median_stages(runs));
  report["roofline"] = to_json(roofline);
  for (const ProfileRow& row : rows) {
    report["rows"].push_back({{"name", row.name},
                              {"layer", row.layer},
                              {"calls", row.calls},
                              {"seconds", row.seconds},
                              {"flops", row.flops},
                              {"bytes", row.bytes},
                              {"least_s", row.least_s},
                              {"bound", row.bound},
                              {"schedule", row.schedule},
                              {"why", row.why}});
  }
  IGNIS_TRY(context.write_json(report));
  return Exit::Ok;
}

}  // namespace ignis::tools
