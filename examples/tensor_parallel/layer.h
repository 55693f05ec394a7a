// SPDX-License-Identifier: Apache-2.0
// A linear layer, Y = X * W, whose weights are divided among the devices of a process.
#pragma once

#include <optional>

#include "collectives.h"

/// X: rows x in, W: in x out, Y: rows x out, all of them bf16; X and Y row-major, W column-major.
/// Collectives take a chunk of rows at a time, beside the product of another one.
///
///   all_reduce      rank r has columns r of X and rows r of W; its product is a part of each sum.
///                   All ranks get Y
///   reduce_scatter  the same, but of each chunk of Y a rank gets only its share of the rows
///   all_gather      rank r has rows r of X and columns r of W, and gets columns r of Y. It begins
///                   with the product of its own rows. Of each rank's rows a chunk has a part
struct LayerShape {
  Collective collective = Collective::all_reduce;
  int rows = 0, out = 0, in = 0, chunks = 1;
  /// Multiprocessors that a product leaves to the collective that runs beside it, if its kernel is
  /// persistent, as those for large products are: Layer::can_reserve().
  int reserved = 0;

  bool gathers() const { return collective == Collective::all_gather; }
  int rows_of_product(int ranks) const { return rows / chunks / (gathers() ? ranks : 1); }
  int columns(int ranks) const { return gathers() ? out / ranks : out; }  // of a product
  int depth(int ranks) const { return gathers() ? in : in / ranks; }      // of a product
  /// Whether rows and columns divide evenly among chunks and ranks, and operands are aligned.
  tartan::Status check(int ranks) const;
};

/// The matrices of one rank: x and w are inputs, y the output. `whole` holds what is between
/// product and collective: X when gathered, else the rank's summands of Y (all_reduce: y itself).
struct RankMatrices {
  tartan::Buffer x, w, whole, y;
};

/// A device of the layer. Products and collectives have a stream each.
struct Rank {
  tartan::Device device;
  tartan::Loader loader;
  tartan::Stream products, transfers;
  tartan::Event begin, end, products_done, transfers_done;
};
/// On cuda:0 and up, or as many emulated devices. They share the cache of compiled kernels.
tartan::Result<std::vector<Rank>> open_ranks(const std::string& kind, int count);

class Layer {
 public:
  static tartan::Result<Layer> make(const LayerShape& shape, std::vector<Rank> ranks,
                                    std::shared_ptr<Collectives> collectives);

  RankMatrices& matrices(int rank) { return matrices_[static_cast<std::size_t>(rank)]; }
  bool can_reserve() const { return gemm_.persistent; }
  /// Queues the layer on all devices; nothing is waited for, except by collectives of the host.
  tartan::Status run();
  /// Milliseconds of a run: of the slowest device, the mean of `times` runs after an untimed one.
  tartan::Result<double> measure(int times);

 private:
  Layer(const LayerShape& shape, std::vector<Rank> ranks, std::shared_ptr<Collectives> collectives)
      : shape_(shape), ranks_(std::move(ranks)), collectives_(std::move(collectives)) {}
  tartan::Status allocate();
  tartan::Status compile();
  tartan::Status multiply_and_reduce();
  tartan::Status gather_and_multiply();
  tartan::Status product(std::size_t rank, const tartan::Buffer& x, const tartan::Buffer& y,
                         bool beside_collective);
  tartan::Status collective(int chunk);

  LayerShape shape_;
  std::vector<Rank> ranks_;
  std::shared_ptr<Collectives> collectives_;
  tartan::kernels::Gemm gemm_;
  std::vector<std::shared_ptr<const tartan::ReadyKernel>> kernels_;
  std::vector<RankMatrices> matrices_;
};
