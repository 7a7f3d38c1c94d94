#include "ignis/pipeline/driver_monitoring/build/warp_tensors.h"

#include "ignis/pipeline/driver_monitoring/build/planes_graph.h"
#include "ignis/pipeline/driver_monitoring/build/rgb_graph.h"
#include "ignis/pipeline/driver_monitoring/build/warp_graph.h"

namespace ignis::pipeline {

Result<WarpTensors> make_warp_tensors(const WarpRequest& request) {
  switch (request.profile) {
    case Profile::Comma553: {
      IGNIS_TRY_ASSIGN(const WarpGraph graph, make_warp_graph(request.shape, request.kind));
      // Exact: no product may be fused with its sum.
      return WarpTensors{{{"luma", graph.luma}, {"matrix", graph.matrix}},
                         {{"image", graph.image}},
                         FloatLevel::Strict};
    }
    case Profile::Comma38: {
      IGNIS_TRY_ASSIGN(const PlanesGraph graph,
                       make_planes_graph(request.layout, request.camera, request.side));
      return WarpTensors{{{"frame", graph.frame}}, {{"planes", graph.planes}}};
    }
    case Profile::Face: {
      IGNIS_TRY_ASSIGN(const RgbGraph graph,
                       make_rgb_graph(request.layout, request.width_px, request.height_px));
      return WarpTensors{{{"frame", graph.frame}}, {{"rgb", graph.rgb}}};
    }
  }
  return Error(ErrorCode::Internal, "The profile has no warp.");
}

}  // namespace ignis::pipeline
