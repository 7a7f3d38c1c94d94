#include "ignis/codegen/lower/functions.h"

#include <array>
#include <cmath>
#include <vector>

// sin and cos. |x| is reduced to r in [-pi/4, pi/4] and a quadrant: below 32 by subtracting multiples of pi/2 in three
// parts, beyond by multiplying the significand with the bits of 2/pi that matter, in integers (Payne and Hanek, "Radian
// reduction for trigonometric functions", 1983). Lanes cannot branch, so both are computed and one is chosen.

namespace ignis::codegen {

namespace {

bool is_double(const Expr& x) { return x.dtype() == DType::Float64; }

/// Bits of 2/pi after the point, 32 a word, behind two words of zeros for the numbers that are small.
constexpr std::array<uint32_t, 42> kTwoOverPi = {
    0,          0,          0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599,
    0x3C439041, 0xFE5163AB, 0xDEBBC561, 0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C,
    0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41, 0x3991D639,
    0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F, 0xEF2F118B, 0x5A0A6D1F,
    0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B, 0x3D0739F7,
    0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B6BAB, 0xF0CFBC20, 0x9AF4361D};

struct Reduced {
  Expr r;         ///< in [-pi/4, pi/4]
  Expr quadrant;  ///< integer of x's width; only its two low bits count
};

/// For 0 <= x < 32.
Reduced reduce_small(const Expr& x) {
  const Expr magic = x.number(is_double(x) ? 0x1.8p52 : 0x1.8p23);
  const Expr t = mulacc(x, x.number(0x1.45f306dc9c883p-1), magic);  // 2/pi
  const Expr k = t - magic;
  // pi/2 in parts short enough for exact products with k < 32.
  const double parts[2][3] = {{0x1.921f8p+0, 0x1.aa22p-19, 0x1.68c234c4c6629p-39},
                              {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69}};
  Expr r = x;
  for (const double part : parts[is_double(x) ? 1 : 0]) r = mulacc(k, x.number(-part), r);
  return {r, t.bits()};
}

/// `count` words of 2/pi from word `index` on, chosen without memory: each bit of the index halves the candidates.
std::vector<Expr> choose_words(const Expr& index, size_t first, int index_bits, size_t count) {
  std::vector<Expr> words;
  for (size_t i = first; i < kTwoOverPi.size(); ++i) {
    words.push_back(index.of(DType::UInt64, static_cast<int64_t>(kTwoOverPi[i])));
  }
  for (int bit = index_bits - 1; bit >= 0; --bit) {
    const size_t step = size_t{1} << bit, needed = count + step - 1;  // indices 0 … step - 1 remain
    const Expr is_set = differ(index & index.integer(int64_t{1} << bit), index.integer(0));
    std::vector<Expr> next;
    for (size_t i = 0; i < needed; ++i) {
      const bool has_low = i < words.size(), has_high = i + step < words.size();
      if (!has_low) break;
      next.push_back(has_high ? where(is_set, words[i + step], words[i]) : words[i]);
    }
    words = std::move(next);
  }
  return words;
}

/// For finite x >= 32; anything else gives some finite r.
Reduced reduce_large(const Expr& x) {
  const bool wide = is_double(x);
  const int shift = wide ? 52 : 23, bias = wide ? 1075 : 150;
  const auto u64 = [&](int64_t v) { return x.of(DType::UInt64, v); };
  const Expr bits = wide ? x.bitcast(DType::UInt64) : x.bitcast(DType::UInt32).cast(DType::UInt64);
  const Expr field = bits.shr(shift);
  const Expr significand = (bits & u64((int64_t{1} << shift) - 1)) | u64(int64_t{1} << shift);
  // x * 2/pi = significand * 2^E * (0.b1 b2 …), E = field - bias. Bits up to E - 2 contribute multiples of 4; the window
  // starts one bit later. With the 64 leading zeros that bit has the place E + 62 in the table. (Below 32 the place may
  // be negative: only the low bits of the index are looked at.)
  const Expr place = field - u64(bias - 62);
  const int index_bits = wide ? 6 : 3;
  const size_t first = wide ? 0 : 1;  // float32: places from 44 on; the first word is never needed
  const Expr index = place.shr(5) - u64(static_cast<int64_t>(first));
  const Expr offset = place & u64(31);
  const size_t window = wide ? 6 : 3;
  const std::vector<Expr> words = choose_words(index, first, index_bits, window + 1);
  std::vector<Expr> digits;  // of the window, most significant first, 32 bits each
  const Expr mask = u64(0xFFFFFFFF);
  for (size_t i = 0; i < window; ++i) {
    const Expr pair = words[i].shl(32) | words[i + 1];
    digits.push_back(pair.binary(ir::Op::Shr, u64(32) - offset) & mask);
  }
  // significand * window mod 2^(32 * window), in columns of 32 bits.
  std::vector<Expr> limbs{significand & mask};
  if (wide) limbs.push_back(significand.shr(32));
  std::vector<Expr> columns(window);
  const auto accumulate = [&](size_t column, const Expr& term) {
    if (column >= window) return;
    columns[column] = columns[column].node() ? columns[column] + term : term;
  };
  for (size_t limb = 0; limb < limbs.size(); ++limb) {
    for (size_t place_of = 0; place_of + limb < window; ++place_of) {
      const Expr product = limbs[limb] * digits[window - 1 - place_of];
      accumulate(place_of + limb, product & mask);
      accumulate(place_of + limb + 1, product.shr(32));
    }
  }
  for (size_t i = 0; i + 1 < window; ++i) columns[i + 1] = columns[i + 1] + columns[i].shr(32);
  const auto digit = [&](size_t i) {
    return columns[window - 1 - i] & mask;
  };  // most significant first
  // The top two bits are the quadrant; rounding to the nearest leaves a signed fraction of 62 bits.
  const Expr top = digit(0).shl(32) | digit(1);
  const Expr quadrant = (top + u64(int64_t{1} << 61)).shr(62);
  const Expr fraction = (top - quadrant.shl(62)).cast(DType::Int64);
  Expr turns = fraction.cast(DType::Float64);
  if (wide) {
    const Expr rest = digit(2).shl(32) | digit(3);
    turns = turns + rest.cast(DType::Float64) * turns.number(0x1p-64);
  }
  const Expr r = turns * turns.number(0x1.921fb54442d18p-62);  // pi/2 * 2^-62
  return {r.cast(x.dtype()), quadrant.cast(wide ? DType::Int64 : DType::Int32)};
}

/// sin(x) for shift 0, cos(x) = sin(x + pi/2) for shift 1.
Expr sine(const Expr& x, int shift) {
  const Expr size = magnitude(x);
  const Reduced small = reduce_small(size), large = reduce_large(size);
  const Expr is_small = size < x.number(32);
  const Expr r = where(is_small, small.r, large.r);
  Expr quadrant = where(is_small, small.quadrant, large.quadrant);
  if (shift != 0) quadrant = quadrant + quadrant.integer(shift);
  const Expr z = r * r;
  // (sin(r) / r - 1) / r^2 and (cos(r) - 1 + r^2 / 2) / r^4.
  const Expr sine_tail =
      is_double(x)
          ? polynomial(z, {0x1.5d8b52e1d6176p-33, -0x1.ae5e4b7cf1fc7p-26, 0x1.71de355525d41p-19,
                           -0x1.a01a019be91f0p-13, 0x1.111111110f730p-7, -0x1.5555555555548p-3})
          : polynomial(z, {-0x1.9951fap-13, 0x1.110774p-7, -0x1.555546p-3});
  const Expr cosine_tail =
      is_double(x)
          ? polynomial(z, {-0x1.8fa554004717bp-37, 0x1.1ee9d9c79241dp-29, -0x1.27e4f7ef0ec23p-22,
                           0x1.a01a019c8c7e9p-16, -0x1.6c16c16c15005p-10, 0x1.555555555554bp-5})
          : polynomial(z, {0x1.99e806p-16, -0x1.6c0c28p-10, 0x1.55554ap-5});
  const Expr sine_value = mulacc(z * sine_tail, r, r);
  const Expr cosine_value = mulacc(cosine_tail * z, z, mulacc(z, z.number(-0.5), z.number(1)));
  const Expr is_odd = differ(quadrant & quadrant.integer(1), quadrant.integer(0));
  const Expr value = where(is_odd, cosine_value, sine_value);
  // Quadrants 2 and 3 are negative; so is the sine of a negative angle.
  const int top = is_double(x) ? 63 : 31;
  Expr flip = (quadrant & quadrant.integer(2)).shl(top - 1);
  if (shift == 0) flip = flip ^ (x.bits() & quadrant.integer(is_double(x) ? INT64_MIN : INT32_MIN));
  const Expr result = (value.bits() ^ flip).as_float();
  return where(size < x.number(HUGE_VAL), result, x.number(NAN));
}

}  // namespace

Expr sin_of(const Expr& x) { return sine(x, 0); }
Expr cos_of(const Expr& x) { return sine(x, 1); }

}  // namespace ignis::codegen
