#pragma once

#include <cstdint>

namespace ignis::pipeline {

/// Mean and spread of the values seen so far (section 8.1): n += 1, M' = M + (v - M) / n,
/// S' = S + (v - M)(v - M'), std = sqrt(S / (n - 1)).
class RunningStats {
 public:
  /// Nothing seen; `limit` > 0 bounds the count, so that later values keep some weight. 0: no limit.
  explicit RunningStats(int64_t limit = 0) : limit_(limit) {}
  /// As if `count` values with this mean and spread term had been seen.
  RunningStats(double mean, double spread, int64_t count, int64_t limit = 0)
      : mean_(mean), spread_(spread), count_(count), limit_(limit) {}

  void push(double value);
  double mean() const { return mean_; }
  /// 0 while there are fewer than two values.
  double standard_deviation() const;
  int64_t count() const { return count_; }

 private:
  double mean_ = 0;
  double spread_ = 0;  ///< S
  int64_t count_ = 0;
  int64_t limit_ = 0;
};

/// A mean of those values only that do not widen the raw statistic: what is typical, without the excursions.
class FilteredStats {
 public:
  FilteredStats(RunningStats raw, RunningStats filtered) : raw_(raw), filtered_(filtered) {}

  /// True when the value entered the filtered statistic: it did not increase the raw standard deviation.
  bool push(double value);
  const RunningStats& raw() const { return raw_; }
  const RunningStats& filtered() const { return filtered_; }

 private:
  RunningStats raw_, filtered_;
};

}  // namespace ignis::pipeline
