// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <numeric>

#include "collectives.h"

using namespace tartan;

namespace {

// What the program takes from nccl.h (NCCL 2.10 and later, which has bf16).
using Comm = struct ncclComm*;
constexpr int success = 0, bf16_type = 9, sum = 0;

class Library {
 public:
  Library() : handle_(dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL)) {}
  explicit operator bool() const { return handle_ != nullptr; }

  /// Calls an entry point with arguments of exactly its types.
  template <typename... Args>
  Status operator()(const char* name, Args... args) const {
    auto* const call = reinterpret_cast<int (*)(Args...)>(dlsym(handle_, name));
    if (!call) return {"driver"_rule, std::string("libnccl.so.2 has no ") + name};
    const int code = call(args...);
    if (code == success) return Done{};
    auto* const text = reinterpret_cast<const char* (*)(int)>(dlsym(handle_, "ncclGetErrorString"));
    return {"driver"_rule, std::string(name) + ": " + (text ? text(code) : std::to_string(code))};
  }

 private:
  void* handle_;
};

class Nccl : public Collectives {
 public:
  Nccl(Library library, std::vector<Comm> comms, int version)
      : library_(library), comms_(std::move(comms)), version_(version) {}
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;
  ~Nccl() override {
    for (Comm comm : comms_) (void)library_("ncclCommDestroy", comm);  // the program is at its end
  }

  std::string name() const override {
    return "NCCL " + std::to_string(version_ / 10000) + "." + std::to_string(version_ / 100 % 100);
  }

  // One thread serves all ranks, so their calls form a group: each alone would wait for the others.
  Status operator()(Collective collective, std::span<const Part> parts) override {
    if (auto status = library_("ncclGroupStart"); !status) return status;
    Status started = Done{};
    for (std::size_t rank = 0; rank < parts.size() && started; ++rank)
      started = start(collective, parts[rank], comms_[rank]);
    const Status ended = library_("ncclGroupEnd");
    return started ? ended : started;
  }

 private:
  Status start(Collective collective, const Part& part, Comm comm) const {
    auto* const from = reinterpret_cast<const void*>(part.from.address());
    auto* const to = reinterpret_cast<void*>(part.to.address());
    const std::size_t sent = part.from.size() / 2, received = part.to.size() / 2;
    void* const stream = part.stream->handle();
    switch (collective) {
      case Collective::all_reduce:
        return library_("ncclAllReduce", from, to, sent, bf16_type, sum, comm, stream);
      case Collective::reduce_scatter:
        return library_("ncclReduceScatter", from, to, received, bf16_type, sum, comm, stream);
      case Collective::all_gather:
        return library_("ncclAllGather", from, to, sent, bf16_type, comm, stream);
    }
    return {"usage"_rule, "no such collective"};
  }

  Library library_;
  std::vector<Comm> comms_;
  int version_;
};

}  // namespace

Result<std::unique_ptr<Collectives>> nccl_collectives(int ranks) {
  const Library library;
  if (!library)
    return {"no-driver"_rule,
            "libnccl.so.2 is not found: install NCCL, or add its folder to LD_LIBRARY_PATH"};
  int version = 0;
  if (auto status = library("ncclGetVersion", &version); !status) return status.diags();
  std::vector<int> devices(static_cast<std::size_t>(ranks));
  std::iota(devices.begin(), devices.end(), 0);
  std::vector<Comm> comms(devices.size());
  const int* const ordinals = devices.data();
  if (auto status = library("ncclCommInitAll", comms.data(), ranks, ordinals); !status)
    return status.diags();
  return std::unique_ptr<Collectives>(new Nccl(library, std::move(comms), version));
}
