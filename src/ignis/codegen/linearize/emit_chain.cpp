#include "ignis/codegen/linearize/emitter.h"
#include "ignis/codegen/linearize/emitter_state.h"

#include <algorithm>

namespace ignis::codegen {
namespace {

/// Emits the loops over units, values of the outer ranges and bands, and in them the stages one after the other.
///
/// A buffer between stages holds, for each unit, the rows that one band reads of it: `base`, the first of them, is
/// at its begin. Where windows of two bands overlap the next band moves what it keeps to the begin. Rows beyond the
/// buffer's first and last are zeros where its layout has a halo.
class ChainEmitter {
 public:
  ChainEmitter(const std::vector<ChainStage>& stages, const ir::Bands& bands, const ir::Bands& most,
               int64_t tile, const Config& config, Program& program)
      : stages_(stages),
        bands_(bands),
        tiles_(cover(stages.back().rows.extent, tile)),
        config_(config),
        program_(program),
        b_(*program.graph) {
    std::vector<ir::RowStage> rows;
    for (const ChainStage& stage : stages) rows.push_back(stage.rows);
    held_ = ir::held_rows(rows, most.rows);
  }

  void run() {
    const Node part = special("part", 0), parts = special("parts", 1);
    const Node low = quotient(b_.mul(part, bands_.units), parts);
    const Node high = quotient(b_.mul(plus(part, 1), bands_.units), parts);
    Block* unit = b_.open(b_.top(), minus(high, low));
    unit_ = b_.add(low, unit->range);
    const int64_t outer = ir::outer_count(stages_.back().rows), turn = tiles_.count;
    const Node begin = b_.div(b_.mul(unit_, outer * turn), bands_.units);
    const Node end = b_.div(b_.mul(plus(unit_, 1), outer * turn), bands_.units);
    if (outer == 1) {
      emit_rows(begin, end, unit);
    } else {
      const Node lowest = b_.div(begin, turn);
      Block* around = b_.open(unit, minus(b_.div(plus(end, turn - 1), turn), lowest));
      Node rest = b_.add(lowest, around->range);
      const Node before = b_.mul(rest, -turn);
      for (size_t i = stages_.back().rows.outer.size(); i-- > 0;) {
        const int64_t extent = stages_.back().rows.outer[i].range_extent();
        outer_.insert(outer_.begin(), i == 0 ? rest : b_.mod(rest, extent));
        if (i > 0) rest = b_.div(rest, extent);
      }
      emit_rows(max(b_.add(begin, before), constant(0)),
                b_.min(b_.add(end, before), constant(turn)), around);
      b_.close(around);
    }
    b_.close(unit);
    program_.list = b_.take();
  }

 private:
  struct Rows {
    Node start, end;  ///< what the band computes
    Node base,
        read_end;  ///< what it holds: `base` may lie before the first row, `read_end` after the last
    Node done, old_base;  ///< what the band before left
  };

  Node constant(int64_t v) { return b_.constant(DType::Int64, v); }
  Node plus(const Node& a, int64_t v) { return b_.add(a, constant(v)); }
  Node minus(const Node& a, const Node& b) { return b_.value(Op::Sub, DType::Int64, {a, b}); }
  Node max(const Node& a, const Node& b) { return b_.value(Op::Max, DType::Int64, {a, b}); }
  Node quotient(const Node& a, const Node& b) { return b_.value(Op::Cdiv, DType::Int64, {a, b}); }
  Node special(const char* name, int64_t least) {
    return b_.place(program_.graph->make(Op::Special, DType::Int64, std::span<const Node>{},
                                         ir::Arg{{least, int64_t{1} << 31}, name}));
  }
  Node variable(Block* block) {
    const Node reg = b_.declare_reg(block, DType::Int64, 1);
    b_.write_reg(block, reg, constant(0));
    return reg;
  }

  /// The tiles of rows [begin, end) of one value of the outer ranges.
  void emit_rows(const Node& begin, const Node& end, Block* block) {
    for (size_t i = 0; i + 1 < stages_.size(); ++i) {
      done_.push_back(variable(block));
      base_.push_back(variable(block));
    }
    const int64_t tiles = std::max<int64_t>(1, bands_.rows / tiles_.size);
    Block* band = b_.open(block, b_.div(plus(minus(end, begin), tiles - 1), tiles));
    const Node first = b_.add(begin, b_.mul(band->range, tiles));
    emit_band(first, b_.min(plus(first, tiles), end), band);
    b_.close(band);
  }

  /// The first row of a tile.
  Node row_of(const Node& tile) {
    const Node row = b_.mul(tile, tiles_.size);
    if (tiles_.large == tiles_.count) return row;
    return minus(row, max(plus(tile, -tiles_.large), constant(0)));
  }

  void emit_band(const Node& first_tile, const Node& end_tile, Block* band) {
    std::vector<Rows> rows(stages_.size());
    rows.back().start = row_of(first_tile);
    rows.back().end = row_of(end_tile);
    for (size_t i = stages_.size() - 1; i-- > 0;) {
      Rows& mine = rows[i];
      const ir::RowWindow& window = stages_[i + 1].rows.window;
      const Node extent = constant(stages_[i].rows.extent);
      mine.done = b_.read_reg(band, done_[i]);
      mine.old_base = b_.read_reg(band, base_[i]);
      mine.base = plus(b_.mul(rows[i + 1].start, window.stride), window.first);
      mine.read_end = plus(b_.mul(rows[i + 1].end, window.stride), window.last + 1 - window.stride);
      mine.start = b_.min(max(mine.base, mine.done), extent);
      mine.end = max(b_.min(mine.read_end, extent), mine.start);
      b_.write_reg(band, done_[i], mine.end);
      b_.write_reg(band, base_[i], mine.base);
    }
    std::map<int64_t, Node> shifts;
    for (size_t i = 0; i + 1 < stages_.size(); ++i) {
      const ir::RowStage& stage = stages_[i].rows;
      const Node origin = minus(b_.mul(unit_, held_[i]), plus(rows[i].base, stage.halo_lo));
      Node& shift = shifts[stage.slot];
      shift = b_.mul(origin, stage.row_elements);
      for (size_t a = 0; a < outer_.size(); ++a)
        shift = b_.add(shift, b_.mul(outer_[a], -stage.outer_elements[a]));
    }
    for (size_t i = 0; i < stages_.size(); ++i) {
      if (i + 1 < stages_.size()) hold(i, rows[i], band);
      Emitter(stages_[i].kernel, stages_[i].plan, config_.float_level, program_, b_)
          .run_band(stages_[i].axes,
                    {rows[i].start, rows[i].end, first_tile, end_tile, outer_, shifts}, band);
    }
  }

  /// Moves the rows that the band still reads, and writes the zeros around the buffer's rows.
  void hold(size_t i, const Rows& rows, Block* band) {
    const ir::RowStage& stage = stages_[i].rows;
    const ir::RowWindow& window = stages_[i + 1].rows.window;
    const Node begin = b_.mul(unit_, held_[i] * stage.row_elements);
    const auto elements = [&](const Node& count) { return b_.mul(count, stage.row_elements); };
    if (window.last - window.first + 1 > window.stride) {
      const Node is_later = b_.min(band->range, constant(1));
      const Node kept = b_.value(Op::Mul, DType::Int64, {minus(rows.done, rows.base), is_later});
      const Node from = b_.add(begin, elements(minus(rows.base, rows.old_base)));
      fill(i, begin, elements(kept), from, band);
    }
    if (stage.halo_lo > 0) fill(i, begin, elements(minus(constant(0), rows.base)), {}, band);
    if (stage.halo_hi > 0) {
      const Node after = max(constant(stage.extent), rows.base);
      fill(i, b_.add(begin, elements(minus(after, rows.base))),
           elements(minus(rows.read_end, after)), {}, band);
    }
  }

  /// Writes `count` elements of stage i's buffer from `to` on: those from `from` on, or zeros. The kernel's Param has the
  /// dtype that programs store.
  void fill(size_t i, const Node& to, const Node& count, const Node& from, Block* block) {
    const Node param = b_.place(program_.graph->import(stages_[i].kernel.store().src(0).src(0)));
    const int lanes = config_.target.lanes(param.dtype());
    const Node vectors = b_.div(count, lanes);
    const auto copy = [&](Block* loop, const Node& at, int width) {
      const auto index = [&](const Node& offset) {
        return b_.value(Op::Index, param.dtype(), {param, b_.add(offset, at)});
      };
      Node v = from ? b_.value(Op::Load, param.dtype(), {index(from)}, {}, width)
                    : b_.constant(param.dtype(), 0);
      if (v.lanes() != width) v = b_.value(Op::Broadcast, param.dtype(), {v}, {}, width);
      b_.append(loop, program_.graph->make(Op::Store, DType::Void, {index(to), v}));
    };
    Block* wide = b_.open(block, vectors);
    copy(wide, b_.mul(wide->range, lanes), lanes);
    b_.close(wide);
    const Node rest = b_.mul(vectors, lanes);
    Block* narrow = b_.open(block, minus(count, rest));
    copy(narrow, b_.add(rest, narrow->range), 1);
    b_.close(narrow);
  }

  const std::vector<ChainStage>& stages_;
  const ir::Bands& bands_;
  TileCover tiles_;  ///< of the rows
  const Config& config_;
  Program& program_;
  BlockBuilder b_;
  std::vector<int64_t> held_;
  Node unit_;
  std::vector<Node> outer_;        ///< values of the ranges around the rows
  std::vector<Node> done_, base_;  ///< variables: where the rows of stage i end, and its base
};

}  // namespace

Result<Program> emit_chain(const std::vector<ChainStage>& stages, const ir::Bands& bands,
                           const ir::Bands& most, int64_t tile, const Config& config) {
  Program program;
  program.graph = std::make_shared<ir::Graph>();
  ChainEmitter(stages, bands, most, tile, config, program).run();
  return program;
}

}  // namespace ignis::codegen
