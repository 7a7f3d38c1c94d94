// A camera process: takes frames from any source and gives them to other processes through a ring in shared memory.
// Beside it runs `ignis dm ring:NAME …`.

#include "ignis/pipeline/frames/ring_server.h"

#include "tools/video/open_source.h"
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace ignis::examples {
namespace {

std::atomic<bool> is_over{false};

const char* const kHelp =
    "ignis-camera-ring: give the frames of a source to other processes\n"
    "  ignis-camera-ring [NAME [SOURCE [SECONDS]]]\n"
    "  NAME     of the ring (cabin); read it with `ignis dm ring:NAME …`\n"
    "  SOURCE   as for `ignis dm` (synthetic:drive)\n"
    "  SECONDS  how long; 0, the default: until Ctrl-C or the end of the source\n";

/// One line a second: what was given away and who listens.
void tell(const pipeline::RingServer& server) {
  const pipeline::RingServerCounters counters = server.counters();
  std::printf("%llu frames published, %llu dropped, %u readers, %u slots held\n",
              static_cast<unsigned long long>(counters.published),
              static_cast<unsigned long long>(counters.dropped), counters.clients, counters.pinned);
  std::fflush(stdout);
}

Status serve(const std::string& name, const std::string& source_text, double limit_s) {
  IGNIS_TRY_ASSIGN(const auto source, tools::open_source(source_text));
  std::unique_ptr<pipeline::RingServer> server;
  const uint64_t start_ns = pipeline::monotonic_ns();
  uint64_t told_ns = start_ns;
  while (!is_over.load()) {
    const uint64_t now_ns = pipeline::monotonic_ns();
    if (limit_s > 0 && static_cast<double>(now_ns - start_ns) > limit_s * 1e9) break;
    if (server != nullptr && now_ns - told_ns >= 1'000'000'000) {
      tell(*server);
      told_ns = now_ns;
    }
    const Result<pipeline::Frame> frame = source->receive(std::chrono::milliseconds(200));
    if (!frame) {
      if (frame.error().reason() == "EndOfStream") break;
      if (frame.error().code() != ErrorCode::Timeout)  // a camera that is unplugged comes back
        std::fprintf(stderr, "%s\n", frame.error().to_string().c_str());
      continue;
    }
    if (server == nullptr) {  // the first frame tells the layout; later changes publish() follows
      IGNIS_TRY_ASSIGN(server, pipeline::RingServer::create(name, frame->layout));
      std::printf("%s -> ring:%s\n", source->describe().c_str(), name.c_str());
      std::fflush(stdout);
    }
    if (const Status status = server->publish(*frame);
        !status && status.error().reason() != "RingExhausted") {  // that one is counted
      return status;
    }
  }
  if (server != nullptr) tell(*server);
  return Status::ok();
}

}  // namespace
}  // namespace ignis::examples

int main(int argc, char** argv) {
  using namespace ignis;  // NOLINT: a program, not a library
  if (argc > 4 || (argc > 1 && argv[1][0] == '-')) {
    std::fputs(examples::kHelp, stderr);
    return argc == 2 && std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
  for (const int number : {SIGINT, SIGTERM})
    ::signal(number, [](int) { examples::is_over = true; });
  const Status status =
      examples::serve(argc > 1 ? argv[1] : "cabin", argc > 2 ? argv[2] : "synthetic:drive",
                      argc > 3 ? std::strtod(argv[3], nullptr) : 0);
  if (status) return 0;
  std::fprintf(stderr, "%s\n", status.error().to_string().c_str());
  return 1;
}
