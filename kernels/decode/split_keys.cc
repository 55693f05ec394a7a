// SPDX-License-Identifier: Apache-2.0
#include "kernels/decode/split_keys.h"

#include <algorithm>
#include <limits>

#include "tartan/dsl/math.h"
#include "tartan/dsl/warp.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Scalar warp_sum(Scalar x) {
  for (int by = 1; by < 32; by *= 2) x = x + shuffle_xor(x, by);
  return x;
}

Scalar warp_maximum(Scalar x) {
  for (int by = 1; by < 32; by *= 2) x = maximum(x, shuffle_xor(x, by));
  return x;
}

}  // namespace

Scalar SplitKeys::masked() const { return k.constant(f32, -infinity); }

// Steps, and one for an empty sequence, whose rows are zeros.
Scalar SplitKeys::units_of(const Scalar& length) const {
  return maximum(ceil_div(length, keys_per_step), 1);
}

void SplitKeys::declare_parts() {
  P = k.global("P", f32, row_major(rows, cols)), L = k.global("L", f32, row_major(rows, 2));
  counters = k.global("counters", u32, row_major(batch, tiles > 1 ? Scalar(tiles) : heads));
  const Scalar block = k.convert(k.block_x(), s32);
  workers_ = k.convert(k.blocks_x(), s32) / tiles, worker_ = block / tiles;
  tile = tiles == 1 ? Scalar(0) : block % tiles;
}

// This block's share of all units, and the sequence, head and step in which it begins. Units are
// numbered by sequence, then head, then step; where blocks have whole heads, from the first one of
// the block. Each lane counts those of some sequences.
void SplitKeys::find_share() {
  constexpr int of_lane = 4, together = 32 * of_lane;
  ticket_ = k.shared("sTicket", u32, row_major(1, 1));
  const Scalar lane = k.convert(k.lane(), s32), none = k.constant(s32, 0), one = k.constant(s32, 1);
  const auto units = [&](const Scalar& first) {
    std::vector<Scalar> out;
    for (int i = 0; i < of_lane; ++i) {
      const Scalar sequence = first + lane * of_lane + i, there = sequence < batch;
      out.push_back(select(there, units_of(k.read_if(lengths, 0, sequence, there)), 0));
    }
    return out;
  };
  auto total = k.variable(none), before = k.variable(none), sequence = k.variable(none),
       most = k.variable(none);
  k.loop(0, batch, together, [&](Scalar first) {
    Scalar own = none, longest = none;
    for (const Scalar& each : units(first)) own = own + each, longest = maximum(longest, each);
    total += warp_sum(own);
    if (whole_steps > 0) most = maximum(most, warp_maximum(longest));
  });
  all_ = total * heads;
  share_ = StreamShare::of(all_, workers_, worker_);
  // Whole heads of sequences: the block's, and how many of them a sequence has.
  const Scalar wholes = batch * heads, each = ceil_div(wholes, workers_),
               first_whole = minimum(worker_ * each, wholes),
               end_whole = minimum(first_whole + each, wholes);
  const auto own_heads = [&](const Scalar& number) {
    const auto before = [&](const Scalar& end) {
      return minimum(maximum(end - number * heads, 0), heads);
    };
    return before(end_whole) - before(first_whole);
  };
  Scalar whole;
  if (whole_steps > 0) whole = each * most <= ceil_div(all_, workers_) + whole_steps;
  auto so_far = k.variable(none);
  k.loop(0, batch, together, [&](Scalar first) {
    const std::vector<Scalar> own = units(first);
    Scalar all = none;
    for (const Scalar& each : own) all = all + each;
    Scalar sum = all;
    for (int by = 1; by < 32; by *= 2) sum = sum + select(lane >= by, shuffle_up(sum, by), 0);
    Scalar end = so_far + sum - all, units_before = none, sequences_before = none;
    for (int i = 0; i < of_lane; ++i) {
      end = end + own[i];
      const Scalar number = first + lane * of_lane + i;
      const Scalar is_before = (number < batch) & (end * heads <= share_.begin);
      const Scalar one_before = select(is_before, one, 0);
      const Scalar times =
          whole_steps > 0 ? select(whole, own_heads(number), one_before) : one_before;
      units_before = units_before + own[i] * times;
      sequences_before = sequences_before + one_before;
    }
    before += warp_sum(units_before);
    sequence += warp_sum(sequences_before);
    so_far += shuffle(sum, 31);
  });
  first_sequence_ = sequence, first_before_ = before, first_head_ = 0;
  if (whole_steps > 0) {
    share_ = {select(whole, 0, share_.begin), select(whole, before, share_.end)};
    first_sequence_ = select(whole, first_whole / heads, sequence);
    first_before_ = select(whole, 0, before);
    first_head_ = select(whole, first_whole % heads, 0);
  }
  consumes_ = k.thread() < threads;
}

void SplitKeys::each_part(const std::function<void(const Part&)>& body) const {
  auto at = k.variable(share_.begin), sequence = k.variable(first_sequence_);
  // No unit at all: nothing is read.
  const Scalar any = share_.begin < share_.end;
  const Scalar of_first = units_of(k.read_if(lengths, 0, first_sequence_, any));
  const Scalar within = share_.begin - first_before_ * heads;
  auto head = k.variable(first_head_ + within / of_first), step = k.variable(within % of_first);
  k.loop_while([&] { return Scalar(at) < share_.end; },
               [&] {
                 Part part;
                 part.sequence = sequence, part.head = head, part.first = step;
                 part.length = k.read(lengths, 0, part.sequence);
                 part.units = units_of(part.length);
                 part.unit_begin = Scalar(at) - part.first;
                 part.count = minimum(part.units - part.first, share_.end - Scalar(at));
                 part.steps =
                     minimum(part.count, ceil_div(part.length, keys_per_step) - part.first);
                 body(part);
                 at += part.count;
                 step = 0;
                 head += 1;
                 k.when(Scalar(head) == heads, [&] {
                   head = 0;
                   sequence += 1;
                 });
               });
}

// Its first unit may be in the middle of a sequence.
Scalar SplitKeys::slot_of(const Part& part) const {
  return worker_ * 2 + select(part.unit_begin > share_.begin, 1, 0);
}

Scalar SplitKeys::weight(const Scalar& top, const Scalar& most) const {
  return exp2((top - select(most == masked(), 0, most)) * scale);
}

Scalar SplitKeys::share(const Scalar& x, const Scalar& sum) {
  return select(sum == 0, 0, x * reciprocal(sum));
}

void SplitKeys::combine(const Part& part, const Writer& write) const {
  const Scalar begin = owner(part.unit_begin), end = owner(part.unit_begin + part.units - 1) + 1;
  k.barrier();
  k.when(k.thread() == 0, [&] {
    k.fence();
    k.write(ticket_, 0, 0,
            k.atomic(AtomicOp::inc, counters, part.sequence, part.head * tiles + tile,
                     k.convert(end - begin - 1, u32), {.order = MemoryOrder::acq_rel}));
    k.fence();
  });
  k.barrier();
  k.when(k.convert(k.read(ticket_, 0, 0), s32) == end - begin - 1,
         [&] { add_parts(part, begin, end, write); });
}

// Each thread has some vectors of four columns; it reads those of several parts at once.
void SplitKeys::add_parts(const Part& part, const Scalar& begin, const Scalar& end,
                          const Writer& write) const {
  const int of_row = cols / 4, all = rows * of_row;
  const int together = std::min(vectors, (all + threads - 1) / threads), parts = 16 / together;
  // Only the first part may be in its block's second slot.
  const Scalar first_slot =
      2 * begin + select(part.unit_begin > StreamShare::of(all_, workers_, begin).begin, 1, 0);
  const auto slot_of = [&](const Scalar& i) { return select(i == begin, first_slot, 2 * i); };
  k.loop(k.convert(k.thread(), s32), all, threads * together, [&](Scalar first) {
    std::vector<Scalar> row, col, there;
    std::vector<ScalarVariable> top, sum, out;
    for (int v = 0; v < together; ++v) {
      const Scalar number = first + v * threads;
      there.push_back(number < all);
      row.push_back(minimum(number / of_row, rows - 1));
      col.push_back(number % of_row * 4);
      top.push_back(k.variable(masked())), sum.push_back(k.variable(k.constant(f32, 0)));
      for (int e = 0; e < 4; ++e) out.push_back(k.variable(k.constant(f32, 0)));
    }
    k.loop(begin, end, parts, [&](Scalar from) {
      // All loads are under way before the first value is used.
      std::vector<std::vector<Scalar>> weights, values;
      for (int v = 0; v < together; ++v)
        for (int i = 0; i < parts; ++i) {
          const Scalar slot = slot_of(minimum(from + i, end - 1)) * tiles + tile;
          weights.push_back(k.read_vector(L.matrix(slot), row[v], 0, 2));
          values.push_back(k.read_vector(P.matrix(slot), row[v], col[v], 4));
        }
      for (int v = 0; v < together; ++v) {
        const auto part_of = [&](auto& of, int i) { return of[std::size_t(v * parts + i)]; };
        std::vector<Scalar> tops;
        Scalar most = top[v];
        for (int i = 0; i < parts; ++i) {
          tops.push_back(select(from + i < end, part_of(weights, i)[0], masked()));
          most = maximum(most, tops.back());
        }
        const Scalar shrink = weight(top[v], most);
        Scalar all_sums = sum[v] * shrink;
        std::vector<Scalar> total;
        for (int e = 0; e < 4; ++e) total.push_back(out[4 * v + e] * shrink);
        for (int i = 0; i < parts; ++i) {
          const Scalar factor = weight(tops[i], most);
          const Scalar own = select(from + i < end, part_of(weights, i)[1], k.constant(f32, 0));
          all_sums = fma(own, factor, all_sums);
          for (int e = 0; e < 4; ++e) total[e] = fma(part_of(values, i)[e], factor, total[e]);
        }
        top[v] = most, sum[v] = all_sums;
        for (int e = 0; e < 4; ++e) out[4 * v + e] = total[e];
      }
    });
    for (int v = 0; v < together; ++v)
      k.when(there[v], [&] {
        const std::vector<Scalar> vector(out.begin() + 4 * v, out.begin() + 4 * v + 4);
        write(part, row[v], col[v], vector, sum[v]);
      });
  });
}

}  // namespace tartan::TARTAN_ABI::kernels
