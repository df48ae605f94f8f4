// Linear layers: every weight type, instruction set, number of tokens, panel range and number of threads gives the bits
// of the definition.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "linear_oracle.hpp"
#include "numbers.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/ops/linear.hpp"
#include "vitrine/simd/dispatch.hpp"

using namespace vitrine;
using namespace linear_oracle;
using namespace ops_test;

namespace {

struct LinearCase {
  DType type;
  std::int64_t n_rows, n_cols, max_tokens;
  std::vector<std::byte> rows;
  std::vector<float> x, wanted;  // [max_tokens, n_cols], [max_tokens, n_rows]
  PackedMatrix w;
};

LinearCase make_case(DType type, std::int64_t n_rows, std::int64_t n_cols, std::int64_t max_tokens, bool extreme) {
  LinearCase c{type, n_rows, n_cols, max_tokens, {}, {}, {}, PackedMatrix(type, n_rows, n_cols)};
  c.rows = random_rows(type, n_rows, n_cols, extreme, unsigned(n_rows * 1000 + n_cols));
  std::mt19937 random(7);
  for (std::int64_t i = 0; i < max_tokens * n_cols; ++i) {
    const float value = (float(random() % 20001) - 10000) * 1e-3f;
    c.x.push_back(extreme ? (random() & 1 ? 8.0f : -8.0f) : value * (i % 97 == 0 ? 20.0f : 1.0f));
  }
  if (!extreme && activation_block(type) && max_tokens > 2)  // a block of zeros, and one too small for a scale
    for (std::int64_t i = 0; i < n_cols && i < std::int64_t(activation_block(type)); ++i) {
      c.x[std::size_t(n_cols + i)] = 0.0f;
      c.x[std::size_t(2 * n_cols + i)] = 1e-38f;
    }
  c.w.pack_panels(0, c.w.n_panels(), c.rows.data(), nullptr);
  c.wanted.resize(std::size_t(max_tokens * n_rows));
  for (std::int64_t t = 0; t < max_tokens; ++t) {
    const float* x = c.x.data() + t * n_cols;
    QuantisedX quantised;
    if (activation_block(type)) quantised = quantise(x, n_cols, activation_block(type));
    for (std::int64_t r = 0; r < n_rows; ++r)
      c.wanted[std::size_t(t * n_rows + r)] =
          dot(type, c.rows.data() + std::size_t(r) * c.w.row_bytes(), n_cols, x, quantised);
  }
  return c;
}

// Enough for every form, the one for whole tiles too: a full tile and one that is not.
constexpr std::int64_t in_tiles = least_matrix_tokens + 3;
static_assert(in_tiles > matrix_tokens && in_tiles % matrix_tokens != 0);

// The first n_tokens tokens of the case through prepare and linear; a column beyond the rows shows stray writes. With
// row_by_row the input's rows are made while it is prepared.
std::vector<float> run(const LinearCase& c, Isa isa, std::int64_t n_tokens, int n_threads, LinearOptions options = {},
                       float start = -77.0f, bool row_by_row = false) {
  const std::int64_t stride = c.n_rows + 3;
  std::vector<float> y(std::size_t(n_tokens * stride), start);
  const TensorView<const float, 2> x(c.x.data(), {n_tokens, c.n_cols});
  Tensor<float, 2> made({n_tokens, c.n_cols});
  LinearInput input;
  input.reserve(n_tokens, c.n_cols);
  Team team(n_threads);
  team.run([&](Worker& worker) {
    if (row_by_row)
      input.prepare(worker, kernels(isa), made.view(), {&c.w},
                    [&](std::int64_t t) { std::copy_n(x.row(t).data(), c.n_cols, made.view().row(t).data()); });
    else
      input.prepare(worker, kernels(isa), x, {&c.w});
    worker.sync();
    linear(worker, kernels(isa), c.w, input, TensorView<float, 2>(y.data(), {n_tokens, c.n_rows}, {stride, 1}),
           options);
  });
  std::vector<float> out;
  for (std::int64_t t = 0; t < n_tokens; ++t) {
    const auto row = y.begin() + t * stride;
    out.insert(out.end(), row, row + c.n_rows);
    for (std::int64_t extra = c.n_rows; extra < stride; ++extra) REQUIRE(row[extra] == start);
  }
  return out;
}

bool equals_wanted(const LinearCase& c, const std::vector<float>& got) {
  return std::memcmp(got.data(), c.wanted.data(), got.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("linear layers give the bits of their definition for 1 to 40 tokens on every instruction set") {
  for (const DType type : all_types) {
    const std::int64_t block = dtype_info(type).block_len;
    const LinearCase c = make_case(type, 37, block == 1 ? 77 : 3 * block, 40, false);
    for (const Isa isa : available_isas())
      for (std::int64_t n_tokens = 1; n_tokens <= 40; ++n_tokens) {
        CAPTURE(dtype_info(type).name, isa_name(isa), n_tokens);
        REQUIRE(equals_wanted(c, run(c, isa, n_tokens, 1)));
      }
  }
}

TEST_CASE("linear layers of any shape and number of threads give the bits of their definition") {
  for (const DType type : all_types) {
    const std::int64_t block = dtype_info(type).block_len;
    std::vector<std::int64_t> lengths{block, 2 * block, 5 * block};
    lengths.push_back(block == 1 ? 1000 : 2080 / block * block + block);  // several stretches
    for (const std::int64_t n_cols : lengths)
      for (const std::int64_t n_rows : {1, 16, 100}) {
        const LinearCase c = make_case(type, n_rows, n_cols, in_tiles, false);
        for (const Isa isa : available_isas())
          for (const std::int64_t n_tokens : {std::int64_t(1), std::int64_t(2), std::int64_t(11), in_tiles})
            for (const int n_threads : {1, 2, 3}) {
              CAPTURE(dtype_info(type).name, isa_name(isa), n_rows, n_cols, n_tokens, n_threads);
              REQUIRE(equals_wanted(c, run(c, isa, n_tokens, n_threads)));
            }
      }
  }
}

TEST_CASE("extreme weights and activations neither saturate nor overflow") {
  for (const DType type : all_types) {
    const std::int64_t block = dtype_info(type).block_len;
    const LinearCase c = make_case(type, 48, block == 1 ? 64 : 4 * block, in_tiles, true);
    for (const Isa isa : available_isas())
      for (const std::int64_t n_tokens : {std::int64_t(1), std::int64_t(9), in_tiles}) {
        CAPTURE(dtype_info(type).name, isa_name(isa), n_tokens);
        CHECK(equals_wanted(c, run(c, isa, n_tokens, 1)));
      }
  }
}

TEST_CASE("an input's peaks are the first largest of its runs, and its blocks hold zeros there") {
  const auto peaks_of = [](const KernelTable& table, const std::vector<float>& x) {
    const auto n = std::int64_t(x.size());
    std::vector<XPeak> peaks(std::size_t(n_peaks(n)));
    std::vector<XBlock32> blocks(x.size() / 32);
    table.linear.quantise_32({x.data(), n, peaks.data()}, blocks.data(), 0, n_peaks(n));
    std::vector<std::int64_t> at;
    for (const XPeak& peak : peaks) {
      REQUIRE(peak.x == x[peak.k]);
      CHECK(blocks[peak.k / 32].q[peak.k % 32] == 0);
      at.push_back(peak.k);
    }
    return at;
  };
  using Columns = std::vector<std::int64_t>;
  for (const Isa isa : available_isas()) {
    const KernelTable& table = kernels(isa);
    CHECK(peaks_of(table, std::vector<float>(480, 1.0f)) == Columns{0});
    CHECK(peaks_of(table, std::vector<float>(576, -1.0f)) == Columns{0, 256});
    CHECK(peaks_of(table, std::vector<float>(992, 0.0f)) == Columns{0, 256, 512});
    CHECK(peaks_of(table, std::vector<float>(1536, 1.0f)) == Columns{0, 256, 768, 1024});
    std::vector<float> x(4096, 0.5f);
    x[1023] = -3.0f, x[1030] = 2.0f, x[1031] = -2.0f, x[3072] = 0.75f, x[4095] = -0.75f;
    CHECK(peaks_of(table, x) == Columns{1023, 1030, 2048, 3072});
  }
}

TEST_CASE("an input whose rows are made while it is prepared is the one that was there before") {
  for (const DType type : {DType::f32, DType::q4_1, DType::q6_k}) {
    const LinearCase c = make_case(type, 37, 512, in_tiles, false);
    for (const Isa isa : available_isas())
      for (const std::int64_t n_tokens : {std::int64_t(1), std::int64_t(5), std::int64_t(19), in_tiles})
        for (const int n_threads : {1, 2, 3}) {
          CAPTURE(dtype_info(type).name, isa_name(isa), n_tokens, n_threads);
          CHECK(equals_wanted(c, run(c, isa, n_tokens, n_threads, {}, -77.0f, true)));
        }
  }
}

TEST_CASE("more tokens than one sweep holds") {
  for (const DType type : {DType::q4_1, DType::q6_k, DType::f16}) {
    const LinearCase c = make_case(type, 17, 256, 530, false);
    for (const Isa isa : available_isas()) {
      CAPTURE(dtype_info(type).name, isa_name(isa));
      CHECK(equals_wanted(c, run(c, isa, 530, 2)));
    }
  }
}

TEST_CASE("bias and residual are added after the product, in that order") {
  for (const DType type : {DType::f32, DType::q8_0, DType::q4_k}) {
    const LinearCase c = make_case(type, 37, 256, 5, false);
    std::vector<float> bias(37);
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = 0.1f * float(i) - 1.7f;
    for (const Isa isa : available_isas())
      for (const std::int64_t n_tokens : {1, 5})
        for (const bool with_bias : {false, true}) {
          CAPTURE(dtype_info(type).name, isa_name(isa), n_tokens, with_bias);
          const auto got = run(c, isa, n_tokens, 1, {with_bias ? bias.data() : nullptr, true}, 0.3f);
          for (std::size_t i = 0; i < got.size(); ++i) {
            const float product = with_bias ? c.wanted[i] + bias[i % 37] : c.wanted[i];
            REQUIRE(got[i] == 0.3f + product);
          }
        }
  }
}

namespace {

// The largest of each 64 of a row, or NaN where one is not finite: what block_max is to hold.
std::vector<float> maxima_of(const float* row, std::int64_t n) {
  std::vector<float> maxima;
  for (std::int64_t begin = 0; begin < n; begin += 64) {
    const std::int64_t end = (std::min)(n, begin + 64);
    const bool finite = std::all_of(row + begin, row + end, [](float y) { return std::isfinite(y); });
    maxima.push_back(finite ? *std::max_element(row + begin, row + end) : std::numeric_limits<float>::quiet_NaN());
  }
  return maxima;
}

bool same_or_both_nan(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

TEST_CASE("the maxima of blocks are those of the results, which they change no bit of") {
  for (const DType type : all_types)
    for (const std::int64_t n_rows : {1, 64, 65, 333}) {
      const std::int64_t block = dtype_info(type).block_len, n_blocks = (n_rows + 63) / 64;
      const LinearCase c = make_case(type, n_rows, block == 1 ? 33 : block, in_tiles, false);
      // Results that are not finite, in some blocks: by a bias at one row.
      std::vector<float> bias(std::size_t(n_rows), -0.0f);
      for (const float bad : {0.0f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity()}) {
        const std::int64_t bad_row = n_rows * 2 / 3;
        bias[std::size_t(bad_row)] = bad;
        for (const Isa isa : available_isas())
          for (const std::int64_t n_tokens : {std::int64_t(1), in_tiles})
            for (const int n_threads : {1, 3}) {
              CAPTURE(dtype_info(type).name, isa_name(isa), n_rows, n_tokens, n_threads, bad);
              std::vector<float> room(std::size_t(n_tokens * (n_blocks + 1)), -77.0f);
              LinearOptions options;
              options.bias = bad == 0.0f ? nullptr : bias.data();
              options.block_max = {room.data(), {n_tokens, n_blocks}, {n_blocks + 1, 1}};
              const auto y = run(c, isa, n_tokens, n_threads, options);
              if (bad == 0.0f) REQUIRE(equals_wanted(c, y));
              for (std::int64_t t = 0; t < n_tokens; ++t) {
                REQUIRE(std::isfinite(y[std::size_t(t * n_rows + bad_row)]) == (bad == 0.0f));
                const auto wanted = maxima_of(y.data() + t * n_rows, n_rows);
                for (std::int64_t b = 0; b < n_blocks; ++b)
                  REQUIRE(same_or_both_nan(room[std::size_t(t * (n_blocks + 1) + b)], wanted[std::size_t(b)]));
                REQUIRE(room[std::size_t(t * (n_blocks + 1) + n_blocks)] == -77.0f);
              }
            }
      }
    }
}

TEST_CASE("any range of panels computes its own rows and no others") {
  for (const DType type : all_types) {
    const LinearCase c = make_case(type, 16 * 11 - 3, dtype_info(type).block_len == 1 ? 33 : 256, in_tiles, false);
    LinearInput input;
    input.reserve(in_tiles, c.n_cols);
    Team team(1);
    for (const Isa isa : available_isas())
      for (const std::int64_t n_tokens : {std::int64_t(1), std::int64_t(3), in_tiles})
        for (std::int64_t first = 0; first <= 10; first += 5)
          for (std::int64_t last = first; last <= 11; ++last) {
            std::vector<float> y(std::size_t(n_tokens * c.n_rows), -1.0f);
            team.run([&](Worker& worker) {
              input.prepare(worker, kernels(isa), TensorView<const float, 2>(c.x.data(), {n_tokens, c.n_cols}), {&c.w});
            });
            LinearJob job;
            job.weights = c.w.panel(0);
            job.panel_bytes = c.w.panel_bytes();
            job.n_rows = c.n_rows;
            input.give_to(job);
            job.y = y.data();
            job.y_stride = c.n_rows;
            const LinearForms& forms = linear_forms(kernels(isa).linear, type);
            if (forms.matrix) REQUIRE((forms.best(n_tokens) == forms.matrix) == (n_tokens == in_tiles));
            forms.best(n_tokens)(job, first, last);
            CAPTURE(dtype_info(type).name, isa_name(isa), n_tokens, first, last);
            for (std::int64_t t = 0; t < n_tokens; ++t)
              for (std::int64_t r = 0; r < c.n_rows; ++r) {
                const bool inside = r / 16 >= first && r / 16 < last;
                const std::size_t at = std::size_t(t * c.n_rows + r);
                REQUIRE(y[at] == (inside ? c.wanted[at] : -1.0f));
              }
          }
  }
}

TEST_CASE("NaN or infinity in the input shows in every row of that token, and only there") {
  for (const DType type : {DType::q4_1, DType::q8_0, DType::q4_k, DType::q6_k}) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()})
      for (const Isa isa : available_isas())
        for (const std::int64_t at : {0, 15, 16, 255}) {
          CAPTURE(dtype_info(type).name, isa_name(isa), bad, at);
          LinearCase c = make_case(type, 20, 256, 5, false);
          c.x[std::size_t(2 * 256 + at)] = bad;
          for (const std::int64_t n_tokens : {3, 5}) {
            const auto y = run(c, isa, n_tokens, 1);
            for (std::size_t i = 0; i < y.size(); ++i)
              if (i / 20 == 2)
                REQUIRE(!std::isfinite(y[i]));
              else
                REQUIRE(y[i] == c.wanted[i]);
          }
        }
  }
}

TEST_CASE("shapes that do not fit are refused by name") {
  const LinearCase c = make_case(DType::q8_0, 20, 64, 2, false);
  const PackedMatrix other(DType::q4_k, 20, 256);
  OwnWorker worker;
  LinearInput input;
  input.reserve(2, 256);
  const TensorView<const float, 2> x(c.x.data(), {2, 64});
  std::vector<float> y(3 * 20);
  CHECK_THROWS_AS(input.prepare(worker, kernels(), x, {&other}), Error);
  CHECK_THROWS_AS(input.prepare(worker, kernels(), TensorView<const float, 2>(c.x.data(), {3, 32}), {}), Error);
  input.prepare(worker, kernels(), x, {});
  CHECK_THROWS_AS(linear(worker, kernels(), c.w, input, TensorView<float, 2>(y.data(), {2, 20})), Error);
  input.prepare(worker, kernels(), x, {&c.w});
  CHECK_THROWS_AS(linear(worker, kernels(), other, input, TensorView<float, 2>(y.data(), {2, 20})), Error);
  CHECK_THROWS_AS(linear(worker, kernels(), c.w, input, TensorView<float, 2>(y.data(), {3, 20})), Error);
  CHECK_NOTHROW(linear(worker, kernels(), c.w, input, TensorView<float, 2>(y.data(), {2, 20})));
  LinearOptions two_blocks;
  two_blocks.block_max = {y.data(), {2, 2}};
  CHECK_THROWS_AS(linear(worker, kernels(), c.w, input, TensorView<float, 2>(y.data(), {2, 20}), two_blocks), Error);
}
