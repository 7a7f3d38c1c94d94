#include "ignis/pipeline/driver_monitoring/face_pose.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ignis::pipeline {

// An adult's face in round numbers: pupils 64 mm apart and 28 mm behind the nose tip, mouth 52 mm wide.
const std::array<std::array<double, 3>, 5> kGenericFace = {
    {{-32, -33, 28}, {32, -33, 28}, {0, 0, 0}, {-26, 30, 22}, {26, 30, 22}}};

namespace {

constexpr size_t kUnknowns = 6;
using Unknowns = std::array<double, kUnknowns>;  // pitch, yaw, roll, scale, x, y
using Matrix = std::array<std::array<double, kUnknowns>, kUnknowns>;
using Residuals = std::array<double, 10>;

Residuals residuals(const Unknowns& p, const std::array<std::array<float, 2>, 5>& landmarks) {
  const auto points = project_face(p[0], p[1], p[2], p[3], p[4], p[5]);
  Residuals r{};
  for (size_t i = 0; i < points.size(); ++i) {
    r[2 * i] = points[i][0] - static_cast<double>(landmarks[i][0]);
    r[2 * i + 1] = points[i][1] - static_cast<double>(landmarks[i][1]);
  }
  return r;
}

double square_sum(const Residuals& r) {
  double sum = 0;
  for (const double value : r) sum += value * value;
  return sum;
}

// Gauss-Jordan with pivots; false when the matrix has no inverse worth having.
bool invert(Matrix a, Matrix& inverse) {
  for (size_t i = 0; i < kUnknowns; ++i) {
    inverse[i].fill(0);
    inverse[i][i] = 1;
  }
  for (size_t column = 0; column < kUnknowns; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < kUnknowns; ++row) {
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    }
    if (!(std::abs(a[pivot][column]) > 1e-12)) return false;
    std::swap(a[pivot], a[column]);
    std::swap(inverse[pivot], inverse[column]);
    const double factor = 1 / a[column][column];
    for (size_t k = 0; k < kUnknowns; ++k) {
      a[column][k] *= factor;
      inverse[column][k] *= factor;
    }
    for (size_t row = 0; row < kUnknowns; ++row) {
      const double share = a[row][column];
      if (row == column || share == 0) continue;
      for (size_t k = 0; k < kUnknowns; ++k) {
        a[row][k] -= share * a[column][k];
        inverse[row][k] -= share * inverse[column][k];
      }
    }
  }
  return true;
}

// J^T J and J^T r by central differences: six unknowns are cheap and no formula can be wrong.
void normal_equations(const Unknowns& p, const std::array<std::array<float, 2>, 5>& landmarks,
                      const Residuals& r, Matrix& jtj, Unknowns& jtr) {
  std::array<Residuals, kUnknowns> j;
  for (size_t k = 0; k < kUnknowns; ++k) {
    const double step = k < 3 ? 1e-4 : 1e-4 * std::max(1.0, std::abs(p[k]));
    Unknowns high = p, low = p;
    high[k] += step;
    low[k] -= step;
    const Residuals rh = residuals(high, landmarks), rl = residuals(low, landmarks);
    for (size_t i = 0; i < r.size(); ++i) j[k][i] = (rh[i] - rl[i]) / (2 * step);
  }
  for (size_t a = 0; a < kUnknowns; ++a) {
    jtr[a] = 0;
    for (size_t i = 0; i < r.size(); ++i) jtr[a] += j[a][i] * r[i];
    for (size_t b = 0; b < kUnknowns; ++b) {
      jtj[a][b] = 0;
      for (size_t i = 0; i < r.size(); ++i) jtj[a][b] += j[a][i] * j[b][i];
    }
  }
}

struct Fit {
  Unknowns p{};
  double error = 0;
  bool has_converged = false;
};

Fit fit_from(Unknowns p, const std::array<std::array<float, 2>, 5>& landmarks) {
  Fit fit;
  double damping = 1e-3;
  Residuals r = residuals(p, landmarks);
  double error = square_sum(r);
  for (int turn = 0; turn < 60 && !fit.has_converged; ++turn) {
    Matrix jtj, inverse;
    Unknowns jtr;
    normal_equations(p, landmarks, r, jtj, jtr);
    for (size_t k = 0; k < kUnknowns; ++k) jtj[k][k] *= 1 + damping;
    if (!invert(jtj, inverse)) break;
    Unknowns next = p;
    double largest = 0;
    for (size_t a = 0; a < kUnknowns; ++a) {
      double change = 0;
      for (size_t b = 0; b < kUnknowns; ++b) change -= inverse[a][b] * jtr[b];
      next[a] += change;
      if (a < 3) largest = std::max(largest, std::abs(change));
    }
    const Residuals next_r = residuals(next, landmarks);
    const double next_error = square_sum(next_r);
    if (next_error <= error && next[3] > 0) {
      p = next;
      r = next_r;
      error = next_error;
      damping = std::max(damping / 10, 1e-9);
    } else {
      damping *= 10;
    }
    // A refused step that is this small means that no better one is left.
    fit.has_converged = largest < 1e-6;
  }
  fit.p = p;
  fit.error = error;
  return fit;
}

}  // namespace

std::array<std::array<double, 2>, 5> project_face(double pitch_rad, double yaw_rad, double roll_rad,
                                                  double scale_px_per_mm, double x_px,
                                                  double y_px) {
  const double cp = std::cos(pitch_rad), sp = std::sin(pitch_rad);
  const double cy = std::cos(yaw_rad), sy = std::sin(yaw_rad);
  const double cr = std::cos(roll_rad), sr = std::sin(roll_rad);
  std::array<std::array<double, 2>, 5> points{};
  for (size_t i = 0; i < points.size(); ++i) {
    const auto& [x0, y0, z0] = kGenericFace[i];
    // What is nearest to the camera (small z) moves up with the pitch, then to the right with the yaw.
    const double y1 = y0 * cp + z0 * sp;
    const double z1 = -y0 * sp + z0 * cp;
    const double x2 = x0 * cy - z1 * sy;
    points[i][0] = x_px + scale_px_per_mm * (x2 * cr - y1 * sr);
    points[i][1] = y_px + scale_px_per_mm * (x2 * sr + y1 * cr);
  }
  return points;
}

HeadPose fit_head_pose(const std::array<std::array<float, 2>, 5>& landmarks) {
  HeadPose pose;
  const auto x = [&](size_t i) { return static_cast<double>(landmarks[i][0]); };
  const auto y = [&](size_t i) { return static_cast<double>(landmarks[i][1]); };
  // Start: no turn, leaning like the eyes, as large as the distance from the eyes to the mouth, which a turn to the
  // side leaves as it is.
  const double roll = std::atan2(y(1) - y(0), x(1) - x(0));
  const double eye_to_mouth_px =
      std::hypot((x(0) + x(1) - x(3) - x(4)) / 2, (y(0) + y(1) - y(3) - y(4)) / 2);
  const double eyes_px = std::hypot(x(1) - x(0), y(1) - y(0));
  const double scale = std::max(eye_to_mouth_px / 63, eyes_px / 64);
  if (!std::isfinite(scale) || !std::isfinite(roll) || scale < 1e-3) return pose;

  // Starts in the middle and on both sides: the fit stays on the side where it began when the nose says little.
  Fit best;
  bool has_best = false;
  for (const double yaw : {0.0, 0.5, -0.5}) {
    const Fit fit = fit_from({0, yaw, roll, scale, x(2), y(2)}, landmarks);
    if (has_best && fit.error >= best.error) continue;
    best = fit;
    has_best = true;
  }
  if (!std::isfinite(best.error)) return pose;
  pose.pitch_rad = best.p[0];
  pose.yaw_rad = best.p[1];
  pose.roll_rad = std::remainder(best.p[2], 2 * 3.14159265358979323846);
  pose.scale_px_per_mm = best.p[3];
  pose.residual_px = std::sqrt(best.error / 10);
  pose.has_converged = best.has_converged;

  // Covariance s^2 (J^T J)^-1 with four degrees of freedom. Landmarks are never better than about 2 % of the eyes'
  // distance, and faces differ from the generic one by as much, however well the five points happen to fit.
  const double least_px = 0.02 * 64 * best.p[3];
  const double sigma_px = std::max(std::sqrt(best.error / 4), least_px);
  Matrix jtj, inverse;
  Unknowns jtr;
  normal_equations(best.p, landmarks, residuals(best.p, landmarks), jtj, jtr);
  if (!invert(jtj, inverse)) {
    pose.has_converged = false;
    return pose;
  }
  for (size_t k = 0; k < 3; ++k) {
    pose.std_rad[k] = sigma_px * std::sqrt(std::max(0.0, inverse[k][k]));
  }
  return pose;
}

}  // namespace ignis::pipeline
