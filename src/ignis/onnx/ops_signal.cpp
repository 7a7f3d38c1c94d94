// Fourier transforms as products with constant matrices, window functions, the mel filter bank.
#include "ignis/onnx/ops_common.h"

#include <cmath>
#include <numbers>
#include <optional>

namespace ignis::onnx {
namespace {

namespace t = tensor;

// Real and imaginary part, the transformed axis last. An absent imaginary part is 0.
struct Complex {
  Tensor re;
  std::optional<Tensor> im;
};

// [rows, columns] of cos or sin of 2 pi row column / n. The product is reduced modulo n first: the angle stays small.
Tensor twiddles(const OpContext& ctx, int64_t rows, int64_t columns, int64_t n, double (*f)(double),
                double factor) {
  HostTensor m = HostTensor::zeros(DType::Float32, {rows, columns});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(r * c % n) / static_cast<double>(n);
      m.data<float>()[r * columns + c] = static_cast<float>(factor * f(angle));
    }
  }
  return ctx.constant(m);
}

double cosine(double x) { return std::cos(x); }
double sine(double x) { return std::sin(x); }

// The first `bins` values of the transform of length n over the last axis (which has n values).
Complex transform(const OpContext& ctx, const Complex& x, int64_t n, int64_t bins,
                  bool is_inverse) {
  const double scale = is_inverse ? 1.0 / static_cast<double>(n) : 1.0;
  // (re + j im)(cos -+ j sin)
  const Tensor c = twiddles(ctx, n, bins, n, cosine, scale);
  const Tensor s = twiddles(ctx, n, bins, n, sine, is_inverse ? -scale : scale);
  Complex y{t::matmul(x.re, c), t::neg(t::matmul(x.re, s))};
  if (x.im) {
    y.re = y.re + t::matmul(*x.im, s);
    y.im = *y.im + t::matmul(*x.im, c);
  }
  return y;
}

// Splits [.., 1 | 2] and moves `axis` to the end.
Complex read_complex(const Tensor& x, int64_t axis) {
  const Tensor wide = t::cast(x, DType::Float32);
  Complex c{t::move_axis(t::select(wide, -1, 0), axis, x.rank() - 2), std::nullopt};
  if (x.dim(-1) == 2) c.im = t::move_axis(t::select(wide, -1, 1), axis, x.rank() - 2);
  return c;
}

// Zero-pads or cuts the last axis to n values.
Tensor fit_last(const Tensor& x, int64_t n) {
  const int64_t extent = x.dim(-1);
  if (extent == n) return x;
  std::vector<std::pair<int64_t, int64_t>> amounts(x.shape().size(), {0, 0});
  amounts.back().second = n - extent;  // negative amounts crop
  return t::pad(x, amounts);
}

Status check_signal(const OpContext& ctx, const Tensor& x, int64_t n) {
  if (x.rank() < 2 || (x.dim(-1) != 1 && x.dim(-1) != 2)) {
    return ctx.error("The last axis of a signal has 1 or 2 values, not " + x.describe() + ".");
  }
  if (n < 1 || n > 4096) {
    // The transform is a dense product: its matrix grows with the square of the length.
    return ctx.unsupported("A transform of length " + std::to_string(n) + ".");
  }
  if (x.dtype() == DType::Float64) return ctx.unsupported("A transform of float64.");
  return Status::ok();
}

OpOutputs dft(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  int64_t axis = ctx.opset() >= 20 ? -2 : ctx.attr_int("axis", 1);
  if (ctx.opset() >= 20 && ctx.has_input(2)) {
    IGNIS_TRY_ASSIGN(axis, ctx.const_int(2));
  }
  axis = ctx.axis(axis, x.rank());
  if (axis == x.rank() - 1) return ctx.error("The last axis holds the parts of complex numbers.");
  const bool is_inverse = ctx.attr_int("inverse", 0) != 0;
  const bool is_onesided = ctx.attr_int("onesided", 0) != 0;
  const bool is_half_to_real = is_inverse && is_onesided;
  const int64_t extent = x.dim(static_cast<int>(axis));
  int64_t n = is_half_to_real ? 2 * (extent - 1) : extent;
  if (ctx.has_input(1)) {
    IGNIS_TRY_ASSIGN(n, ctx.const_int(1));
  }
  IGNIS_TRY(check_signal(ctx, x, n));
  Complex signal = read_complex(x, axis);
  const int64_t half = n / 2 + 1;
  signal.re = fit_last(signal.re, is_half_to_real ? half : n);
  if (signal.im) signal.im = fit_last(*signal.im, is_half_to_real ? half : n);
  if (is_half_to_real) {
    // The missing half is the conjugate mirror: every bin but the first and, for even n, the last counts twice.
    HostTensor twice = HostTensor::zeros(DType::Float32, {half});
    for (int64_t k = 0; k < half; ++k) {
      twice.data<float>()[k] = k == 0 || 2 * k == n ? 1.0f : 2.0f;
    }
    const Tensor weight = ctx.constant(twice);
    const double scale = 1.0 / static_cast<double>(n);
    Tensor y = t::matmul(signal.re * weight, twiddles(ctx, half, n, n, cosine, scale));
    if (signal.im) {
      y = y - t::matmul(*signal.im * weight, twiddles(ctx, half, n, n, sine, scale));
    }
    y = t::unsqueeze(t::move_axis(y, y.rank() - 1, axis), {-1});
    return one(t::cast(y, x.dtype()));
  }
  if (is_onesided && signal.im) return ctx.error("A one-sided transform needs a real signal.");
  const Complex y = transform(ctx, signal, n, is_onesided ? half : n, is_inverse);
  const Tensor parts = t::stack({y.re, *y.im}, y.re.rank());
  return one(t::cast(t::move_axis(parts, parts.rank() - 2, axis), x.dtype()));
}

OpOutputs stft(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.rank() != 3)
    return ctx.error("A signal is [batch, length, 1 | 2], not " + x.describe() + ".");
  IGNIS_TRY_ASSIGN(const int64_t step, ctx.const_int(1));
  int64_t n = x.dim(1);
  if (ctx.has_input(3)) {
    IGNIS_TRY_ASSIGN(n, ctx.const_int(3));
  } else if (ctx.has_input(2)) {
    n = ctx.input(2).count();
  }
  IGNIS_TRY(check_signal(ctx, x, n));
  if (step < 1 || n > x.dim(1)) {
    return ctx.error("Frames of " + std::to_string(n) + " at steps of " + std::to_string(step) +
                     " do not fit " + x.describe() + ".");
  }
  Complex signal = read_complex(x, 1);
  const auto frames = [&](const Tensor& part) {  // [batch, length] -> [batch, frames, n]
    const Tensor windows = t::window(part, 1, n, step);
    if (!ctx.has_input(2)) return windows;
    return windows * t::cast(t::reshape(ctx.input(2), {n}), DType::Float32);
  };
  signal.re = frames(signal.re);
  if (signal.im) signal.im = frames(*signal.im);
  const bool is_onesided = ctx.attr_int("onesided", 1) != 0;
  if (is_onesided && signal.im) return ctx.error("A one-sided transform needs a real signal.");
  const Complex y = transform(ctx, signal, n, is_onesided ? n / 2 + 1 : n, false);
  return one(t::cast(t::stack({y.re, *y.im}, 3), x.dtype()));
}

// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), n the size or, for a symmetric window, one less.
OpOutputs cosine_window(const OpContext& ctx, double a0, double a1, double a2) {
  IGNIS_TRY_ASSIGN(const int64_t size, ctx.const_int(0));
  if (size < 0 || size > ctx.limits().max_fold_elements) {
    return ctx.error("A window of size " + std::to_string(size) + ".");
  }
  const bool is_periodic = ctx.attr_int("periodic", 1) != 0;
  const double n = static_cast<double>(is_periodic ? size : size - 1);
  HostTensor w = HostTensor::zeros(ctx.attr_dtype("output_datatype", DType::Float32), {size});
  for (int64_t i = 0; i < size; ++i) {
    // A symmetric window of one value is its peak.
    const double angle =
        n > 0 ? 2 * std::numbers::pi * static_cast<double>(i) / n : std::numbers::pi;
    store_element(w, i, a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  return one(ctx.constant(w));
}

OpOutputs hann_window(const OpContext& ctx) { return cosine_window(ctx, 0.5, 0.5, 0); }
OpOutputs hamming_window(const OpContext& ctx) {
  return cosine_window(ctx, 25.0 / 46.0, 1 - 25.0 / 46.0, 0);
}
OpOutputs blackman_window(const OpContext& ctx) { return cosine_window(ctx, 0.42, 0.5, 0.08); }

OpOutputs mel_weight_matrix(const OpContext& ctx) {
  IGNIS_TRY_ASSIGN(const int64_t bands, ctx.const_int(0));
  IGNIS_TRY_ASSIGN(const int64_t dft_length, ctx.const_int(1));
  IGNIS_TRY_ASSIGN(const int64_t sample_rate, ctx.const_int(2));
  IGNIS_TRY_ASSIGN(const double lower, ctx.const_float(3));
  IGNIS_TRY_ASSIGN(const double upper, ctx.const_float(4));
  if (bands < 1 || dft_length < 1 || sample_rate < 1 || !(lower >= 0) || !(upper >= lower) ||
      !std::isfinite(upper) || dft_length > ctx.limits().max_fold_elements ||
      (dft_length / 2 + 1) > ctx.limits().max_fold_elements / bands) {
    return ctx.error("A filter bank of " + std::to_string(bands) + " bands over " +
                     std::to_string(dft_length) + " bins.");
  }
  const int64_t bins = dft_length / 2 + 1;
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const auto hertz = [](double m) { return 700 * (std::pow(10.0, m / 2595) - 1); };
  const double step = (mel(upper) - mel(lower)) / static_cast<double>(bands + 2);
  // The spectrum bin of each triangle corner.
  const auto corner = [&](int64_t i) {
    const double f = hertz(mel(lower) + step * static_cast<double>(i));
    const double bin = static_cast<double>(dft_length + 1) * f / static_cast<double>(sample_rate);
    return static_cast<int64_t>(std::floor(std::min(bin, static_cast<double>(bins))));
  };
  HostTensor m =
      HostTensor::zeros(ctx.attr_dtype("output_datatype", DType::Float32), {bins, bands});
  for (int64_t band = 0; band < bands; ++band) {
    const int64_t low = corner(band), peak = corner(band + 1), high = corner(band + 2);
    for (int64_t bin = low; bin < std::max(high, peak + 1); ++bin) {
      if (bin >= bins) break;
      double weight = 1;
      if (bin < peak) weight = static_cast<double>(bin - low) / static_cast<double>(peak - low);
      if (bin > peak) weight = static_cast<double>(high - bin) / static_cast<double>(high - peak);
      store_element(m, bin * bands + band, weight);
    }
  }
  return one(ctx.constant(m));
}

// clang-format off
constexpr OpEntry kOps[] = {
    {"", "DFT",             17, 1, 3, dft},
    {"", "STFT",            17, 2, 4, stft},
    {"", "HannWindow",      17, 1, 1, hann_window},
    {"", "HammingWindow",   17, 1, 1, hamming_window},
    {"", "BlackmanWindow",  17, 1, 1, blackman_window},
    {"", "MelWeightMatrix", 17, 5, 5, mel_weight_matrix},
};
// clang-format on

}  // namespace

std::span<const OpEntry> signal_ops() { return kOps; }

}  // namespace ignis::onnx
