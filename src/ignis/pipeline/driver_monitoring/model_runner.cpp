#include "ignis/pipeline/driver_monitoring/model_runner.h"

#include "ignis/base/check.h"
#include "ignis/base/log.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace ignis::pipeline {
namespace {

enum class JobKind { None, Run, Bind };

struct Job {
  Frame frame;
  std::array<float, 3> rpy_rad{};
  ModelRunner::TimePoint deadline;
  FrameLayout layout;
  Camera camera;
  ModelRunner::MakeModel make;
};

Error thrown_error(const char* what) {
  return Error(ErrorCode::Internal, std::string("The model threw an exception: ") + what + ".");
}

}  // namespace

struct ModelRunner::Core {
  std::mutex mutex;
  std::condition_variable job_came, job_ended;
  JobKind under_way = JobKind::None;
  bool is_taken = false;  ///< the thread has the job
  bool is_closing = false;
  // The model, the job and the results are the thread's while a job is under way, else the owner's.
  std::unique_ptr<Model> model;
  Job job;
  Result<RunTimes> run_result = Error(ErrorCode::Internal, "No run was started.");
  Status bind_status = Error(ErrorCode::Internal, "No bind was started.");
  uint64_t bind_ns = 0;
  std::thread thread;

  void serve();
  void do_run();
  void do_bind();
  void start(JobKind kind);
};

void ModelRunner::Core::do_run() {
  try {
    run_result = model->run(job.frame, job.rpy_rad, job.deadline);
  } catch (const std::exception& e) {  // models do not throw; what they are made of might
    run_result = thrown_error(e.what());
  } catch (...) {
    run_result = thrown_error("of an unknown type");
  }
  job.frame = Frame();  // unpins its slot before anybody hears of the end
}

void ModelRunner::Core::do_bind() {
  try {
    if (job.make) {
      model.reset();  // first: two models at once may be too many for the memory
      Result<std::unique_ptr<Model>> made = job.make();
      if (!made) {
        bind_status = std::move(made).error();
        return;
      }
      model = *std::move(made);
    }
    bind_status = model != nullptr
                      ? model->bind(job.layout, job.camera)
                      : Status(Error(ErrorCode::NotFound, "There is no model to bind."));
  } catch (const std::exception& e) {
    bind_status = thrown_error(e.what());
  } catch (...) {
    bind_status = thrown_error("of an unknown type");
  }
}

void ModelRunner::Core::serve() {
  std::unique_lock lock(mutex);
  while (true) {
    job_came.wait(lock, [this] { return is_closing || (under_way != JobKind::None && !is_taken); });
    if (under_way == JobKind::None) return;
    is_taken = true;
    const JobKind kind = under_way;
    lock.unlock();
    if (kind == JobKind::Run) {
      do_run();
    } else {
      const auto start = std::chrono::steady_clock::now();
      do_bind();
      bind_ns = static_cast<uint64_t>((std::chrono::steady_clock::now() - start).count());
      job.make = {};
    }
    lock.lock();
    under_way = JobKind::None;
    is_taken = false;
    job_ended.notify_all();
    if (is_closing) return;
  }
}

void ModelRunner::Core::start(JobKind kind) {
  const std::lock_guard lock(mutex);
  under_way = kind;
  job_came.notify_one();
}

ModelRunner::ModelRunner(std::unique_ptr<Model> model) : core_(std::make_shared<Core>()) {
  core_->model = std::move(model);
  try {
    core_->thread = std::thread([core = core_] { core->serve(); });
  } catch (const std::system_error& e) {  // every job then fails by its deadline
    IGNIS_LOG(Error, "driver_monitoring")
        << "No thread could be started for the model: " << e.what() << ".";
  }
}

ModelRunner::~ModelRunner() {
  if (!core_->thread.joinable()) return;
  bool has_ended = false;
  {
    std::unique_lock lock(core_->mutex);
    core_->is_closing = true;
    core_->job_came.notify_one();
    const auto grace = has_given_up_                       ? std::chrono::nanoseconds(0)
                       : core_->under_way == JobKind::Bind ? std::chrono::nanoseconds(kBindGrace)
                                                           : std::chrono::nanoseconds(kRunGrace);
    has_ended = core_->job_ended.wait_for(lock, grace,
                                          [this] { return core_->under_way == JobKind::None; });
  }
  if (has_ended) {
    core_->thread.join();
    return;
  }
  core_->thread.detach();  // holds its own share of the core
  IGNIS_LOG(Warning, "driver_monitoring")
      << "The model's thread does not come back from its last job and is left to itself.";
}

void ModelRunner::start_run(const Frame& frame, const std::array<float, 3>& rpy_rad,
                            TimePoint deadline) {
  IGNIS_CHECK(!is_busy());
  has_given_up_ = false;
  Job& job = core_->job;
  job.frame = frame;
  job.rpy_rad = rpy_rad;
  job.deadline = deadline;
  if (core_->model == nullptr) {
    core_->run_result = Error(ErrorCode::NotFound, "There is no model to run.");
    job.frame = Frame();
    return;
  }
  core_->start(JobKind::Run);
}

void ModelRunner::start_bind(const FrameLayout& layout, const Camera& camera, MakeModel make) {
  IGNIS_CHECK(!is_busy());
  has_given_up_ = false;
  Job& job = core_->job;
  job.layout = layout;
  job.camera = camera;
  job.make = std::move(make);
  core_->start(JobKind::Bind);
}

bool ModelRunner::wait_until(TimePoint deadline) {
  std::unique_lock lock(core_->mutex);
  return core_->job_ended.wait_until(lock, deadline,
                                     [this] { return core_->under_way == JobKind::None; });
}

bool ModelRunner::is_busy() const {
  const std::lock_guard lock(core_->mutex);
  return core_->under_way != JobKind::None;
}

const Result<RunTimes>& ModelRunner::run_result() const {
  IGNIS_CHECK(!is_busy());
  return core_->run_result;
}

const Status& ModelRunner::bind_status() const {
  IGNIS_CHECK(!is_busy());
  return core_->bind_status;
}

uint64_t ModelRunner::bind_ns() const {
  IGNIS_CHECK(!is_busy());
  return core_->bind_ns;
}

Model* ModelRunner::model() const { return is_busy() ? nullptr : core_->model.get(); }

}  // namespace ignis::pipeline
