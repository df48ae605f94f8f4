// Bodies of ops/linear.hpp. The one place where a weight type known at run time chooses its kernels.
#pragma once

#include <algorithm>

#include "vitrine/core/error.hpp"
#include "vitrine/core/rounding.hpp"
#include "vitrine/ops/linear.hpp"

VITRINE_NAMESPACE_BEGIN

namespace linear_op_detail {

// How a matrix is shared out: panels that a thread takes of its share at a time, or the whole share in one go.
struct Portions {
  bool in_one_go;
  std::int64_t n_panels;
};

// In one go below so much of the matrix for each thread that asking how far the others are takes longer than waiting
// for them; shares are then as equal as they can be. Else few enough panels at a time that the others can help with the
// rest and that all end together, enough that a kernel gets going: float kernels work on four panels side by side, and
// a block whose maximum is wanted is one thread's.
inline Portions portions(const PackedMatrix& w, std::int64_t n_tokens, int n_threads, bool whole_blocks) {
  constexpr std::size_t worth_helping = std::size_t(1) << 20;
  constexpr std::int64_t panels_of_block = SamplingKernels::block / panel_rows;
  static_assert(panels_of_block == 4);
  const bool by_fours = is_float_type(w.type()) || whole_blocks;
  if (n_tokens == 1 && w.bytes() / std::size_t(n_threads) < worth_helping)
    return {true, by_fours ? panels_of_block : 1};
  const std::int64_t together = by_fours ? panels_of_block : one_token_panels;
  constexpr std::int64_t bytes = 16 << 10, multiply_adds = 4 << 20;  // of a portion: some microseconds
  const std::int64_t worthwhile =
      n_tokens > 1 ? multiply_adds / (panel_rows * w.n_cols() * n_tokens) : bytes / std::int64_t(w.panel_bytes());
  const std::int64_t portion = (std::min)(worthwhile, w.n_panels() / n_threads / 4);
  return {false, (std::max)(together, portion / together * together)};
}

// What memory gives in the time of a few small ops.
inline constexpr std::size_t fetched_first = std::size_t(32) << 10;
// With more tokens, arithmetic takes the time, and fetching would only be more of it.
inline constexpr std::int64_t most_tokens_fetched_for = 4;

}  // namespace linear_op_detail

VITRINE_INLINE const LinearForms& linear_forms(const LinearKernels& kernels, DType type) {
  switch (type) {
    case DType::f32: return kernels.f32;
    case DType::f16: return kernels.f16;
    case DType::bf16: return kernels.bf16;
    case DType::q4_0: return kernels.q4_0;
    case DType::q4_1: return kernels.q4_1;
    case DType::q5_0: return kernels.q5_0;
    case DType::q5_1: return kernels.q5_1;
    case DType::q8_0: return kernels.q8_0;
    case DType::q4_k: return kernels.q4_k;
    case DType::q5_k: return kernels.q5_k;
    case DType::q6_k: return kernels.q6_k;
    case DType::int8:
    case DType::int4: break;  // of caches
  }
  throw Error(ErrorKind::unsupported, concat("weight type number ", std::uint32_t(type), " is not known"));
}

VITRINE_INLINE const LinearForms& linear_forms(const LinearKernels& kernels, const PackedMatrix& w) {
  return w.in_planes() ? kernels.q8_0_planes : linear_forms(kernels, w.type());
}

VITRINE_INLINE LinearJob linear_job(const PackedMatrix& w) {
  LinearJob job;
  job.weights = job.fetch_end = w.panel(0);
  job.panel_bytes = w.panel_stride();
  job.low = job.fetch_end_of_low = w.low_panel(0);
  job.low_bytes = w.low_stride();
  job.n_rows = w.n_rows();
  job.n_cols = w.n_cols();
  return job;
}

VITRINE_INLINE void LinearInput::reserve(std::int64_t max_tokens, std::int64_t max_cols) {
  check(max_tokens > 0 && max_cols > 0, ErrorKind::bad_argument, "linear input: expected room for at least 1 x 1, got ",
        max_tokens, " x ", max_cols);
  const std::size_t tokens = std::size_t(max_tokens);
  const std::size_t tiles = max_tokens < least_matrix_tokens ? 0 : divide_up(tokens, matrix_tokens);
  room_32_ = AlignedBytes(std::size_t(max_cols / 32) * (std::max)(tokens * sizeof(XBlock32), tiles * sizeof(XTile32)));
  room_256_ =
      AlignedBytes(std::size_t(max_cols / 256) * (std::max)(tokens * sizeof(XBlock256), tiles * sizeof(XTile256)));
  peaks_.resize(tokens * std::size_t(n_peaks(max_cols)));
  max_tokens_ = max_tokens;
  max_cols_ = max_cols;
  x_ = {};
  encodings_ = {};
}

VITRINE_INLINE LinearInput::Encodings LinearInput::accept(const Worker& worker, const KernelTable& table,
                                                          TensorView<const float, 2> x,
                                                          std::initializer_list<const PackedMatrix*> readers) {
  const std::int64_t n_tokens = x.size(0), n_cols = x.size(1);
  check(n_tokens >= 0 && n_tokens <= max_tokens_ && n_cols <= max_cols_, ErrorKind::bad_argument,
        "linear input: room for ", max_tokens_, " x ", max_cols_, " was reserved, got ", n_tokens, " x ", n_cols);
  Encodings encodings{false, false, table.linear.takes_tiles(n_tokens)};
  for (const PackedMatrix* reader : readers) {
    check(reader->n_cols() == n_cols, ErrorKind::bad_argument, "linear input of ", n_cols,
          " columns for a matrix that has ", reader->n_cols());
    encodings.of_32 = encodings.of_32 || activation_block(reader->type()) == 32;
    encodings.of_256 = encodings.of_256 || activation_block(reader->type()) == 256;
  }
  if (worker.id() == 0) {
    x_ = x;
    encodings_ = encodings;
  }
  return encodings;
}

VITRINE_INLINE void LinearInput::quantise(const KernelTable& table, Encodings encodings, TensorView<const float, 2> x,
                                          std::int64_t token, std::int64_t piece, std::int64_t n_pieces) {
  const std::int64_t n_cols = x.size(1), n_sections = n_peaks(n_cols);
  const std::int64_t first = n_sections * piece / n_pieces, last = n_sections * (piece + 1) / n_pieces;
  const XRow row{x.data() + token * x.strides()[0], n_cols, peaks_.data() + token * n_sections};
  const auto into = [&](std::int64_t n_blocks, auto* blocks, auto kernel, auto* tiles, auto tile_kernel) {
    if (encodings.as_tiles)
      tile_kernel(row, tiles + token / matrix_tokens * n_blocks, int(token % matrix_tokens), first, last);
    else
      kernel(row, blocks + token * n_blocks, first, last);
  };
  const LinearKernels& with = table.linear;
  std::byte *room_32 = room_32_.data(), *room_256 = room_256_.data();
  if (encodings.of_32)
    into(n_cols / 32, reinterpret_cast<XBlock32*>(room_32), with.quantise_32, reinterpret_cast<XTile32*>(room_32),
         with.quantise_tile_32);
  if (encodings.of_256)
    into(n_cols / 256, reinterpret_cast<XBlock256*>(room_256), with.quantise_256, reinterpret_cast<XTile256*>(room_256),
         with.quantise_tile_256);
}

VITRINE_INLINE void LinearInput::prepare(Worker& worker, const KernelTable& table, TensorView<const float, 2> x,
                                         std::initializer_list<const PackedMatrix*> readers) {
  const Encodings encodings = accept(worker, table, x, readers);
  // Many tokens are shared out whole; a few are cut into pieces of whole sections.
  const std::int64_t n_tokens = x.size(0);
  const std::int64_t pieces = n_tokens >= 4 * worker.n_threads() ? 1 : n_peaks(x.size(1));
  const Worker::Range mine = worker.share(n_tokens * pieces);
  for (std::int64_t i = mine.begin; i < mine.end; ++i) quantise(table, encodings, x, i / pieces, i % pieces, pieces);
}

VITRINE_INLINE void LinearInput::give_to(LinearJob& job) const {
  job.n_tokens = n_tokens();
  job.n_cols = n_cols();
  job.x = x_.data();
  job.x_stride = x_.strides()[0];
  job.peaks = peaks_.data();
  const auto* room_32 = encodings_.of_32 ? room_32_.data() : nullptr;
  const auto* room_256 = encodings_.of_256 ? room_256_.data() : nullptr;
  if (encodings_.as_tiles) {
    job.tiles_32 = reinterpret_cast<const XTile32*>(room_32);
    job.tiles_256 = reinterpret_cast<const XTile256*>(room_256);
  } else {
    job.x_32 = reinterpret_cast<const XBlock32*>(room_32);
    job.x_256 = reinterpret_cast<const XBlock256*>(room_256);
  }
}

VITRINE_INLINE void fetch_first(const Worker& worker, const PackedMatrix& w, std::int64_t n_tokens) {
  using namespace linear_op_detail;
  if (n_tokens > most_tokens_fetched_for) return;
  const auto own = worker.share(w.n_panels(), portions(w, n_tokens, worker.n_threads(), false).n_panels);
  // A panel wider than its part of this is read side by side with the next.
  const bool is_wide = n_tokens == 1 && w.panel_stride() > fetched_first / one_token_panels;
  const std::int64_t n_streams = is_wide ? (std::min)(own.end - own.begin, std::int64_t(one_token_panels)) : 1;
  const std::size_t most = is_wide ? fetched_first / one_token_panels : fetched_first;
  const std::size_t n_bytes = (std::min)(std::size_t(own.end - own.begin) * w.panel_stride(), most);
  for (std::int64_t stream = 0; stream < n_streams; ++stream) {
    const std::byte* const first = w.panel(own.begin + stream);
    for (std::size_t i = 0; i < n_bytes; i += 64) __builtin_prefetch(first + i, 0, 2);  // into the second level
  }
}

VITRINE_INLINE void linear(Worker& worker, const KernelTable& table, const PackedMatrix& w, const LinearInput& x,
                           TensorView<float, 2> y, LinearOptions options) {
  using namespace linear_op_detail;
  check(!w.empty() && x.n_cols() == w.n_cols() && y.size(0) == x.n_tokens() && y.size(1) == w.n_rows(),
        ErrorKind::bad_argument, "linear layer [", w.n_rows(), ", ", w.n_cols(), "]: got input [", x.n_tokens(), ", ",
        x.n_cols(), "] and output [", y.size(0), ", ", y.size(1), "]");
  LinearJob job = linear_job(w);
  x.give_to(job);
  const std::uint32_t block = activation_block(w.type());
  const bool has_32 = job.x_32 || job.tiles_32, has_256 = job.x_256 || job.tiles_256;
  check((block != 32 || has_32) && (block != 256 || has_256), ErrorKind::bad_argument,
        "linear layer: the input was not prepared for ", dtype_info(w.type()).name, " weights");
  job.y = y.data();
  job.y_stride = y.strides()[0];
  job.bias = options.bias;
  job.add = options.add;
  const auto& maxima = options.block_max;
  const std::int64_t n_maxima = divide_up(w.n_rows(), SamplingKernels::block);
  check(!maxima.data() || (maxima.size(0) == x.n_tokens() && maxima.size(1) == n_maxima), ErrorKind::bad_argument,
        "linear layer: expected maxima [", x.n_tokens(), ", ", n_maxima, "], got [", maxima.size(0), ", ",
        maxima.size(1), "]");
  job.block_max = maxima.data();
  job.block_max_stride = maxima.strides()[0];
  const LinearForms& forms = linear_forms(table.linear, w);
  const LinearKernel kernel = forms.best(job.n_tokens);
  const Portions portion = portions(w, job.n_tokens, worker.n_threads(), job.block_max != nullptr);
  const Worker::Range own = worker.share(w.n_panels(), portion.n_panels);
  job.fetch_end = w.panel(own.end);
  job.fetch_end_of_low = w.low_panel(own.end);
  if (portion.in_one_go) return kernel(job, own.begin, own.end);
  worker.for_chunks(w.n_panels(), portion.n_panels,
                    [&](std::int64_t first, std::int64_t last) { kernel(job, first, last); });
}

VITRINE_NAMESPACE_END
