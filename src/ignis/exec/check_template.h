#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/queue_template.h"

namespace ignis::exec {

/// Looks at every index, offset, count and range of an encoded template, so that nothing that links or runs it needs to: a
/// file may have written it. What the words of its streams do is the devices' to bound.
/// Errors: InvalidArgument with the reason BadTemplate, naming the place.
Status check_template(const QueueTemplate& queues);

}  // namespace ignis::exec
