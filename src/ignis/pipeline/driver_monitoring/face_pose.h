#pragma once

#include <array>

namespace ignis::pipeline {

/// Head pose against the ray from the camera to the head, in rad. Signs are those of the cabin models' outputs: pitch is
/// positive when the face looks up, yaw when it turns to the right of the picture, roll when it leans clockwise in the
/// picture.
struct HeadPose {
  double pitch_rad = 0, yaw_rad = 0, roll_rad = 0;
  /// Standard deviations that follow from how well the landmarks fit.
  std::array<double, 3> std_rad{};
  double scale_px_per_mm = 0;
  double residual_px = 0;  ///< root mean square
  bool has_converged = false;
};

/// Fits a generic face to five landmarks, in pixels: eyes, nose tip, mouth corners, each pair as seen left to right.
///
/// Scaled orthographic projection (a head is small against its distance), six unknowns against ten coordinates,
/// Gauss-Newton with damping. The nose tip, which lies in front of the other four, tells the two mirror-image poses of a
/// flat face apart. Allocates nothing.
HeadPose fit_head_pose(const std::array<std::array<float, 2>, 5>& landmarks);

/// The generic face, in mm: x to the right of the picture, y down, z away from the camera, nose tip at 0.
extern const std::array<std::array<double, 3>, 5> kGenericFace;

/// Where the generic face's points lie in a picture; what fit_head_pose() inverts.
std::array<std::array<double, 2>, 5> project_face(double pitch_rad, double yaw_rad, double roll_rad,
                                                  double scale_px_per_mm, double x_px, double y_px);

}  // namespace ignis::pipeline
