#include "ignis/ir/graph.h"

#include "ignis/base/float_formats.h"

#include <xxhash.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <ostream>

namespace ignis::ir {
namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9E3779B97F4A7C15ull + (h << 6) + (h >> 2);
  h *= 0xFF51AFD7ED558CCDull;
  return h ^ (h >> 32);
}

struct ArgHash {
  size_t operator()(const Arg& a) const {
    uint64_t h = a.ints.size();
    for (const int64_t v : a.ints) h = mix(h, static_cast<uint64_t>(v));
    for (const char c : a.text) h = mix(h, static_cast<uint8_t>(c));
    return h;
  }
};
struct ShapeHash {
  size_t operator()(const Shape& s) const {
    uint64_t h = s.size();
    for (const int64_t v : s) h = mix(h, static_cast<uint64_t>(v));
    return h;
  }
};

}  // namespace

// Values live in deques, so that references stay valid while others are added.
struct Graph::Interned {
  std::deque<Arg> args;
  std::deque<Shape> shapes;
  std::unordered_map<Arg, uint32_t, ArgHash> arg_ids;
  std::unordered_map<Shape, uint32_t, ShapeHash> shape_ids;
  // Lock-free reads go through these chunked tables of stable addresses.
  std::unique_ptr<std::unique_ptr<const Arg*[]>[]> arg_table =
      std::make_unique<std::unique_ptr<const Arg*[]>[]>(kMaxChunks);
  std::unique_ptr<std::unique_ptr<const Shape*[]>[]> shape_table =
      std::make_unique<std::unique_ptr<const Shape*[]>[]>(kMaxChunks);
};

Graph::Graph()
    : chunks_(std::make_unique<std::unique_ptr<NodeData[]>[]>(kMaxChunks)),
      interned_(std::make_unique<Interned>()) {
  table_.assign(1024, 0);
  intern_arg({});
  intern_shape({});
}
Graph::~Graph() = default;

const Arg& Graph::arg_at(uint32_t index) const {
  return *interned_->arg_table[index >> kChunkBits][index & kChunkMask];
}
const Shape& Graph::shape_at(uint32_t index) const {
  return *interned_->shape_table[index >> kChunkBits][index & kChunkMask];
}

uint32_t Graph::intern_arg(Arg&& arg) {
  const auto it = interned_->arg_ids.find(arg);
  if (it != interned_->arg_ids.end()) return it->second;
  const auto id = static_cast<uint32_t>(interned_->args.size());
  interned_->args.push_back(arg);
  auto& chunk = interned_->arg_table[id >> kChunkBits];
  if (!chunk) chunk = std::make_unique<const Arg*[]>(kChunkMask + 1);
  chunk[id & kChunkMask] = &interned_->args.back();
  interned_->arg_ids.emplace(std::move(arg), id);
  return id;
}

uint32_t Graph::intern_shape(Shape&& shape) {
  const auto it = interned_->shape_ids.find(shape);
  if (it != interned_->shape_ids.end()) return it->second;
  const auto id = static_cast<uint32_t>(interned_->shapes.size());
  interned_->shapes.push_back(shape);
  auto& chunk = interned_->shape_table[id >> kChunkBits];
  if (!chunk) chunk = std::make_unique<const Shape*[]>(kChunkMask + 1);
  chunk[id & kChunkMask] = &interned_->shapes.back();
  interned_->shape_ids.emplace(std::move(shape), id);
  return id;
}

const uint32_t* Graph::store_sources(std::span<const Node> sources) {
  if (sources.empty()) return nullptr;
  if (source_block_used_ + sources.size() > source_block_size_) {
    source_block_size_ = std::max<size_t>(4096, sources.size());
    source_block_used_ = 0;
    source_blocks_.push_back(std::make_unique<uint32_t[]>(source_block_size_));
  }
  uint32_t* out = source_blocks_.back().get() + source_block_used_;
  for (size_t i = 0; i < sources.size(); ++i) out[i] = sources[i].id();
  source_block_used_ += sources.size();
  return out;
}

void Graph::grow_table() {
  std::vector<uint32_t> bigger(table_.size() * 2, 0);
  const size_t mask = bigger.size() - 1;
  const size_t count = size_.load(std::memory_order_relaxed);
  for (uint32_t id = 0; id < count; ++id) {
    size_t at = data(id).hash & mask;
    while (bigger[at] != 0) at = (at + 1) & mask;
    bigger[at] = id + 1;
  }
  table_ = std::move(bigger);
}

Node Graph::make(Op op, DType dtype, std::span<const Node> sources, Arg arg, int lanes) {
  IGNIS_CHECK(op_arity(op) < 0 || op_arity(op) == static_cast<int>(sources.size()))
      << to_string(op);
  for (const Node& s : sources)
    IGNIS_CHECK(s && &s.graph() == this) << to_string(op) << ": source of another graph";
  const std::lock_guard lock(mutex_);
  const uint32_t arg_id = intern_arg(std::move(arg));
  uint64_t h = mix(static_cast<uint64_t>(op), static_cast<uint64_t>(dtype));
  h = mix(h, static_cast<uint64_t>(lanes));
  h = mix(h, arg_id);
  for (const Node& s : sources) h = mix(h, s.id());
  const auto hash = static_cast<uint32_t>(h ^ (h >> 29));
  const size_t count = size_.load(std::memory_order_relaxed);
  size_t mask = table_.size() - 1;
  size_t at = hash & mask;
  for (; table_[at] != 0; at = (at + 1) & mask) {
    const uint32_t id = table_[at] - 1;
    const NodeData& d = data(id);
    if (d.hash != hash || d.op != op || d.dtype != dtype || d.lanes != lanes || d.arg != arg_id ||
        d.source_count != sources.size()) {
      continue;
    }
    bool same = true;
    for (size_t i = 0; i < sources.size() && same; ++i) same = d.sources[i] == sources[i].id();
    if (same) return Node(this, id);
  }
  IGNIS_CHECK(count < kMaxChunks * (kChunkMask + 1)) << "graph has too many nodes";
  IGNIS_CHECK(sources.size() < 65536);
  const auto id = static_cast<uint32_t>(count);
  auto& chunk = chunks_[id >> kChunkBits];
  if (!chunk) chunk = std::make_unique<NodeData[]>(kChunkMask + 1);
  NodeData& d = chunk[id & kChunkMask];
  d.op = op;
  d.dtype = dtype;
  d.lanes = static_cast<uint16_t>(lanes);
  d.source_count = static_cast<uint16_t>(sources.size());
  d.arg = arg_id;
  d.hash = hash;
  d.sources = store_sources(sources);
  d.shape = intern_shape(derive_shape(op, sources, arg_at(arg_id)));
  table_[at] = id + 1;
  size_.store(count + 1, std::memory_order_release);
  if ((count + 1) * 2 > table_.size()) grow_table();
  return Node(this, id);
}

Shape Graph::derive_shape(Op op, std::span<const Node> src, const Arg& arg) const {
  const auto dims_of = [&](size_t from) {
    return Shape(arg.ints.begin() + static_cast<std::ptrdiff_t>(from), arg.ints.end());
  };
  switch (op) {
    case Op::Buffer: return dims_of(1);
    case Op::Param: {  // slot, rank, dims…, layout…
      if (arg.ints.size() < 2) return {};
      return Shape(arg.ints.begin() + 2,
                   arg.ints.begin() + 2 + static_cast<std::ptrdiff_t>(arg.ints[1]));
    }
    case Op::Reshape:
    case Op::Expand: {
      Shape to = dims_of(0);
      if (op == Op::Reshape) {
        IGNIS_CHECK(element_count(to) == element_count(src[0].shape()))
            << "Reshape " << ignis::to_string(src[0].shape()) << " to " << ignis::to_string(to);
      } else {
        IGNIS_CHECK(to.size() == src[0].shape().size());
        for (size_t i = 0; i < to.size(); ++i)
          IGNIS_CHECK(src[0].shape()[i] == to[i] || src[0].shape()[i] == 1);
      }
      return to;
    }
    case Op::Permute: {
      Shape to;
      IGNIS_CHECK(arg.ints.size() == src[0].shape().size());
      for (const int64_t p : arg.ints) to.push_back(src[0].shape().at(static_cast<size_t>(p)));
      return to;
    }
    case Op::Pad: {
      Shape to = src[0].shape();
      IGNIS_CHECK(arg.ints.size() == 2 * to.size());
      for (size_t i = 0; i < to.size(); ++i) {
        IGNIS_CHECK(arg.ints[2 * i] >= 0 && arg.ints[2 * i + 1] >= 0);
        to[i] += arg.ints[2 * i] + arg.ints[2 * i + 1];
      }
      return to;
    }
    case Op::Shrink: {
      Shape to = src[0].shape();
      IGNIS_CHECK(arg.ints.size() == 2 * to.size());
      for (size_t i = 0; i < to.size(); ++i) {
        const int64_t b = arg.ints[2 * i], e = arg.ints[2 * i + 1];
        IGNIS_CHECK(0 <= b && b <= e && e <= to[i])
            << "Shrink to [" << b << ", " << e << ") of " << to[i];
        to[i] = e - b;
      }
      return to;
    }
    case Op::Window: {
      Shape to = src[0].shape();
      IGNIS_CHECK(arg.ints.size() == 4);
      const auto axis = static_cast<size_t>(arg.ints[0]);
      const int64_t k = arg.ints[1], s = arg.ints[2], d = arg.ints[3];
      IGNIS_CHECK(axis < to.size() && k > 0 && s > 0 && d > 0 && to[axis] >= d * (k - 1) + 1);
      to[axis] = (to[axis] - d * (k - 1) - 1) / s + 1;
      to.push_back(k);
      return to;
    }
    case Op::Cat: {
      Shape to = src[0].shape();
      const auto axis = static_cast<size_t>(arg.ints[0]);
      for (size_t i = 1; i < src.size(); ++i) to[axis] += src[i].shape()[axis];
      return to;
    }
    case Op::Gather: {
      const Shape& x = src[0].shape();
      IGNIS_CHECK(src.size() >= 2 && src.size() - 1 <= x.size());
      Shape to = src[1].shape();
      to.insert(to.end(), x.begin() + static_cast<std::ptrdiff_t>(src.size() - 1), x.end());
      return to;
    }
    case Op::ReduceAxes: {
      Shape to;
      const Shape& from = src[0].shape();
      for (size_t i = 0; i < from.size(); ++i) {
        bool reduced = false;
        for (size_t a = 1; a < arg.ints.size(); ++a)
          reduced |= arg.ints[a] == static_cast<int64_t>(i);
        if (!reduced) to.push_back(from[i]);
      }
      return to;
    }
    case Op::Stack: {
      const Shape& each = src.empty() ? Shape{} : src[0].shape();
      if (each.empty()) return {};
      Shape to{static_cast<int64_t>(src.size())};
      to.insert(to.end(), each.begin(), each.end());
      return to;
    }
    case Op::Flip:
    case Op::Contiguous: return src[0].shape();
    case Op::Index:
    case Op::Load:
    case Op::Store:
    case Op::Reduce:
    case Op::Range:
    case Op::End:
    case Op::Group:
    case Op::Sink:
    case Op::Reg:
    case Op::Broadcast:
    case Op::Extract:
    case Op::Shuffle:
    case Op::Special:
    case Op::Const: return {};
    case Op::After: return src[0].shape();
    default: break;
  }
  // Elementwise: equal shapes; constants broadcast.
  for (const Node& s : src) {
    if (!s.shape().empty()) {
      for (const Node& t : src) {
        IGNIS_CHECK(t.shape().empty() || t.shape() == s.shape())
            << to_string(op) << ": " << ignis::to_string(s.shape()) << " and "
            << ignis::to_string(t.shape());
      }
      return s.shape();
    }
  }
  return {};
}

Node Graph::alu(Op op, std::initializer_list<Node> sources) {
  DType dtype = sources.begin()->dtype();
  int lanes = 1;
  for (const Node& s : sources) lanes = std::max(lanes, s.lanes());
  if (is_comparison(op)) dtype = DType::Bool;
  if (op == Op::Where) dtype = (sources.begin() + 1)->dtype();
  return make(op, dtype, sources, {}, lanes);
}

Node Graph::constant(DType dtype, int64_t value) {
  if (is_float(dtype)) return constant_float(dtype, static_cast<double>(value));
  return make(Op::Const, dtype, std::span<const Node>{}, Arg{{wrap_int(dtype, value)}, {}});
}
Node Graph::constant_float(DType dtype, double value) {
  if (!is_float(dtype)) return constant(dtype, float_to_int(dtype, value));
  double rounded = dtype == DType::WeakFloat ? value : round_to(dtype, value);
  if (std::isnan(rounded)) rounded = std::bit_cast<double>(0x7FF8000000000000ull);
  return make(Op::Const, dtype, std::span<const Node>{},
              Arg{{std::bit_cast<int64_t>(rounded)}, {}});
}
Node Graph::constant_like(const Node& like, int64_t value) { return constant(like.dtype(), value); }
Node Graph::invalid(DType dtype) {
  return make(Op::Const, dtype, std::span<const Node>{}, Arg{{}, "Invalid"});
}

Node Graph::buffer(DType dtype, const Shape& shape, BufferData buffer_data) {
  int64_t slot = 0;
  {
    const std::lock_guard lock(buffers_mutex_);
    slot = next_slot_++;
  }
  Arg arg{{slot}, {}};
  arg.ints.insert(arg.ints.end(), shape.begin(), shape.end());
  const Node node = make(Op::Buffer, dtype, std::span<const Node>{}, std::move(arg));
  if (buffer_data.bytes != nullptr) {
    const std::lock_guard lock(buffers_mutex_);
    buffers_[node.id()] = std::move(buffer_data);
  }
  return node;
}

BufferData Graph::buffer_data(const Node& buffer) const {
  const std::lock_guard lock(buffers_mutex_);
  const auto it = buffers_.find(buffer.id());
  return it == buffers_.end() ? BufferData{} : it->second;
}

Node Graph::param(DType dtype, const ParamArg& param) {
  return make(Op::Param, dtype, std::span<const Node>{}, encode(param));
}
Node Graph::range(int64_t extent, int64_t id, AxisKind kind) {
  return range(constant(DType::WeakInt, extent), id, kind);
}
Node Graph::range(const Node& end, int64_t id, AxisKind kind) {
  return make(Op::Range, DType::WeakInt, {end}, Arg{{id, static_cast<int64_t>(kind)}, {}});
}
Node Graph::cast(const Node& x, DType to) {
  return x.dtype() == to ? x : make(Op::Cast, to, {x}, {}, x.lanes());
}

Node Graph::rebuild(const Node& node, std::span<const Node> sources) {
  bool same = &node.graph() == this && node.source_count() == static_cast<int>(sources.size());
  for (int i = 0; same && i < node.source_count(); ++i)
    same = node.src(i) == sources[static_cast<size_t>(i)];
  if (same) return node;
  return make(node.op(), node.dtype(), sources, node.arg(), node.lanes());
}

Node Graph::import(const Node& root) {
  if (&root.graph() == this) return root;
  std::unordered_map<uint32_t, Node> copied;
  std::vector<Node> sources;
  for (const Node& n : toposort(root)) {
    sources.clear();
    for (int i = 0; i < n.source_count(); ++i) sources.push_back(copied.at(n.src(i).id()));
    if (n.is(Op::Buffer)) {
      copied[n.id()] = buffer(n.dtype(), n.shape(), n.graph().buffer_data(n));
    } else {
      copied[n.id()] = make(n.op(), n.dtype(), sources, n.arg(), n.lanes());
    }
  }
  return copied.at(root.id());
}

Op Node::op() const { return graph_->data(id_).op; }
DType Node::dtype() const { return graph_->data(id_).dtype; }
int Node::lanes() const { return graph_->data(id_).lanes; }
int Node::source_count() const { return graph_->data(id_).source_count; }
Node Node::src(int i) const { return Node(graph_, graph_->data(id_).sources[i]); }
const Arg& Node::arg() const { return graph_->arg_at(graph_->data(id_).arg); }
const Shape& Node::shape() const { return graph_->shape_at(graph_->data(id_).shape); }

int64_t Node::const_int() const {
  IGNIS_CHECK(is_const());
  if (is_float(dtype())) return static_cast<int64_t>(const_float());
  return arg().ints[0];
}
double Node::const_float() const {
  IGNIS_CHECK(is_const());
  if (is_float(dtype())) return std::bit_cast<double>(arg().ints[0]);
  if (dtype() == DType::UInt64) return static_cast<double>(static_cast<uint64_t>(arg().ints[0]));
  return static_cast<double>(arg().ints[0]);
}
bool Node::is_const_value(int64_t v) const {
  if (!is_const()) return false;
  if (is_float(dtype()))
    return const_float() == static_cast<double>(v) && !(v == 0 && std::signbit(const_float()));
  return arg().ints[0] == v;
}
Op Node::reduce_op() const { return static_cast<Op>(arg().ints[0]); }
AxisKind Node::axis_kind() const { return static_cast<AxisKind>(arg().ints[1]); }
int64_t Node::range_extent() const {
  const Node end = src(0);
  return end.is_const() ? end.const_int() : -1;
}

Arg encode(const ParamArg& param) {
  Arg arg{{param.slot, static_cast<int64_t>(param.shape.size())}, param.name};
  arg.ints.insert(arg.ints.end(), param.shape.begin(), param.shape.end());
  if (param.layout.digits.empty() && param.layout.halo_lo.empty()) return arg;
  arg.ints.push_back(static_cast<int64_t>(param.layout.digits.size()));
  for (const LayoutDigit& d : param.layout.digits)
    arg.ints.insert(arg.ints.end(), {d.dim, d.divisor, d.extent});
  for (size_t i = 0; i < param.layout.halo_lo.size(); ++i) {
    arg.ints.insert(arg.ints.end(), {param.layout.halo_lo[i], param.layout.halo_hi[i]});
  }
  return arg;
}

ParamArg decode_param(const Node& node) {
  IGNIS_CHECK(node.is(Op::Param));
  const Arg& arg = node.arg();
  ParamArg param;
  param.slot = arg.ints[0];
  param.name = arg.text;
  param.shape = node.shape();
  size_t at = 2 + param.shape.size();
  if (at >= arg.ints.size()) return param;
  const auto count = static_cast<size_t>(arg.ints[at++]);
  for (size_t i = 0; i < count; ++i, at += 3) {
    param.layout.digits.push_back(
        {static_cast<int>(arg.ints[at]), arg.ints[at + 1], arg.ints[at + 2]});
  }
  for (; at + 1 < arg.ints.size(); at += 2) {
    param.layout.halo_lo.push_back(arg.ints[at]);
    param.layout.halo_hi.push_back(arg.ints[at + 1]);
  }
  return param;
}

std::vector<Node> toposort(const Node& root) { return toposort(std::span<const Node>(&root, 1)); }

std::vector<Node> toposort(std::span<const Node> roots) {
  std::vector<Node> order;
  if (roots.empty()) return order;
  std::vector<bool> seen(roots[0].graph().size(), false);
  std::vector<std::pair<Node, int>> stack;
  for (const Node& root : roots) {
    if (seen[root.id()]) continue;
    seen[root.id()] = true;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next == node.source_count()) {
        order.push_back(node);
        stack.pop_back();
        continue;
      }
      const Node source = node.src(next++);
      if (seen[source.id()]) continue;
      seen[source.id()] = true;
      stack.emplace_back(source, 0);
    }
  }
  return order;
}

ContentKey content_key(const Node& root) {
  std::unordered_map<uint32_t, ContentKey> keys;
  std::vector<uint64_t> words;
  ContentKey key;
  for (const Node& n : toposort(root)) {
    words.assign({kContentKeyVersion, static_cast<uint64_t>(n.op()),
                  static_cast<uint64_t>(n.dtype()), static_cast<uint64_t>(n.lanes()),
                  static_cast<uint64_t>(n.source_count()), n.arg().ints.size(),
                  n.arg().text.size()});
    for (const int64_t v : n.arg().ints) words.push_back(static_cast<uint64_t>(v));
    for (const char c : n.arg().text) words.push_back(static_cast<uint8_t>(c));
    for (int i = 0; i < n.source_count(); ++i) {
      const ContentKey& k = keys.at(n.src(i).id());
      words.push_back(k.lo);
      words.push_back(k.hi);
    }
    const XXH128_hash_t h = XXH3_128bits(words.data(), words.size() * sizeof(uint64_t));
    key = {h.low64, h.high64};
    keys[n.id()] = key;
  }
  return key;
}

std::string ContentKey::to_string() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hi),
                static_cast<unsigned long long>(lo));
  return text;
}

}  // namespace ignis::ir
