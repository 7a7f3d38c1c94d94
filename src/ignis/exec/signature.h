#pragma once

#include "ignis/base/dtype.h"
#include "ignis/base/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ignis::exec {

/// A number of a view: a constant, or an expression of variables ("4*i+8") with its value now. Expressions are compared as
/// text, so whoever writes them has one spelling for each.
struct SymbolicNumber {
  int64_t value = 0;
  std::string_view expression = {};  ///< empty: a constant
  int64_t min = 0, max = 0;          ///< what `value` may be, both included; of an expression only
};

enum class MemoryClass : uint8_t {
  Device,      ///< the device's own
  HostMapped,  ///< host memory that the device maps
  External,    ///< a pointer that somebody else owns, a camera's frame
};
std::string_view to_string(MemoryClass memory_class);

/// A device that holds an input, one for each lane.
struct InputDevice {
  std::string_view name;
  uint64_t generation = 1;
};

/// A variable that the views of the inputs or the call bind.
struct VariableBinding {
  std::string_view name;
  int64_t value = 0;
  int64_t min = 0, max = 0;  ///< both included
};

/// All that a replay holds against the capture of one input. Nothing in it is owned: a caller that fills one from a tensor
/// copies no text.
struct InputDescription {
  std::string_view name;    ///< "0", "first", "1.0"
  std::string_view layout;  ///< the user's tag, empty without one; frame_layout() writes one
  std::span<const InputDevice> devices;
  MemoryClass memory_class = MemoryClass::Device;
  DType dtype = DType::Float32;
  SymbolicNumber size_bytes;  ///< of the view
  uint64_t base_bytes = 0;    ///< of the storage under it
  std::span<const SymbolicNumber> shape;
  std::span<const SymbolicNumber> strides;  ///< in elements
  SymbolicNumber offset_bytes;              ///< of the view in its base
  uint32_t alignment_bytes = 1;             ///< alignment_class() of the address
};

/// Largest power of two that divides `address`, at most 256.
uint32_t alignment_class(uint64_t address);

/// "NV12 1928x1208 stride 2048": the tag of a camera's frame.
std::string frame_layout(std::string_view format, int64_t width_px, int64_t height_px,
                         int64_t stride_bytes);

/// Fields in the order in which they are compared: what says most comes first.
enum class SignatureField : uint8_t {
  Names,
  Layout,
  Device,
  DeviceGeneration,
  MemoryClass,
  Type,
  TotalBytes,
  BaseBytes,
  Rank,
  Shape,
  Strides,
  ByteOffset,
  AlignmentClass,
  Variables,
  Range,  ///< a value outside of what its expression or variable may be
};
std::string_view to_string(SignatureField field);

/// Where inputs differ from those of the capture.
struct SignatureDifference {
  SignatureField field = SignatureField::Names;
  int input = -1;  ///< -1: no single one
  std::string captured, current;
};

/// What a capture knows of its inputs and variables (capture spec 6). Immutable and shared: copies are cheap.
///
/// Addresses, contents and values of variables may change from replay to replay. The alignment class may be better than the
/// captured one, because code for less runs with more. A generation that differs is no mismatch but an old capture.
class Signature {
 public:
  /// Copies all text. Inputs in their order; variables sorted by name.
  static Signature make(std::span<const InputDescription> inputs,
                        std::span<const VariableBinding> variables = {});

  /// Holds the inputs of a replay against the capture. Allocates nothing when they fit, and changes nothing in any case.
  /// Errors: InvalidArgument with the reason SignatureMismatch, DeviceLost with the reason StaleCapture; both name the input,
  /// the field and both values.
  Status check(std::span<const InputDescription> inputs,
               std::span<const VariableBinding> variables = {}) const;
  /// The first difference in the order of inputs, then of fields.
  std::optional<SignatureDifference> find_difference(
      std::span<const InputDescription> inputs,
      std::span<const VariableBinding> variables = {}) const;

  /// Of everything that must be equal: not of addresses, values of variables, alignment and generations. The same in every
  /// process.
  uint64_t hash() const;
  std::span<const InputDescription> inputs() const;
  std::span<const VariableBinding> variables() const;

 private:
  struct Data;
  explicit Signature(std::shared_ptr<const Data> data);
  std::shared_ptr<const Data> data_;
};

/// As Signature::hash(), of inputs that no signature was made of.
uint64_t hash_signature(std::span<const InputDescription> inputs,
                        std::span<const VariableBinding> variables = {});

}  // namespace ignis::exec
