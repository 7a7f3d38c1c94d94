#include "ignis/onnx/ops.h"

#include <string>
#include <unordered_map>

namespace ignis::onnx {
namespace {

using Table = std::span<const OpEntry> (*)();

/// Every file of operators, by hand. Rows of one operator lie in one table, the oldest version first.
constexpr Table kTables[] = {
    math_ops,   activation_ops, shape_ops, nn_ops,    pool_ops, reduce_ops, norm_ops, resize_ops,
    sample_ops, rnn_ops,        quant_ops, index_ops, loss_ops, signal_ops, misc_ops, training_ops,
};

using Index = std::unordered_map<std::string, std::vector<const OpEntry*>>;

std::string key_of(std::string_view domain, std::string_view name) {
  if (domain == "ai.onnx") domain = "";
  return std::string(domain) + "::" + std::string(name);
}

const Index& op_index() {
  static const Index index = [] {
    Index made;
    for (const Table table : kTables) {
      for (const OpEntry& row : table()) made[key_of(row.domain, row.name)].push_back(&row);
    }
    return made;
  }();
  return index;
}

}  // namespace

const OpEntry* find_op(std::string_view domain, std::string_view name, int64_t opset) {
  const auto found = op_index().find(key_of(domain, name));
  if (found == op_index().end()) return nullptr;
  const OpEntry* best = nullptr;
  for (const OpEntry* row : found->second) {
    if (row->since <= opset && (best == nullptr || row->since > best->since)) best = row;
  }
  return best;
}

std::vector<OpEntry> all_ops() {
  std::vector<OpEntry> rows;
  for (const Table table : kTables) {
    for (const OpEntry& row : table()) rows.push_back(row);
  }
  return rows;
}

}  // namespace ignis::onnx
