#include "ignis/exec/queue_template.h"

#include <algorithm>

namespace ignis::exec {

int count_variables(const QueueTemplate& queues) {
  int count = 0;
  for (const ScheduleBuffer& buffer : queues.buffers) count = std::max(count, buffer.variable + 1);
  for (const TemplateStep& step : queues.steps) {
    for (const BatchCall& call : step.batch.calls) {
      for (const CallVariable& variable : call.variables) {
        count = std::max(count, variable.run_time + 1);
      }
    }
  }
  return count;
}

}  // namespace ignis::exec
