#pragma once

#include "ignis/base/result.h"

#include <string>

namespace ignis::pipeline {

/// Whether a model's file is really there: large files are often left behind as small pointer stubs that only name them.
/// Errors: NotFound when there is no such regular file or it is empty; InvalidArgument, reason NotAnArtifact, for a
/// pointer stub. Both name the file and the way out.
Status check_artifact_file(const std::string& path);

}  // namespace ignis::pipeline
