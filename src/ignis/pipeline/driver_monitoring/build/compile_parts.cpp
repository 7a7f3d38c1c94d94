#include "ignis/pipeline/driver_monitoring/build/compile_parts.h"

#include "ignis/pipeline/driver_monitoring/build/file_facts.h"
#include "ignis/pipeline/driver_monitoring/build/warp_tensors.h"
#include "ignis/pipeline/frames/layout.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ignis::pipeline {
namespace {

// The heads that the pipeline reads are required; what else the file names goes along.
std::vector<exec::OutputSlice> describe_slices(const ModelFacts& facts, const HeadTable& table) {
  std::vector<exec::OutputSlice> slices;
  for (const Slice& slice : table.used) {
    const bool is_descriptor = slice.width() == kDescriptorWidth;
    slices.push_back({facts.outputs[0].name, slice.name, slice.start, slice.stop,
                      is_descriptor ? exec::DecodeKind::Raw : exec::DecodeKind::Logit, true});
  }
  return slices;
}

std::vector<FrameLayout> layouts_of(const Camera& camera, bool takes_tight_frames) {
  std::vector<FrameLayout> layouts;
  const auto add = [&](Result<FrameLayout> (*make)(int, int)) {
    if (auto layout = make(camera.width_px, camera.height_px)) layouts.push_back(*layout);
  };
  add(nv12_layout);
  if (takes_tight_frames) {
    add(tight_nv12_layout);
    add(i420_layout);
  }
  return layouts;
}

// One for each name: cameras, layouts and sides that need the same program share it.
std::vector<WarpRequest> list_warps(Profile profile, const PartsOptions& parts, int width_px,
                                    int height_px) {
  std::vector<WarpRequest> requests;
  for (const Camera& camera : parts.cameras) {
    for (const FrameLayout& layout : layouts_of(camera, parts.takes_tight_frames)) {
      for (const DriverSide side : parts.sides) {
        auto request = make_warp_request(profile, layout, camera, side, width_px, height_px);
        if (!request) continue;
        const auto is_same = [&](const WarpRequest& other) {
          return other.name() == request->name();
        };
        if (std::none_of(requests.begin(), requests.end(), is_same)) {
          requests.push_back(*std::move(request));
        }
      }
    }
  }
  return requests;
}

}  // namespace

Result<std::optional<Profile>> add_parts(const std::string& path, const PartsOptions& parts,
                                         CompileOptions& options) {
  if (parts.profile == "none") return std::optional<Profile>();
  IGNIS_TRY_ASSIGN(ModelFacts facts, read_file_facts(path));
  // What the caller bound counts before what the file states.
  for (PortShape& input : facts.inputs) {
    const auto bound = options.session.shapes.find(input.name);
    if (bound != options.session.shapes.end()) input.dims = bound->second;
  }
  Profile profile = Profile::Face;
  if (parts.profile == "auto") {
    const auto found = find_profile(facts.inputs, facts.outputs);
    if (!found) return std::optional<Profile>();
    profile = *found;
  } else {
    IGNIS_TRY_ASSIGN(profile, parse_profile(parts.profile));
    IGNIS_TRY(check_profile(profile, facts.inputs, facts.outputs));
  }
  int width_px = 0, height_px = 0;
  if (profile == Profile::Face) {
    IGNIS_TRY_ASSIGN(const auto size, choose_picture_size(facts.inputs[0]));
    std::tie(width_px, height_px) = size;
    options.session.shapes[facts.inputs[0].name] = {1, 3, height_px, width_px};
  }
  if (profile == Profile::Comma553) {
    IGNIS_TRY_ASSIGN(const HeadTable table, read_head_table(facts));
    options.slices = describe_slices(facts, table);
  }
  options.geometry = describe_geometry(profile, width_px, height_px);
  options.make_parts = [requests = list_warps(profile, parts, width_px, height_px)](
                           const Target& target,
                           const SessionOptions& session) -> Result<CompileOptions::NamedSessions> {
    CompileOptions::NamedSessions made;
    for (const WarpRequest& request : requests) {
      auto warp = make_warp_tensors(request);
      // A camera that does not see the driver's side.
      if (!warp && warp.error().reason() == "UnknownGeometry") continue;
      if (!warp) return std::move(warp).error();
      SessionOptions warp_session;
      warp_session.device = session.device;
      warp_session.threads = session.threads;
      warp_session.timeout = session.timeout;
      warp_session.program_cache = session.program_cache;
      warp_session.progress = session.progress;
      warp_session.float_level = warp->float_level;
      IGNIS_TRY_ASSIGN(Session compiled, Session::compile_graph_for(warp->inputs, warp->outputs,
                                                                    target, warp_session));
      made.emplace_back(request.name(), std::move(compiled));
    }
    return made;
  };
  return std::optional(profile);
}

}  // namespace ignis::pipeline
