#pragma once

#include "ignis/engine/session.h"
#include "ignis/pipeline/road/runner.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ignis::pipeline {

struct SessionModelOptions {
  /// Makes the network, from a file (Session::load) or from tensors (Session::from_graph). Its ports by name:
  ///   in:  "image" u8 [2, 6, 128, 256]; floats that the host fills (contract.h); recurrent state "X"
  ///   out: "outputs" f32 [1, N]; "next_X" of X's dtype and shape, for each state X
  std::function<Result<Session>()> make_network;
  std::vector<RoadSlice> slices;
  /// Of the warp, which is made here.
  std::string device = "cpu";
  int threads = 0;
  std::shared_ptr<ProgramCache> program_cache = nullptr;  ///< as SessionOptions::program_cache
};

/// A road network over engine sessions: warp, network, state. The compiled sessions never change; another frame layout
/// needs another model.
///
/// State lives in two buffers each: a run reads one and writes the other, and they change places when it succeeds.
Result<std::unique_ptr<RoadModel>> make_session_model(SessionModelOptions options);

}  // namespace ignis::pipeline
