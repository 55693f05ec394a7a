// SPDX-License-Identifier: Apache-2.0
// dsl/state/stage_checks.h - mistakes in the callbacks of pipelines: a ring indexed by something
// else than the stage that the callback is given, by another pipeline's or that of a step that is
// over, or another pipeline's ring; and variables by which `use` talks to `fill`, which runs ahead
// of it. Not installed.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dsl/state/log.h"
#include "tartan/dsl/scalar.h"

namespace tartan::TARTAN_ABI::detail {

class StageChecks {
 public:
  /// A callback that is being described.
  struct Callback {
    int pipeline = 0;
    int stages = 0;
    bool fills = false;
    Scalar t, stage;
    Place at = {};          // of the pipeline
    std::size_t depth = 0;  // of loops and conditions around it
    bool released = false;  // the stage, by next()
  };

  /// Inside a callback, while it lives.
  class Scope {
   public:
    Scope(StageChecks& checks, Callback callback);
    ~Scope() { checks_.open_.pop_back(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StageChecks& checks_;
  };

  /// The callbacks of both roles belong to the same pipeline: `number` of those inside roles().
  int begin_pipeline() { return 2 * next_++; }
  static int role_pipeline(std::size_t number) { return 2 * static_cast<int>(number) + 1; }

  /// ring[index]: `memory` is the ring's number.
  void note_index(Log& log, int memory, const std::string& ring, int stages, const Scalar& index,
                  const Place& at);
  /// next() of the innermost callback, which producers take as leave to fill the stage.
  void note_release() { open_.back().released = true; }
  void note_read(int variable, const Place& at);
  void note_change(int variable, const Place& at);
  /// The innermost callback that is being described; null: none is.
  const Callback* current() const { return open_.empty() ? nullptr : &open_.back(); }
  /// What only the whole description tells.
  void report(Log& log) const;

 private:
  struct Suspect {
    int memory, pipeline;
    Place at;
    std::string message;
  };
  // A ring that a use callback indexes by its stage.
  struct Use {
    int memory, pipeline;
    Place at, pipeline_at;
    std::string ring;
  };
  // A stage that a callback was given.
  struct Given {
    int value, pipeline;
    Place at;  // of the pipeline
  };
  using Variable = std::pair<int, int>;  // pipeline, number

  bool is_open(int pipeline) const;
  bool is_stage_of_others(Log& log, const std::string& ring, const Scalar& index,
                          const Place& at) const;
  void report_rings(Log& log) const;

  std::vector<Callback> open_;  // that are being described, the innermost last
  int next_ = 0;
  std::map<std::pair<int, int>, Place> filled_;  // memories by pipelines; where those are
  std::vector<Suspect> suspects_;
  std::vector<Use> uses_;
  std::vector<Given> given_;
  std::map<Variable, Place> read_by_fill_, changed_by_use_;
  std::set<Variable> set_by_fill_;  // so far: what it reads then is its own
};

}  // namespace tartan::TARTAN_ABI::detail
