#pragma once

#include "tools/ignis/common.h"
#include "tools/ignis/compare.h"

#include <map>
#include <string>
#include <vector>

namespace ignis::tools {

/// What outputs and layers are held to.
struct Tolerances {
  NamedValues rtol, atol, ulp;
  Stat stat = Stat::Max;
  /// What an artifact's golden data says of its outputs; counts where nothing is asked for.
  std::map<std::string, Tolerance> stored;
  Tolerance of(const std::string& name, DType dtype) const;
};

/// One value of the compiled model beside the reference's: a layer's, or what a kernel of the program wrote.
struct LayerComparison {
  std::string layer;   ///< the model's name; several for a kernel
  std::string op;      ///< "Conv", or the kernel's name
  std::string output;  ///< of the layer; empty for a kernel
  int call = -1;       ///< of a kernel: its position in the program
  int stores = 1;      ///< of a kernel: more for a chain, of which only the last can be compared
  DType dtype = DType::Float32;
  Shape shape;
  Comparison comparison;
  std::string flags;  ///< of the compiled value
  std::string reference_flags;
};

struct LayerReport {
  std::vector<LayerComparison> kernels;  ///< in the order of the program
  std::vector<LayerComparison> apart;    ///< those that chains are made of, each run alone
  std::vector<LayerComparison> layers;   ///< in the model's order
  int first_kernel_beyond = -1, first_apart_beyond = -1, first_layer_beyond = -1;
  bool passed() const {
    return first_kernel_beyond < 0 && first_apart_beyond < 0 && first_layer_beyond < 0;
  }
};

/// Compares the program from the inside. First what each kernel of the program itself wrote. Where some run by bands of rows
/// together (chains), what is between them never stands whole in memory: they are compared once more in a program without
/// chains, which computes the same bits. When a chain is wrong and its kernels are right, its bands are. Then every layer of the
/// model, also those that vanish inside a kernel: their values come from programs compiled beside it (as many as memory
/// asks for), which leave the program as it is. The reference's values are made and dropped one by one.
/// Errors: as load_session and Session::run.
Result<LayerReport> compare_layers(const BoundModel& model, Session& session,
                                   const std::vector<HostTensor>& inputs,
                                   const Tolerances& tolerances, const Context& context);

void print_layers(const LayerReport& report);
Json to_json(const LayerReport& report);

}  // namespace ignis::tools
