#pragma once

#include "ignis/engine/session.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ignis {

/// An input as a model file states it, with what the options bind.
struct OpenPortInfo {
  std::string name;
  DType dtype = DType::Float32;
  bool has_rank = true;              ///< false: any shape, `shape` says nothing
  Shape shape;                       ///< -1: open
  std::vector<std::string> symbols;  ///< of each dim; empty when it has none
};

/// A model whose open dims are bound by the inputs of each run: one compiled Session for each set of input shapes, made
/// at its first run or by prepare(), and kept; beyond `capacity` the one unused for longest is dropped. For programs that
/// may compile while they run; a vehicle binds its shapes when it loads (Session).
class ShapedSession {
 public:
  /// Reads and checks the model without compiling. Dims bound by `options` stay bound; those of its `constants` are no
  /// inputs. Errors: as onnx::read_info; Unsupported listing all missing operators; InvalidArgument for a capacity of 0.
  static Result<ShapedSession> open(const std::string& path, const SessionOptions& options = {},
                                    size_t capacity = 8);
  ShapedSession(ShapedSession&&) noexcept;
  ShapedSession& operator=(ShapedSession&&) noexcept;
  ~ShapedSession();

  const std::vector<OpenPortInfo>& inputs() const;
  /// Runs once, compiling first when the shapes are new. Errors: InvalidArgument naming the input and both shapes, or the
  /// dim that two inputs give different values; as Session::load and Session::run. After DeviceLost the session of these
  /// shapes is made anew at the next run.
  Result<std::vector<HostTensor>> run(const std::vector<HostTensor>& inputs);
  /// The session for these input shapes, compiled when new. Valid until the next call of run() or prepare().
  Result<Session*> prepare(const std::vector<Shape>& shapes);
  int64_t compile_count() const;

 private:
  struct State;
  explicit ShapedSession(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ignis
