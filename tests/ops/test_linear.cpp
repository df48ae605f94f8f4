// Linear layers: every weight type, instruction set, number of tokens, panel range and number of threads gives the bits
// of the definition.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "linear_case.hpp"
#include "vitrine/core/error.hpp"

using namespace linear_test;

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
    const LinearCase c = make_case(type, 48, block == 1 ? 64 : 8 * block, in_tiles, true);  // some without a peak
    for (const Isa isa : available_isas())
      for (const std::int64_t n_tokens : {std::int64_t(1), std::int64_t(9), in_tiles}) {
        CAPTURE(dtype_info(type).name, isa_name(isa), n_tokens);
        CHECK(equals_wanted(c, run(c, isa, n_tokens, 1)));
      }
  }
}

TEST_CASE("the largest sums that a block can have are exact") {
  for (const DType type : all_types) {
    if (is_float_type(type)) continue;
    LinearCase c = make_case(type, 20, 8 * dtype_info(type).block_len, in_tiles, false);
    for (std::size_t i = 0; i < c.x.size(); ++i) c.x[i] = std::int64_t(i) / c.n_cols % 2 ? -8.0f : 8.0f;
    for (const int value : {0, 0xff, 0x80, 0x7f}) {
      fill_quants(type, c.rows, std::byte(value));
      complete(c);
      for (const Isa isa : available_isas())
        for (const std::int64_t n_tokens : {std::int64_t(1), std::int64_t(2), std::int64_t(9), in_tiles}) {
          CAPTURE(dtype_info(type).name, isa_name(isa), value, n_tokens);
          CHECK(equals_wanted(c, run(c, isa, n_tokens, 1)));
        }
    }
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
    for (const float bad : {not_a_number, -infinity})
      for (const float other : {0.5f, not_a_number, infinity})  // the first is a peak, a second reaches a block's scale
        for (const Isa isa : available_isas())
          for (const std::int64_t at : {0, 15, 16, 255}) {
            CAPTURE(dtype_info(type).name, isa_name(isa), bad, other, at);
            LinearCase c = make_case(type, 20, 256, 5, false);
            c.x[std::size_t(2 * 256 + at)] = bad;
            c.x[std::size_t(2 * 256 + (at + 100) % 256)] = other;
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
