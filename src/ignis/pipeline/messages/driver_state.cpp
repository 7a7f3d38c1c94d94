#include "ignis/pipeline/messages/driver_state.h"

namespace ignis::pipeline {

std::string_view to_string(Reason reason) {
  switch (reason) {
    case Reason::FrameTimeout: return "FrameTimeout";
    case Reason::FrameStale: return "FrameStale";
    case Reason::FrameOverwritten: return "FrameOverwritten";
    case Reason::FrameInvalidFlag: return "FrameInvalidFlag";
    case Reason::UnknownGeometry: return "UnknownGeometry";
    case Reason::LayoutChanged: return "LayoutChanged";
    case Reason::CalibMissing: return "CalibMissing";
    case Reason::CalibStale: return "CalibStale";
    case Reason::CalibShape: return "CalibShape";
    case Reason::OutputSize: return "OutputSize";
    case Reason::SliceOutOfRange: return "SliceOutOfRange";
    case Reason::NonFinite: return "NonFinite";
    case Reason::RangeViolation: return "RangeViolation";
    case Reason::RunFailed: return "RunFailed";
    case Reason::RunTimeout: return "RunTimeout";
    case Reason::ModelUnavailable: return "ModelUnavailable";
    case Reason::ArtifactMismatch: return "ArtifactMismatch";
    case Reason::FrameIdGap: return "FrameIdGap";
    case Reason::FrameIdBackwards: return "FrameIdBackwards";
    case Reason::LowConfidence: return "LowConfidence";
    case Reason::FrameRepeated: return "FrameRepeated";
    case Reason::ClockJump: return "ClockJump";
    case Reason::DegenerateOutput: return "DegenerateOutput";
    case Reason::SliceWidth: return "SliceWidth";
    case Reason::SliceOverlap: return "SliceOverlap";
    case Reason::ViewSuspect: return "ViewSuspect";
  }
  return "unknown";
}

std::string_view to_string(DriverField field) {
  switch (field) {
    case DriverField::FaceOrientation: return "faceOrientation";
    case DriverField::FaceOrientationStd: return "faceOrientationStd";
    case DriverField::FacePosition: return "facePosition";
    case DriverField::FacePositionStd: return "facePositionStd";
    case DriverField::FaceProb: return "faceProb";
    case DriverField::LeftEyeProb: return "leftEyeProb";
    case DriverField::RightEyeProb: return "rightEyeProb";
    case DriverField::LeftBlinkProb: return "leftBlinkProb";
    case DriverField::RightBlinkProb: return "rightBlinkProb";
    case DriverField::SunglassesProb: return "sunglassesProb";
    case DriverField::PhoneProb: return "phoneProb";
    case DriverField::SleepProb: return "sleepProb";
  }
  return "unknown";
}

}  // namespace ignis::pipeline
