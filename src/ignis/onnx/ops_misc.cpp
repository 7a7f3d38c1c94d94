// Operators that fit no other file: determinant, fold, crop, box suppression, n-gram counts.
#include "ignis/onnx/ops_common.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>

namespace ignis::onnx {
namespace {

namespace t = tensor;

// Expansion along rows over subsets of columns: minors of the last k rows are shared. Exact in structure (no pivoting,
// no division); the cost m * 2^m bounds the size.
OpOutputs det(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.rank() < 2 || x.dim(-1) != x.dim(-2)) {
    return ctx.error("Det needs square matrices, not " + x.describe() + ".");
  }
  const int64_t m = x.dim(-1);
  if (m > 8) return ctx.unsupported("Det of matrices larger than 8 x 8 (" + x.describe() + ").");
  if (m == 0) {
    return one(
        Tensor::full(x.graph(), Shape(x.shape().begin(), x.shape().end() - 2), 1.0, x.dtype()));
  }
  const auto element = [&](int64_t row, int64_t column) {
    return t::select(t::select(x, -2, row), -1, column);
  };
  // minors[set]: determinant of the last |set| rows and the columns in `set`.
  std::vector<Tensor> minors(size_t{1} << m);
  for (uint32_t set = 1; set < (uint32_t{1} << m); ++set) {
    const int64_t row = m - std::popcount(set);
    Tensor sum;
    bool is_negative = false;
    for (int64_t column = 0; column < m; ++column) {
      const uint32_t bit = uint32_t{1} << column;
      if ((set & bit) == 0) continue;
      Tensor term = element(row, column);
      if (set != bit) term = term * minors[set ^ bit];
      sum = !sum ? term : is_negative ? sum - term : sum + term;
      is_negative = !is_negative;
    }
    minors[set] = sum;
  }
  return one(minors.back());
}

// A transposed convolution whose weights put row k of a block at position k of the block.
OpOutputs col2im(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  IGNIS_TRY_ASSIGN(const std::vector<int64_t> image, ctx.const_ints(1));
  IGNIS_TRY_ASSIGN(const std::vector<int64_t> block, ctx.const_ints(2));
  const size_t spatial = image.size();
  const auto read = [&](std::string_view name, size_t count, int64_t fallback) {
    std::vector<int64_t> v = ctx.attr_ints(name);
    return v.empty() ? std::vector<int64_t>(count, fallback) : v;
  };
  const std::vector<int64_t> strides = read("strides", spatial, 1);
  const std::vector<int64_t> dilations = read("dilations", spatial, 1);
  const std::vector<int64_t> pads = read("pads", 2 * spatial, 0);
  if (x.rank() != 3 || spatial < 1 || block.size() != spatial || strides.size() != spatial ||
      dilations.size() != spatial || pads.size() != 2 * spatial) {
    return ctx.error("Input " + x.describe() + ", image_shape and block_shape do not fit.");
  }
  IGNIS_TRY_ASSIGN(const int64_t taps, checked_element_count(block));
  if (taps > 1024)
    return ctx.unsupported("Col2Im of blocks of " + std::to_string(taps) + " positions.");
  if (taps < 1 || x.dim(1) % taps != 0) {
    return ctx.error("Blocks of " + to_string(block) + " do not divide " + x.describe() + ".");
  }
  const int64_t channels = x.dim(1) / taps;
  Shape columns{x.dim(0), x.dim(1)};
  int64_t column_count = 1;
  t::ConvOptions options;
  options.groups = channels;
  for (size_t i = 0; i < spatial; ++i) {
    constexpr int64_t kMost = int64_t{1} << 31;
    for (const int64_t v :
         {image[i], block[i], strides[i], dilations[i], pads[i], pads[spatial + i]}) {
      if (v < 0 || v > kMost) return ctx.error("An extent of " + std::to_string(v) + ".");
    }
    const int64_t reach = dilations[i] * (block[i] - 1) + 1;
    const int64_t room = image[i] + pads[i] + pads[spatial + i] - reach;
    if (strides[i] < 1 || dilations[i] < 1 || pads[i] < 0 || pads[spatial + i] < 0 || room < 0) {
      return ctx.error("Blocks of " + to_string(block) + " do not fit an image of " +
                       to_string(image) + ".");
    }
    columns.push_back(room / strides[i] + 1);
    column_count *= columns.back();
    options.strides.push_back(strides[i]);
    options.dilations.push_back(dilations[i]);
    options.pads_lo.push_back(pads[i]);
    options.pads_hi.push_back(pads[spatial + i]);
    options.output_padding.push_back(room % strides[i]);
  }
  if (column_count != x.dim(2)) {
    return ctx.error("Input " + x.describe() + " has not the " + std::to_string(column_count) +
                     " blocks of an image of " + to_string(image) + ".");
  }
  Shape out_shape{x.dim(0), channels};
  out_shape.insert(out_shape.end(), image.begin(), image.end());
  require_size(ctx, out_shape);
  // w [channels * taps, 1, block…] is 1 where the row's tap is the position.
  HostTensor identity = HostTensor::zeros(DType::Float32, {taps, taps});
  for (int64_t k = 0; k < taps; ++k) identity.data<float>()[k * taps + k] = 1;
  Shape w_shape{channels * taps, 1};
  w_shape.insert(w_shape.end(), block.begin(), block.end());
  const Tensor w =
      t::reshape(t::tile(t::reshape(t::cast(ctx.constant(identity), x.dtype()), {1, taps, taps}),
                         {channels, 1, 1}),
                 w_shape);
  return one(
      t::cast(t::conv_transpose(t::reshape(x, columns), w, std::nullopt, options), x.dtype()));
}

OpOutputs center_crop_pad(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  IGNIS_TRY_ASSIGN(const std::vector<int64_t> target, ctx.const_ints(1));
  std::vector<int64_t> axes = ctx.attr_ints("axes");
  if (axes.empty()) {
    axes.resize(x.shape().size());
    std::iota(axes.begin(), axes.end(), int64_t{0});
  }
  if (axes.size() != target.size()) {
    return ctx.error("shape " + to_string(target) + " has not one value an axis.");
  }
  Tensor y = x;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = ctx.axis(axes[i], x.rank());
    const int64_t in = y.dim(static_cast<int>(axis)), out = target[i];
    if (out < 0) return ctx.error("shape " + to_string(target) + " is negative.");
    Shape shape = y.shape();
    shape[static_cast<size_t>(axis)] = out;
    require_size(ctx, shape);
    if (out <= in) {
      const int64_t begin = (in - out) / 2;
      y = t::slice(y, axis, begin, begin + out);
    } else {
      std::vector<std::pair<int64_t, int64_t>> amounts(x.shape().size(), {0, 0});
      const int64_t before = (out - in) / 2;
      amounts[static_cast<size_t>(axis)] = {before, out - in - before};
      y = t::pad(y, amounts);
    }
  }
  return one(y);
}

// --- box suppression, on values known at import ---

struct Box {
  double y0, x0, y1, x1;
};

Box read_box(const HostTensor& boxes, int64_t at, bool is_centre_form) {
  const auto v = [&](int64_t i) { return element_as_double(boxes, at * 4 + i); };
  if (is_centre_form) {  // x, y, width, height
    return {v(1) - v(3) / 2, v(0) - v(2) / 2, v(1) + v(3) / 2, v(0) + v(2) / 2};
  }
  // Any pair of diagonal corners.
  return {std::min(v(0), v(2)), std::min(v(1), v(3)), std::max(v(0), v(2)), std::max(v(1), v(3))};
}

double overlap(const Box& a, const Box& b) {
  const double h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  const double w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (h <= 0 || w <= 0) return 0;
  const double both = h * w;
  const double area = (a.y1 - a.y0) * (a.x1 - a.x0) + (b.y1 - b.y0) * (b.x1 - b.x0) - both;
  return area > 0 ? both / area : 0;
}

OpOutputs non_max_suppression(const OpContext& ctx) {
  const auto result = [&](const std::vector<int64_t>& picked) {
    HostTensor y = HostTensor::zeros(DType::Int64, {static_cast<int64_t>(picked.size() / 3), 3});
    std::copy(picked.begin(), picked.end(), y.data<int64_t>());
    return one(ctx.constant(y));
  };
  // Without a number of boxes, or with 0, nothing is selected, whatever the boxes are.
  int64_t max_boxes = 0;
  if (ctx.has_input(2)) {
    IGNIS_TRY_ASSIGN(max_boxes, ctx.const_int(2));
  }
  if (max_boxes <= 0) return result({});
  double iou_limit = 0;
  if (ctx.has_input(3)) {
    IGNIS_TRY_ASSIGN(iou_limit, ctx.const_float(3));
  }
  double score_limit = -INFINITY;
  if (ctx.has_input(4)) {
    IGNIS_TRY_ASSIGN(score_limit, ctx.const_float(4));
  }
  IGNIS_TRY_ASSIGN(const HostTensor boxes, ctx.const_input(0));
  IGNIS_TRY_ASSIGN(const HostTensor scores, ctx.const_input(1));
  if (boxes.shape.size() != 3 || scores.shape.size() != 3 || boxes.shape[2] != 4 ||
      boxes.shape[0] != scores.shape[0] || boxes.shape[1] != scores.shape[2]) {
    return ctx.error("Boxes " + to_string(boxes.shape) + " and scores " + to_string(scores.shape) +
                     " do not fit.");
  }
  const bool is_centre_form = ctx.attr_int("center_point_box", 0) != 0;
  const int64_t batches = scores.shape[0], classes = scores.shape[1], count = scores.shape[2];
  constexpr int64_t kMaxComparisons = int64_t{1} << 28;
  int64_t comparisons = 0;
  std::vector<int64_t> picked;
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t c = 0; c < classes; ++c) {
      const auto score = [&](int64_t i) {
        return element_as_double(scores, (b * classes + c) * count + i);
      };
      std::vector<int64_t> order;
      for (int64_t i = 0; i < count; ++i) {
        if (score(i) >= score_limit) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t i, int64_t j) { return score(i) > score(j); });
      std::vector<Box> kept;
      for (const int64_t i : order) {
        if (static_cast<int64_t>(kept.size()) == max_boxes) break;
        comparisons += static_cast<int64_t>(kept.size());
        if (comparisons > kMaxComparisons) {
          return Error(ErrorCode::InvalidArgument, "Suppression at import compares too many boxes.",
                       "LimitExceeded");
        }
        const Box box = read_box(boxes, b * count + i, is_centre_form);
        const bool is_covered = std::any_of(kept.begin(), kept.end(), [&](const Box& other) {
          return overlap(box, other) > iou_limit;
        });
        if (is_covered) continue;
        kept.push_back(box);
        picked.insert(picked.end(), {b, c, i});
      }
    }
  }
  return result(picked);
}

// --- n-gram counts ---

OpOutputs tf_idf_vectorizer(const OpContext& ctx) {
  const Tensor& stated = ctx.input(0);
  const std::vector<int64_t> pool = ctx.attr_ints("pool_int64s");
  const std::vector<int64_t> starts = ctx.attr_ints("ngram_counts");
  const std::vector<int64_t> targets = ctx.attr_ints("ngram_indexes");
  const int64_t min_length = ctx.attr_int("min_gram_length");
  const int64_t max_length = ctx.attr_int("max_gram_length");
  const int64_t max_skip = ctx.attr_int("max_skip_count");
  const std::string mode = ctx.attr_string("mode", "");
  std::vector<float> weights = ctx.attr_floats("weights");
  if (ctx.has_attr("pool_strings")) return ctx.unsupported("TfIdfVectorizer of strings.");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") {
    return ctx.error("Unknown mode '" + mode + "'.");
  }
  if (stated.rank() < 1 || stated.rank() > 2 || targets.empty() || min_length < 1 ||
      max_length < min_length || max_skip < 0 || static_cast<int64_t>(starts.size()) < max_length) {
    return ctx.error("The n-gram attributes do not fit " + stated.describe() + ".");
  }
  if (weights.empty()) weights.assign(targets.size(), 1.0f);
  if (weights.size() != targets.size()) return ctx.error("weights needs one value an n-gram.");
  const int64_t last = *std::max_element(targets.begin(), targets.end());
  if (*std::min_element(targets.begin(), targets.end()) < 0 ||
      last >= ctx.limits().max_fold_elements) {
    return ctx.error("ngram_indexes reach " + std::to_string(last) + ".");
  }
  const int64_t width = last + 1;
  const Tensor x = t::cast(stated.rank() == 1 ? t::unsqueeze(stated, {0}) : stated, DType::Int64);
  const int64_t rows = x.dim(0), length = x.dim(1);
  std::vector<Tensor> counts;  // [rows, n-grams] of each length
  std::vector<int64_t> gram_of(static_cast<size_t>(width),
                               -1);  // output column -> column of all counts
  int64_t gram = 0, columns = 0;
  for (int64_t n = 1; n <= static_cast<int64_t>(starts.size()); ++n) {
    const int64_t begin = starts[static_cast<size_t>(n - 1)];
    const int64_t end = n < static_cast<int64_t>(starts.size()) ? starts[static_cast<size_t>(n)]
                                                                : static_cast<int64_t>(pool.size());
    if (begin < 0 || end < begin || end > static_cast<int64_t>(pool.size()) ||
        (end - begin) % n != 0) {
      return ctx.error("ngram_counts do not divide the pool.");
    }
    const int64_t grams = (end - begin) / n;
    if (gram + grams > static_cast<int64_t>(targets.size())) {
      return ctx.error("The pool holds more n-grams than ngram_indexes.");
    }
    const bool is_counted = n >= min_length && n <= max_length && grams > 0;
    if (is_counted) {
      const std::vector<int64_t> items(pool.begin() + begin, pool.begin() + end);
      const Tensor wanted = t::reshape(ctx.ints(items), {1, 1, grams, n});
      Tensor total = Tensor::zeros(x.graph(), {rows, grams}, DType::Int32);
      if (max_skip > 64) return ctx.unsupported("TfIdfVectorizer with max_skip_count over 64.");
      require_size(ctx, {rows, length, grams, n});
      // A single item has no gaps: it is counted once, not once a skip.
      for (int64_t skip = 0; skip <= (n == 1 ? 0 : max_skip); ++skip) {
        if ((skip + 1) * (n - 1) + 1 > length) break;
        const Tensor windows = t::window(x, 1, n, 1, skip + 1);  // [rows, positions, n]
        const Tensor is_match = t::all(t::equal(t::unsqueeze(windows, {2}), wanted), {3});
        total = total + t::sum(t::cast(is_match, DType::Int32), {1});
      }
      counts.push_back(total);
      for (int64_t g = 0; g < grams; ++g) {
        gram_of[static_cast<size_t>(targets[static_cast<size_t>(gram + g)])] = columns + g;
      }
      columns += grams;
    }
    gram += grams;
  }
  if (counts.empty()) {
    const Shape shape = stated.rank() == 1 ? Shape{width} : Shape{rows, width};
    return one(Tensor::zeros(x.graph(), shape));
  }
  // A column of zeros stands for outputs that no counted n-gram has.
  counts.push_back(Tensor::zeros(x.graph(), {rows, 1}, DType::Int32));
  HostTensor scale = HostTensor::zeros(DType::Float32, {width});
  for (size_t i = 0; i < targets.size(); ++i) {
    scale.data<float>()[targets[i]] = weights[i];
  }
  for (int64_t& column : gram_of) column = column < 0 ? columns : column;
  Tensor y = t::cast(t::gather(t::concat(counts, 1), ctx.ints(gram_of), 1), DType::Float32);
  if (mode == "IDF") y = t::minimum(y, 1.0);
  if (mode != "TF") y = y * ctx.constant(scale);
  return one(stated.rank() == 1 ? t::reshape(y, {width}) : y);
}

// clang-format off
constexpr OpEntry kOps[] = {
    {"", "Det",               11, 1, 1, det},
    {"", "Col2Im",            18, 3, 3, col2im},
    {"", "CenterCropPad",     18, 2, 2, center_crop_pad},
    {"", "NonMaxSuppression", 10, 2, 5, non_max_suppression},
    {"", "TfIdfVectorizer",    9, 1, 1, tf_idf_vectorizer},
};
// clang-format on

}  // namespace

std::span<const OpEntry> misc_ops() { return kOps; }

}  // namespace ignis::onnx
