// SPDX-License-Identifier: Apache-2.0
#include "dsl/describe/gpc_order.h"

#include <algorithm>

#include "tartan/dsl/math.h"
#include "tartan/dsl/model.h"
#include "tartan/isa/advice.h"

namespace tartan::TARTAN_ABI {
namespace detail {
namespace {

constexpr int gpcs = 8, multiprocessors = 132;

// Where the clusters of a launch go on an H100 and an H200 (read from %smid): one to each GPC in
// turn. The first GPC takes them on half of its multiprocessors only; of pairs, the rest of it has
// those that begin first. Other GPUs of sm_90, with fewer multiprocessors, were not asked: there it
// is an order like any other.
struct Deal {
  int first;   // clusters on the rest of the first GPC
  int rounds;  // over all GPCs, and then as many over the others: half of a GPC's clusters each

  explicit Deal(int size) : first(size == 2 ? 4 : 0), rounds(8 / size) {}
};

}  // namespace

Scalar beside_on_gpc(const Scalar& cluster, std::int64_t count, int size) {
  const Deal deal(size);
  const int most_early = gpcs * deal.rounds, most_late = (gpcs - 1) * deal.rounds;
  const int dealt = std::min(static_cast<int>(count) - deal.first, most_early + most_late);
  if (dealt <= gpcs) return cluster;
  const int early = std::min(dealt, most_early), late = dealt - early;
  // Clusters of a GPC: `each` and `of_late`, and one more on the first GPCs.
  const int each = early / gpcs, more = early % gpcs;
  const int of_late = late / (gpcs - 1), more_late = late % (gpcs - 1);

  const Scalar number = cluster - deal.first, after = number - early;
  const auto is_early = number < early;
  const Scalar gpc = late ? select(is_early, number % gpcs, after % (gpcs - 1) + 1) : number % gpcs;
  const Scalar round =
      late ? select(is_early, number / gpcs, after / (gpcs - 1) + each) : number / gpcs;
  // On the GPCs in front of it: of the first rounds, and of the later ones, without the first GPC.
  const Scalar others = late ? maximum(gpc - 1, 0) : Scalar(0);
  const Scalar before = gpc * each + (more ? minimum(gpc, more) : Scalar(0)) + others * of_late +
                        (more_late ? minimum(others, more_late) : Scalar(0));
  const Scalar place = before + round + deal.first;
  const bool all = deal.first == 0 && dealt == count;
  return all ? place
             : select((cluster < deal.first) | (cluster >= deal.first + dealt), cluster, place);
}

}  // namespace detail

bool model::ordered_by_gpc(Arch arch, int down, int across, std::int64_t count) {
  const int size = down * across;
  return isa::advised(isa::Advice::gpc_order, arch) && (down == 1 || across == 1) && size >= 2 &&
         size <= 8 && count * size <= detail::multiprocessors;
}

}  // namespace tartan::TARTAN_ABI
