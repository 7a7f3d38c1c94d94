// ignis devices: what this machine and build can run on.
#include "ignis/engine/evaluate.h"
#include "ignis/runtime/device.h"
#include "ignis/tensor/tensor.h"

#include "tools/ignis/commands.h"
#include "tools/ignis/roofline.h"
#include "tools/ignis/terminal.h"

#include <chrono>
#include <cmath>
#include <cstdio>

namespace ignis::tools {
namespace {

/// A small convolution, whose values are known, through the whole chain: 3x3 ones over a plane of ones count the
/// cells in reach.
Status self_test(const std::string& device) {
  const auto graph = std::make_shared<ir::Graph>();
  const auto x = tensor::Tensor::constant(
      graph, HostTensor::from(DType::Float32, {1, 1, 4, 4}, std::vector<float>(16, 1)));
  const auto w = tensor::Tensor::constant(
      graph, HostTensor::from(DType::Float32, {1, 1, 3, 3}, std::vector<float>(9, 1)));
  tensor::ConvOptions conv;
  conv.pads_lo = conv.pads_hi = {1, 1};
  EvaluateOptions options;
  options.device = device;
  IGNIS_TRY_ASSIGN(const HostTensor got, evaluate(tensor::conv(x, w, {}, conv), options));
  for (int64_t i = 0; i < 16; ++i) {
    const bool edge_row = i / 4 == 0 || i / 4 == 3, edge_column = i % 4 == 0 || i % 4 == 3;
    const double want = (edge_row ? 2 : 3) * (edge_column ? 2 : 3);
    if (element_as_double(got, i) != want) {
      return Error(ErrorCode::DeviceLost, "The self-test on '" + device + "' gave " +
                                              format_number(element_as_double(got, i)) +
                                              " instead of " + format_number(want) +
                                              " at element " + std::to_string(i) + ".");
    }
  }
  return Status::ok();
}

}  // namespace

Result<Exit> devices_command(const Context& context, const DevicesOptions& options) {
  Table table({"device", "target", "description", options.checks ? "self-test" : ""});
  Json report{{"schema", "ignis.devices/1"},
              {"machine", describe_machine(nullptr)},
              {"devices", Json::array()}};
  Exit exit = Exit::Ok;
  for (const runtime::DeviceInfo& info : runtime::list_devices()) {
    Json device{{"device", info.spec},
                {"target", info.target.name()},
                {"description", info.description},
                {"vector_bytes", info.target.vector_bytes},
                {"l1_bytes", info.target.l1_bytes},
                {"l2_bytes", info.target.l2_bytes},
                {"l3_bytes", info.target.l3_bytes}};
    std::string verdict;
    if (options.checks) {
      const Status status = self_test(info.spec);
      verdict =
          status ? styled("passed", Style::Good) : styled(status.error().message(), Style::Bad);
      device["self_test"] = status ? "passed" : status.error().to_string();
      if (!status) exit = Exit::Device;
    }
    table.add({info.spec, info.target.name(), info.description, verdict});
    report["devices"].push_back(std::move(device));
  }
  if (context.prints_text()) {
    std::fputs(table.to_string().c_str(), stdout);
    std::printf("%d threads usable\n", runtime::usable_threads());
  }
  if (options.measures_roofline) {
    Target target = detect_host_target();
    target.threads = context.threads() > 0 ? context.threads() : runtime::usable_threads();
    const Roofline roofline = measure_roofline(target);
    if (context.prints_text()) print_roofline(roofline);
    report["roofline"] = to_json(roofline);
  }
  IGNIS_TRY(context.write_json(report));
  return exit;
}

}  // namespace ignis::tools
