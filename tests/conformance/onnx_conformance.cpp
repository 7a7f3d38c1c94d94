// Runs the ONNX back-end test cases on one device and prints what passes, what is refused, and what is wrong.
//
//   onnx_conformance [--device cpu:interp] [--runner COMMAND] [--data DIR]... [--filter TEXT] [--expected FILE]
//                    [--verbose]
//
// With a runner (tests/artifact/run_artifact, or an emulator with it) each model is compiled for the device, which this
// machine need not be, into an artifact that the runner runs.
//
// Each case runs in a child process, so a crash is counted against its case. The exit code is 0 when nothing is wrong and
// at least as many cases pass as the expectation file says, 77 when no test data is found, else 1.
#include "tests/conformance/run_case.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

namespace ignis::conformance {
namespace {

constexpr const char* kDebianData = "/usr/share/libonnx-testdata/data";
constexpr unsigned kCaseTimeoutSeconds = 60;
constexpr unsigned kRunnerTimeoutSeconds = 300;  // it may be emulated

struct Settings {
  RunOptions run;
  std::vector<std::string> roots;
  std::string filter, expected_file;
  bool is_verbose = false;
};

// The expectation file: `floor DEVICE N`, `known CASE reason…` for cases whose expected values contradict the
// standard's text, `refused NAME reason…` for operators and types that are refused on purpose.
struct Expected {
  std::map<std::string, int> floors;
  std::map<std::string, std::string> known;
  std::vector<std::string> refused;
};

Expected read_expected(const std::string& path) {
  Expected expected;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string kind, name, rest;
    words >> kind >> name;
    std::getline(words >> std::ws, rest);
    if (kind == "floor") expected.floors[name] = std::atoi(rest.c_str());
    if (kind == "known") expected.known[name] = rest;
    if (kind == "refused") expected.refused.push_back(name);
  }
  return expected;
}

// Runs cases[begin…] in a child until it ends or dies; returns the index after the last case with an outcome.
size_t run_in_child(const std::vector<Case>& cases, size_t begin, const RunOptions& options,
                    std::vector<Outcome>& outcomes) {
  int fds[2];
  if (pipe(fds) != 0) return cases.size();
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    close(fds[0]);
    FILE* out = fdopen(fds[1], "w");
    for (size_t i = begin; i < cases.size(); ++i) {
      // The default action ends the child.
      alarm(options.runner.empty() ? kCaseTimeoutSeconds : kRunnerTimeoutSeconds);
      Outcome outcome = run_case(cases[i], options);
      std::replace(outcome.detail.begin(), outcome.detail.end(), '\n', ' ');
      std::fprintf(out, "%zu %d %s\n", i, static_cast<int>(outcome.verdict),
                   outcome.detail.c_str());
      std::fflush(out);
    }
    _exit(0);
  }
  close(fds[1]);
  FILE* in = fdopen(fds[0], "r");
  size_t next = begin;
  char* line = nullptr;
  size_t capacity = 0;
  while (getline(&line, &capacity, in) > 0) {
    std::istringstream words(line);
    size_t index = 0;
    int verdict = 0;
    words >> index >> verdict;
    std::string detail;
    std::getline(words >> std::ws, detail);
    outcomes[index] = {static_cast<Verdict>(verdict), detail};
    next = index + 1;
  }
  std::free(line);
  std::fclose(in);
  int status = 0;
  waitpid(child, &status, 0);
  if (next < cases.size()) {
    const int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    outcomes[next] = {Verdict::Crash,
                      sig == SIGALRM ? "no answer in time" : "signal " + std::to_string(sig)};
    ++next;
  }
  return next;
}

int report(const Settings& settings, const std::vector<Case>& cases,
           const std::vector<Outcome>& outcomes) {
  const Expected expected = read_expected(settings.expected_file);
  std::map<Verdict, int> counts;
  std::map<std::string, int> refusals;
  int faults = 0, known = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    const bool is_fault = outcome.verdict == Verdict::Wrong || outcome.verdict == Verdict::Failed ||
                          outcome.verdict == Verdict::Crash;
    const auto reason = expected.known.find(cases[i].name);
    if (is_fault && reason != expected.known.end()) {
      ++known;
      std::cout << "known     " << cases[i].name << ": " << reason->second << " (" << outcome.detail
                << ")\n";
      continue;
    }
    ++counts[outcome.verdict];
    if (is_fault) {
      ++faults;
      std::cout << to_string(outcome.verdict) << "     " << cases[i].name << ": " << outcome.detail
                << "\n";
    } else if (outcome.verdict == Verdict::Refused) {
      ++refusals[outcome.detail];
      const bool is_listed = std::any_of(
          expected.refused.begin(), expected.refused.end(),
          [&](const std::string& name) { return outcome.detail.find(name) != std::string::npos; });
      if (!settings.expected_file.empty() && !is_listed) {
        ++faults;
        std::cout << "UNLISTED refusal " << cases[i].name << ": " << outcome.detail << "\n";
      }
    }
    if (settings.is_verbose && !is_fault) {
      std::cout << to_string(outcome.verdict) << "  " << cases[i].name << "  " << outcome.detail
                << "\n";
    }
  }
  std::cout << "\nRefused at load:\n";
  for (const auto& [message, count] : refusals)
    std::cout << "  " << count << "  " << message << "\n";
  const int passes = counts[Verdict::Pass] + counts[Verdict::PassWithConstants];
  std::cout << "\nDevice " << settings.run.device << ", " << cases.size() << " cases, rtol "
            << settings.run.rtol << ", atol " << settings.run.atol << ":\n";
  for (const auto& [verdict, count] : counts) {
    std::cout << "  " << count << "  " << to_string(verdict) << "\n";
  }
  std::cout << "  " << known << "  known differences of the test data from the standard's text\n"
            << "Total passed: " << passes << "\n";
  const auto floor = expected.floors.find(settings.run.device);
  if (floor != expected.floors.end() && settings.filter.empty() && passes < floor->second) {
    std::cout << "FEWER than the recorded floor of " << floor->second << ".\n";
    ++faults;
  }
  return faults == 0 ? 0 : 1;
}

int run(const Settings& settings) {
  std::vector<Case> cases = find_cases(settings.roots);
  std::erase_if(cases,
                [&](const Case& c) { return c.name.find(settings.filter) == std::string::npos; });
  if (cases.empty()) {
    std::cout
        << "SKIPPED: no ONNX test cases found (on Debian: apt-get install libonnx-testdata).\n";
    return 77;
  }
  std::vector<Outcome> outcomes(cases.size());
  for (size_t next = 0; next < cases.size();) {
    next = run_in_child(cases, next, settings.run, outcomes);
  }
  return report(settings, cases, outcomes);
}

}  // namespace
}  // namespace ignis::conformance

int main(int argc, char** argv) {
  ignis::conformance::Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--verbose") {
      settings.is_verbose = true;
      continue;
    }
    ++i;
    if (option == "--device") settings.run.device = value;
    else if (option == "--runner") settings.run.runner = value;
    else if (option == "--data") settings.roots.push_back(value);
    else if (option == "--filter") settings.filter = value;
    else if (option == "--expected") settings.expected_file = value;
    else if (option == "--rtol") settings.run.rtol = std::atof(value.c_str());
    else if (option == "--atol") settings.run.atol = std::atof(value.c_str());
    else {
      std::cerr << "Unknown option '" << option << "'.\n";
      return 2;
    }
  }
  if (settings.roots.empty()) settings.roots.push_back(ignis::conformance::kDebianData);
  return ignis::conformance::run(settings);
}
