// SPDX-License-Identifier: Apache-2.0
#include "collectives.h"

using namespace tartan;

namespace {

using Values = std::vector<host::bf16>;

Result<std::vector<Values>> read_all(std::span<const Part> parts) {
  std::vector<Values> out;
  for (const Part& part : parts) {
    auto values = part.from.read_all<host::bf16>();  // waits for the device
    if (!values) return values.diags();
    out.push_back(std::move(*values));
  }
  return out;
}

Values joined(const std::vector<Values>& of_ranks) {
  Values out;
  for (const Values& each : of_ranks) out.insert(out.end(), each.begin(), each.end());
  return out;
}

Values summed(const std::vector<Values>& of_ranks) {
  Values out;
  for (std::size_t i = 0; i < of_ranks[0].size(); ++i) {
    float sum = 0;
    for (const Values& each : of_ranks) sum += each[i];
    out.push_back(host::bf16(sum));
  }
  return out;
}

class ThroughHost : public Collectives {
 public:
  std::string name() const override { return "through the host"; }

  Status operator()(Collective collective, std::span<const Part> parts) override {
    const auto of_ranks = read_all(parts);
    if (!of_ranks) return of_ranks.diags();
    const Values whole =
        collective == Collective::all_gather ? joined(*of_ranks) : summed(*of_ranks);
    auto bytes = std::as_bytes(std::span(whole));
    for (const Part& part : parts) {
      Buffer to = part.to;
      if (auto status = to.write(bytes.first(to.size())); !status) return status;
      if (collective == Collective::reduce_scatter) bytes = bytes.subspan(to.size());
    }
    return Done{};
  }
};

}  // namespace

std::unique_ptr<Collectives> host_collectives() { return std::make_unique<ThroughHost>(); }
