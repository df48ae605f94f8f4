// What the layers of one forward pass share: which tokens of which sequences are in it, scratch memory, the observer.
//
//   rows of a pass    sequence A at positions 7, 8, 9 | sequence B at position 120 | ...      n_tokens of them
//
// All tokens of a pass are rows of the same matrices ([n_tokens, ...]), whatever sequence they belong to: weights are
// read once for all of them. Only attention looks at sequences, one slice after the other.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "vitrine/cache/kv_tables.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/core/tensor.hpp"
#include "vitrine/core/trace.hpp"
#include "vitrine/ops/attention.hpp"
#include "vitrine/ops/elementwise.hpp"
#include "vitrine/ops/linear.hpp"
#include "vitrine/simd/kernel_table.hpp"

VITRINE_NAMESPACE_BEGIN

// Consecutive tokens of one sequence: rows [first_row, first_row + n_rows) of the pass, at positions pos0, pos0 + 1,
// ...
struct SequenceSlice {
  const KvTables* cache = nullptr;  // of the sequence's cache, prepared for n_rows tokens behind pos0
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

// The vectors between the matrix products: the residual stream, what each product reads, what is made of its result.
struct Vectors {
  Tensor<float, 2> x;       // [max_tokens, d_model] the residual stream
  Tensor<float, 2> normed;  // [max_tokens, d_model]
  Tensor<float, 2> q;       // [max_tokens, n_head * head_dim] normed and turned
  Tensor<float, 2> q_sink;  // the same, turned for the attention sinks; empty if there are none
  Tensor<float, 2> k;       // [max_tokens, n_kv_head * head_dim] normed and turned
  Tensor<float, 2> gated;   // [max_tokens, d_ff]
  LinearInput input;        // the quantised input of the matrix product at hand
};

// Memory of a pass, reserved once for `max_tokens`; nothing is allocated while a pass runs.
struct PassScratch {
  std::vector<BlockShape> shapes;          // [n_layer] of the model, with the window and sinks that were wished for
  KvReach limit;                           // these
  Tensor<float, 2> q;                      // [max_tokens, n_head * head_dim]
  Tensor<float, 2> k, v;                   // [max_tokens, n_kv_head * head_dim]
  Tensor<float, 2> mixed;                  // [max_tokens, n_head * head_dim] what attention gives
  Tensor<float, 2> projected;              // [max_tokens, d_model] what will be added to x
  Tensor<float, 2> gate, up;               // [max_tokens, d_ff]
  std::vector<Tensor<float, 2>> cos, sin;  // per rotation table, [max_tokens, head_dim / 2]
  std::vector<Tensor<float, 2>> sink_cos, sink_sin;     // the same for the second queries; empty without sinks
  std::vector<std::int64_t> positions, sink_positions;  // [max_tokens]
  AttentionScratch attention;
  Vectors shared;                // of the team; its q, k and gated are empty: those above are changed in place
  std::vector<Vectors> own;      // of each thread, for max_own_tokens
  std::int64_t max_context = 0;  // positions below this
  int n_threads = 0;             // of the team at most
};

// Passes of so few tokens (decode) do not share out the small ops between the matrix products: every thread does them
// all, on vectors of its own. That takes less time than waiting for one another, and it is the same arithmetic.
inline constexpr std::int64_t max_own_tokens = 4;

// Whether the caller wants the pass to end early.
struct Cancellation {
  std::stop_token stop;
  bool requested = false;

  // Thread 0 asks, in the middle of a block; all read `requested` after the block's last barrier.
  void ask(const Worker& worker) {
    if (worker.id() == 0) requested = stop.stop_requested();
  }
};

// One thread's view of a running pass. Every thread of the team holds one and walks through the same layers.
class Pass {
 public:
  // `worker` is of the team, `alone` of this thread only.
  Pass(Worker& team_worker, Worker& alone, const KernelTable& table, PassScratch& memory,
       std::span<const SequenceSlice> of_sequences, std::int64_t tokens, const TraceObserver* trace,
       Cancellation& cancellation)
      : Pass(team_worker, tokens <= max_own_tokens ? alone : team_worker, table, memory,
             tokens <= max_own_tokens ? memory.own[std::size_t(team_worker.id())] : memory.shared, of_sequences, tokens,
             trace, cancellation) {}

  Worker& worker;  // shares out the matrix products and attention
  Worker& nearby;  // whoever works on the vectors below: the team, or this thread alone
  const KernelTable& kernels;
  PassScratch& scratch;
  std::span<const SequenceSlice> slices;
  std::int64_t n_tokens;
  const TraceObserver* observer;  // null: nobody looks
  Cancellation& cancel;

  TensorView<float, 2> x, normed, q, q_sink, k, gated;  // see Vectors
  LinearInput& input;

  // The first n_tokens rows of a scratch matrix.
  TensorView<float, 2> rows(Tensor<float, 2>& matrix) const { return {matrix.data(), {n_tokens, matrix.shape()[1]}}; }

  // Lets memory work on the matrix that is multiplied with next while its input is made.
  void announce(const PackedMatrix& matrix) const { announce(matrix, n_tokens); }
  void announce(const PackedMatrix& matrix, std::int64_t n_rows) const { fetch_first(worker, matrix, n_rows); }

  // Makes `vectors` the input of the next product, whose row t make_row(t) writes first; afterwards, behind a barrier
  // of whoever works on vectors, both are there to be read.
  template <class MakeRow>
  void prepare(TensorView<const float, 2> vectors, std::initializer_list<const PackedMatrix*> readers,
               MakeRow&& make_row) const {
    input.prepare(nearby, kernels, vectors, readers, make_row);
    nearby.sync();
  }
  void prepare(TensorView<const float, 2> vectors, std::initializer_list<const PackedMatrix*> readers) const {
    input.prepare(nearby, kernels, vectors, readers);
    nearby.sync();
  }
  void prepare_normed(const std::vector<float>& weight, float eps,
                      std::initializer_list<const PackedMatrix*> readers) const {
    prepare(normed, readers,
            [&](std::int64_t t) { rms_norm_row(nearby, kernels, x.row(t), weight.data(), eps, normed.row(t)); });
  }

  bool shares_vectors() const { return &nearby == &worker; }

  // Shows an intermediate to the observer; call it where every thread has synced or may sync.
  void show(std::string_view step, std::string_view name, std::int64_t layer, TensorView<const float, 2> value,
            std::string_view meaning) const {
    if (observer == nullptr || worker.stopped()) return;
    worker.on_main([&] { (*observer)({step, name, int(layer), value, meaning}); });
  }

 private:
  Pass(Worker& team_worker, Worker& small_ops, const KernelTable& table, PassScratch& memory, Vectors& vectors,
       std::span<const SequenceSlice> of_sequences, std::int64_t tokens, const TraceObserver* trace,
       Cancellation& cancellation)
      : worker(team_worker),
        nearby(small_ops),
        kernels(table),
        scratch(memory),
        slices(of_sequences),
        n_tokens(tokens),
        observer(trace),
        cancel(cancellation),
        x(rows(vectors.x)),
        normed(rows(vectors.normed)),
        q(rows(vectors.q.data() ? vectors.q : memory.q)),
        q_sink(rows(vectors.q_sink)),
        k(rows(vectors.k.data() ? vectors.k : memory.k)),
        gated(rows(vectors.gated.data() ? vectors.gated : memory.gate)),
        input(vectors.input) {}
};

VITRINE_NAMESPACE_END
