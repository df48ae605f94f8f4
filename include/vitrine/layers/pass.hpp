// What the layers of one forward pass share: which tokens of which sequences are in it, scratch memory, the observer.
//
// All tokens of a pass are rows of the same matrices ([n_tokens, ...]), whatever sequence they belong to: weights are
// read once for all of them. Only attention looks at sequences, one slice after the other.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vitrine/cache/kv_layout.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/core/tensor.hpp"
#include "vitrine/core/trace.hpp"
#include "vitrine/ops/attention.hpp"
#include "vitrine/ops/linear.hpp"
#include "vitrine/simd/kernel_table.hpp"

VITRINE_NAMESPACE_BEGIN

// Consecutive tokens of one sequence: rows [first_row, first_row + n_rows) of the pass, at positions pos0, pos0 + 1,
// ...
struct SequenceSlice {
  const KvLayout* layout = nullptr;
  std::byte* const* blocks = nullptr;  // of the sequence's cache, with room for pos0 + n_rows tokens
  std::int64_t pos0 = 0, first_row = 0, n_rows = 0;
};

// Shapes of a block, the same for all layers of a model but for window and rope.
struct BlockShape {
  AttentionShape attention;
  std::int64_t d_model = 0, d_ff = 0;
  float norm_eps = 0;
  bool gelu = false;      // the gate's activation: GELU (tanh form) or SiLU
  std::int64_t rope = 0;  // which of the pass's rotation tables
};

// Memory of a pass, reserved once for `max_tokens`; nothing is allocated while a pass runs.
struct PassScratch {
  Tensor<float, 2> x;                      // [max_tokens, d_model] the residual stream
  Tensor<float, 2> normed;                 // [max_tokens, d_model]
  Tensor<float, 2> q;                      // [max_tokens, n_head * head_dim]
  Tensor<float, 2> k, v;                   // [max_tokens, n_kv_head * head_dim]
  Tensor<float, 2> mixed;                  // [max_tokens, n_head * head_dim] what attention gives
  Tensor<float, 2> gate, up;               // [max_tokens, d_ff]
  std::vector<Tensor<float, 2>> cos, sin;  // per rotation table, [max_tokens, head_dim / 2]
  std::vector<std::int64_t> positions;     // [max_tokens]
  LinearInput input;                       // the quantised input of the matrix product at hand
  AttentionScratch attention;
  std::int64_t max_context = 0;  // positions below this
  int n_threads = 0;             // of the team at most
};

// One thread's view of a running pass. Every thread of the team holds one and walks through the same layers.
struct Pass {
  Worker& worker;
  const KernelTable& kernels;
  PassScratch& scratch;
  std::span<const SequenceSlice> slices;
  std::int64_t n_tokens;
  const TraceObserver* observer;  // null: nobody looks

  // The first n_tokens rows of a scratch matrix.
  TensorView<float, 2> rows(Tensor<float, 2>& matrix) const { return {matrix.data(), {n_tokens, matrix.shape()[1]}}; }

  // Shows an intermediate to the observer; call it where every thread has synced or may sync.
  void show(std::string_view step, std::string_view name, std::int64_t layer, TensorView<const float, 2> value,
            std::string_view meaning) const {
    if (observer == nullptr || worker.stopped()) return;
    worker.on_main([&] { (*observer)({step, name, int(layer), value, meaning}); });
  }
};

VITRINE_NAMESPACE_END
