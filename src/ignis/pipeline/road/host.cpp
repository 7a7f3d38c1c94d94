#include "ignis/pipeline/road/host.h"

#include "ignis/pipeline/road/decode.h"

namespace ignis::pipeline {

RoadReport RoadHost::run(const RoadInput& input, runtime::Deadline deadline) {
  RoadReport report;
  report.frame_id = input.main.info.frame_id;
  report.wide_frame_id = input.wide.info.frame_id;
  report.timestamp_sof_ns = input.main.info.timestamp_sof_ns;
  report.dropped = drops_.step(report.frame_id);
  const uint64_t fallbacks = tiers_.fallbacks();
  const DesirePulse before = pulse_;
  Status status;
  Result<RoadOutput> output = tiers_.run(input, pulse_.step(input.desire), deadline);
  if (output) {
    decoded_.resize(output->values.size());  // grows once
    status = decode_road_output(*output->contract, output->values, decoded_);
  } else {
    status = output.error();
  }
  if (tiers_.fallbacks() != fallbacks) drops_.reset();
  report.drop_ratio = drops_.ratio();
  report.state = tiers_.state();
  report.is_valid = static_cast<bool>(status);
  if (report.is_valid) {
    report.tier = output->tier;
    report.is_tier_switch = output->is_switch;
    report.contract = output->contract;
    report.decoded = decoded_;
    report.pack_ns = output->pack_ns;
    report.run_ns = output->run_ns;
    if (output->is_switch || !was_valid_) ++epoch_;
  } else {
    pulse_ = before;  // a pulse that no model saw comes again with the next frame
    report.reason = status.error().reason();
    report.error_text = status.error().to_string();
  }
  was_valid_ = report.is_valid;
  report.epoch = epoch_;
  return report;
}

}  // namespace ignis::pipeline
