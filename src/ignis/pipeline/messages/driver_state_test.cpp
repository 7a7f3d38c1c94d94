#include "ignis/pipeline/messages/driver_state.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ignis::pipeline {
namespace {

TEST(Reason, NumbersAndNamesAreThoseOfTheSpecification) {
  // Section 9.1, and ViewSuspect.
  const char* names[] = {
      "FrameTimeout",     "FrameStale",    "FrameOverwritten", "FrameInvalidFlag",
      "UnknownGeometry",  "LayoutChanged", "CalibMissing",     "CalibStale",
      "CalibShape",       "OutputSize",    "SliceOutOfRange",  "NonFinite",
      "RangeViolation",   "RunFailed",     "RunTimeout",       "ModelUnavailable",
      "ArtifactMismatch", "FrameIdGap",    "FrameIdBackwards", "LowConfidence",
      "FrameRepeated",    "ClockJump",     "DegenerateOutput", "SliceWidth",
      "SliceOverlap",     "ViewSuspect",
  };
  ASSERT_EQ(std::size(names), static_cast<size_t>(kReasonCount));
  for (int i = 0; i < kReasonCount; ++i) EXPECT_EQ(to_string(static_cast<Reason>(i)), names[i]);
}

TEST(Reason, SixInformAndTheOthersBlock) {
  const std::set<int> informing = {6, 7, 8, 17, 19, 25};
  for (int i = 0; i < kReasonCount; ++i) {
    EXPECT_EQ(kBlockingReasons.has(static_cast<Reason>(i)), !informing.contains(i)) << i;
  }
}

TEST(DriverField, NamesAreThoseOfTheSchema) {
  const char* names[] = {"faceOrientation", "faceOrientationStd", "facePosition", "facePositionStd",
                         "faceProb",        "leftEyeProb",        "rightEyeProb", "leftBlinkProb",
                         "rightBlinkProb",  "sunglassesProb",     "phoneProb",    "sleepProb"};
  ASSERT_EQ(std::size(names), static_cast<size_t>(kDriverFieldCount));
  for (int i = 0; i < kDriverFieldCount; ++i) {
    EXPECT_EQ(to_string(static_cast<DriverField>(i)), names[i]);
  }
}

}  // namespace
}  // namespace ignis::pipeline
