// A head in planes: the same weights, the same bits from the full product; and from the short way the largest logits,
// with nothing read of the low planes that are not counted.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "numbers.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/core/float16.hpp"
#include "vitrine/ops/logits.hpp"
#include "vitrine/ops/top_logits.hpp"
#include "vitrine/simd/dispatch.hpp"

using namespace vitrine;
using namespace ops_test;

namespace {

// Rows of any quants, with n_winners rows among them that point along x.
struct Head {
  std::int64_t n_rows, n_cols;
  std::vector<BlockQ8_0> rows;
  std::vector<float> x;

  Head(std::int64_t rows_wanted, std::int64_t cols, std::int64_t n_winners, unsigned seed = 1, bool extreme = false)
      : n_rows(rows_wanted), n_cols(cols) {
    std::mt19937 random(seed);
    for (std::int64_t k = 0; k < n_cols; ++k)
      x.push_back(extreme ? (random() & 1 ? 8.0f : -8.0f) : float(int(random() % 2001) - 1000) * 1e-3f);
    for (std::int64_t i = 0; i < n_rows * n_cols / 32; ++i) {
      auto& block = rows.emplace_back();
      block.d = f32_to_f16(extreme ? 0.5f : 0.001f * float(1 + random() % 8));
      for (auto& q : block.qs) q = std::int8_t(extreme ? (random() & 1 ? 127 : -128) : int(random() % 255) - 127);
    }
    for (std::int64_t i = 0; i < n_winners; ++i) {
      const auto row = std::int64_t(random() % std::uint64_t(n_rows));
      for (std::int64_t k = 0; k < n_cols; ++k) {
        auto& block = rows[std::size_t((row * n_cols + k) / 32)];
        block.d = f32_to_f16(0.008f);
        block.qs[k % 32] = std::int8_t(std::lround(x[std::size_t(k)] * float(80 + random() % 40)));
      }
    }
  }
  BlockQ8_0& block(std::int64_t row, std::int64_t b) { return rows[std::size_t(row * (n_cols / 32) + b)]; }
  PackedMatrix packed(PackedLayout layout) const {
    PackedMatrix w(DType::q8_0, n_rows, n_cols, layout);
    w.pack_panels(0, w.n_panels(), reinterpret_cast<const std::byte*>(rows.data()), nullptr);
    return w;
  }
};

struct Result {
  std::vector<float> logits, block_max;
  bool done = true;
};

Result product(const PackedMatrix& w, const std::vector<float>& x, Isa isa, int n_threads, std::int64_t n_tokens = 1) {
  Result out{std::vector<float>(std::size_t(n_tokens * w.n_rows())),
             std::vector<float>(std::size_t(n_tokens * Logits::n_blocks(w.n_rows())))};
  LinearInput input;
  input.reserve(n_tokens, w.n_cols());
  Team team(n_threads);
  team.run([&](Worker& worker) {
    input.prepare(worker, kernels(isa), TensorView<const float, 2>(x.data(), {n_tokens, w.n_cols()}), {&w});
    worker.sync();
    linear(worker, kernels(isa), w, input, TensorView<float, 2>(out.logits.data(), {n_tokens, w.n_rows()}),
           {.block_max = {out.block_max.data(), {n_tokens, Logits::n_blocks(w.n_rows())}}});
  });
  return out;
}

Result top(TopLogits& room, const PackedMatrix& w, const std::vector<float>& x, std::int64_t n_top, Isa isa,
           int n_threads) {
  Result out{std::vector<float>(std::size_t(w.n_rows()), 77.0f),
             std::vector<float>(std::size_t(Logits::n_blocks(w.n_rows())), 77.0f)};
  REQUIRE(room.begins(n_top));
  LinearInput input;
  input.reserve(1, w.n_cols());
  Team team(n_threads);
  team.run([&](Worker& worker) {
    input.prepare(worker, kernels(isa), TensorView<const float, 2>(x.data(), {1, w.n_cols()}), {&w});
    worker.sync();
    const bool done = room.compute(worker, kernels(isa), w, input, out.logits, out.block_max);
    if (worker.id() == 0) out.done = done;
  });
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The n_top largest, and all that are as large as the last of them, are those of the full product; others are, too, or
// are -infinity; maxima are those of what is there.
bool is_top(const Result& got, const Result& full, std::int64_t n_top) {
  auto sorted = full.logits;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const float last = sorted[std::size_t(n_top - 1)];
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (got.logits[i] == -infinity && full.logits[i] < last) continue;
    if (std::memcmp(&got.logits[i], &full.logits[i], sizeof(float)) != 0) return false;
  }
  for (std::size_t b = 0; b < got.block_max.size(); ++b) {
    const auto begin = got.logits.begin() + std::ptrdiff_t(64 * b);
    const float largest = *std::max_element(begin, begin + std::min(std::ptrdiff_t(64), got.logits.end() - begin));
    if (got.block_max[b] != std::max(largest, std::numeric_limits<float>::lowest())) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a matrix in planes holds the rows of the file, in as many bytes") {
  for (const std::int64_t n_rows : {1, 16, 40})
    for (const std::int64_t n_cols : {32, 64, 96, 640}) {
      CAPTURE(n_rows, n_cols);
      Head head(n_rows, n_cols, 0);
      for (int i = 0; i < 256 && i < 32 * int(head.rows.size()); ++i)
        head.rows[std::size_t(i / 32)].qs[i % 32] = std::int8_t(i - 128);
      const auto planes = head.packed(PackedLayout::planes), whole = head.packed(PackedLayout::whole);
      CHECK(planes.in_planes());
      CHECK(!whole.in_planes());
      CHECK(planes.bytes() == whole.bytes());
      CHECK(reinterpret_cast<std::uintptr_t>(planes.low_panel(0)) % 64 == 0);
      std::vector<float> a(std::size_t(n_cols), 0.0f), b = a;
      for (std::int64_t row = 0; row < n_rows; ++row) {
        planes.decode_row(row, a.data());
        whole.decode_row(row, b.data());
        REQUIRE(same_bits(a, b));
      }
      std::vector<std::byte> panel(whole.panel_bytes());
      for (std::int64_t p = 0; p < whole.n_panels(); ++p) {
        planes.whole_panel(p, panel.data());
        REQUIRE(std::memcmp(panel.data(), whole.panel(p), panel.size()) == 0);
      }
    }
  CHECK_THROWS_AS(PackedMatrix(DType::q5_0, 16, 32, PackedLayout::planes), Error);
}

TEST_CASE("the full product of a matrix in planes has the bits of a whole one's") {
  for (const bool extreme : {false, true})
    for (const std::int64_t n_cols : {32, 96, 640, 2080}) {
      const std::int64_t n_tokens = 19;
      Head head(100, n_cols, 3, 5, extreme);
      while (std::int64_t(head.x.size()) < n_tokens * n_cols) head.x.push_back(0.7f * head.x[head.x.size() / 2]);
      const auto planes = head.packed(PackedLayout::planes), whole = head.packed(PackedLayout::whole);
      for (const Isa isa : available_isas())
        for (const std::int64_t n : {std::int64_t(1), std::int64_t(2), std::int64_t(7), n_tokens})
          for (const int n_threads : {1, 3}) {
            CAPTURE(isa_name(isa), n_cols, n, n_threads, extreme);
            const auto a = product(planes, head.x, isa, n_threads, n), b = product(whole, head.x, isa, n_threads, n);
            REQUIRE(same_bits(a.logits, b.logits));
            REQUIRE(same_bits(a.block_max, b.block_max));
          }
    }
}

TEST_CASE("bounds hold for every row, are those of every instruction set, and say something") {
  for (const bool extreme : {false, true}) {
    const Head head(16 * 30 - 5, 640, 4, 9, extreme);
    const auto w = head.packed(PackedLayout::planes);
    std::vector<XBlock32> x(20), input(20);
    std::vector<XPeak> peaks(2);
    kernels().linear.quantise_32({head.x.data(), 640, peaks.data()}, x.data(), 0, 2);
    auto job = linear_job(w);
    job.x_32 = x.data();
    job.peaks = peaks.data();
    REQUIRE(bound_input(job, input.data()));
    job.x_32 = input.data();
    const auto full = product(w, head.x, available_isas().front(), 1);
    std::vector<float> first;
    for (const Isa isa : available_isas()) {
      std::vector<float> bounds(std::size_t(w.n_panels()));
      job.y = bounds.data();
      kernels(isa).linear.upper_bounds(job, 0, w.n_panels());
      if (first.empty()) first = bounds;
      CHECK(same_bits(first, bounds));
    }
    double spread = 0;  // at most 7 |q_x| d xd and the slack; of peaks 9 |x| d
    for (const auto& peak : peaks) spread += 9 * std::fabs(peak.x) * (extreme ? 0.5 : 0.0082);
    for (const auto& block : x)
      for (const auto q : block.q) spread += 7.1 * std::abs(q) * block.scale * (extreme ? 0.5 : 0.0082);
    for (std::int64_t p = 0; p < w.n_panels(); ++p) {
      const auto begin = full.logits.begin() + 16 * p;
      const float largest = *std::max_element(begin, begin + std::min(std::ptrdiff_t(16), full.logits.end() - begin));
      CHECK(first[std::size_t(p)] >= largest);
      CHECK(first[std::size_t(p)] <= largest + spread + 1e-3);
    }
  }
}

TEST_CASE("the bound of a peak is what the low plane may hide of it and 1 / 128 of the largest weight") {
  for (const float peak : {3.0f, -3.0f}) {
    Head head(16 * 256, 64, 0);
    for (auto& value : head.x) value = 0;
    head.x[37] = peak;
    for (std::int64_t row = 0; row < head.n_rows; ++row) {
      head.block(row, 1).d = f32_to_f16(0.5f);
      head.block(row, 1).qs[5] = std::int8_t(row / 16 - 128);
    }
    const auto w = head.packed(PackedLayout::planes);
    std::vector<XBlock32> x(2), input(2);
    std::vector<XPeak> peaks(1);
    kernels().linear.quantise_32({head.x.data(), 64, peaks.data()}, x.data(), 0, 1);
    auto job = linear_job(w);
    job.x_32 = x.data();
    job.peaks = peaks.data();
    REQUIRE(bound_input(job, input.data()));
    job.x_32 = input.data();
    for (const Isa isa : available_isas()) {
      std::vector<float> bounds(256);
      job.y = bounds.data();
      kernels(isa).linear.upper_bounds(job, 0, 256);
      for (int i = 0; i < 256; ++i) {
        CAPTURE(isa_name(isa), peak, i);
        const int most = peak > 0 ? i / 8 * 8 + 7 : i / 8 * 8;  // of the eight weights with this high plane
        REQUIRE(bounds[std::size_t(i)] == 0.5f * (float(most - 128) * peak + 3.0f));
      }
    }
  }
}

TEST_CASE("the largest logits are those of the full product, for every instruction set and number of threads") {
  for (const std::int64_t n_rows : {16 * 64 * 3 - 7, 5000}) {
    const Head head(n_rows, 640, 60, unsigned(n_rows));
    const auto w = head.packed(PackedLayout::planes);
    for (const Isa isa : available_isas()) {
      const auto full = product(w, head.x, isa, 1);
      for (const std::int64_t n_top : {1, 2, 5, 20})
        for (const int n_threads : {1, 2, 3}) {
          CAPTURE(n_rows, isa_name(isa), n_top, n_threads);
          TopLogits room(w);
          REQUIRE(is_top(top(room, w, head.x, n_top, isa, n_threads), full, n_top));
          CHECK(room.counts().n_steps == 1);
          CHECK(room.counts().n_panels_completed < room.counts().n_panels / 2);
          CHECK(room.counts().n_panels_completed >= 1);
        }
    }
  }
}

TEST_CASE("low planes of panels that are not completed are not read") {
  const Head head(6000, 320, 10, 3);
  const auto w = head.packed(PackedLayout::planes);
  std::vector<std::byte> memory(w.bytes() + 64);
  auto* const copy = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  std::memcpy(copy, w.data(), w.bytes());
  const PackedMatrix other(DType::q8_0, head.n_rows, head.n_cols, copy, nullptr, PackedLayout::planes);
  for (const Isa isa : available_isas()) {
    std::memcpy(copy, w.data(), w.bytes());
    TopLogits room(w);
    const auto got = top(room, w, head.x, 3, isa, 2);
    std::int64_t n_completed = 0;
    for (std::int64_t p = 0; p < w.n_panels(); ++p) {
      const bool is_completed = got.logits[std::size_t(16 * p)] != -infinity;
      n_completed += is_completed;
      if (!is_completed) std::memset(copy + (w.low_panel(p) - w.data()), 0x5a, w.low_stride());
    }
    CHECK(n_completed == room.counts().n_panels_completed);
    CHECK(n_completed < w.n_panels() / 2);
    const auto again = top(room, other, head.x, 3, isa, 2);
    CHECK(same_bits(got.logits, again.logits));
    CHECK(same_bits(got.block_max, again.block_max));
    CHECK(!same_bits(product(other, head.x, isa, 1).logits, product(w, head.x, isa, 1).logits));
  }
}

TEST_CASE("equal logits are all there, so that a tie goes to the lowest id, and padding never wins") {
  Head head(64 * 20 + 3, 64, 0, 4);
  for (auto& block : head.rows)
    for (auto& q : block.qs) q = std::int8_t(-std::abs(int(q)));
  for (auto& value : head.x) value = std::abs(value) + 0.1f;  // all logits are below 0, and padding gives 0
  for (const std::int64_t row : {1200, 70, 71, 1282})
    for (std::int64_t b = 0; b < 2; ++b) {
      head.block(row, b) = head.block(70, b);
      for (auto& q : head.block(row, b).qs) q = -1;
    }
  const auto w = head.packed(PackedLayout::planes);
  const auto full = product(w, head.x, available_isas().back(), 1);
  const float largest = *std::max_element(full.logits.begin(), full.logits.end());
  REQUIRE(largest < 0);
  REQUIRE(std::count(full.logits.begin(), full.logits.end(), largest) >= 3);
  for (const Isa isa : available_isas())
    for (const std::int64_t n_top : {1, 2, 3}) {
      TopLogits room(w);
      const auto got = top(room, w, head.x, n_top, isa, 2);
      CHECK(is_top(got, full, n_top));
      CHECK(std::max_element(got.logits.begin(), got.logits.end()) - got.logits.begin() ==
            std::max_element(full.logits.begin(), full.logits.end()) - full.logits.begin());
    }
}

TEST_CASE("rows with scales that are not finite are never skipped, those with negative ones neither") {
  for (const float scale : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), -0.01f}) {
    Head head(4000, 320, 10, 3);
    for (int k = 0; k < 32; ++k)
      head.block(1234, 7).qs[k] = std::int8_t(head.x[std::size_t(7 * 32 + k)] > 0 ? 100 : -100);
    head.block(1234, 7).d = f32_to_f16(scale);
    const auto w = head.packed(PackedLayout::planes);
    for (const Isa isa : available_isas()) {
      CAPTURE(scale, isa_name(isa));
      TopLogits room(w);
      const auto got = top(room, w, head.x, 1, isa, 2), full = product(w, head.x, isa, 1);
      REQUIRE(std::memcmp(&got.logits[1234], &full.logits[1234], sizeof(float)) == 0);
      CHECK(std::isfinite(got.block_max[1234 / 64]) == std::isfinite(scale));
      if (std::isfinite(scale)) CHECK(is_top(got, full, 1));
    }
  }
}

TEST_CASE("an input without a bound is left to the full product, untouched") {
  for (const float value : {infinity, std::numeric_limits<float>::quiet_NaN(), 1e30f}) {
    Head head(1000, 64, 2);
    head.x[5] = value;
    const auto w = head.packed(PackedLayout::planes);
    TopLogits room(w);
    const auto got = top(room, w, head.x, 1, available_isas().back(), 2);
    CHECK(!got.done);
    CHECK(got.logits == std::vector<float>(1000, 77.0f));
  }
}

TEST_CASE("blocks count, too, where an input is too large for a bound") {
  Head head(1000, 640, 2);
  for (std::int64_t k = 0; k < 640; ++k) head.x[std::size_t(k)] = k < 256 ? 9.9e23f : 0.0f;  // peaks: 9.9e23 and 0
  const auto w = head.packed(PackedLayout::planes);
  TopLogits room(w);
  CHECK(!top(room, w, head.x, 1, available_isas().back(), 2).done);
  for (std::int64_t k = 1; k < 256; ++k) head.x[std::size_t(k)] = 0;
  CHECK(top(room, w, head.x, 1, available_isas().back(), 2).done);
}

TEST_CASE("peaks so small that their products are rounded as a whole have no bound either") {
  Head head(1000, 64, 0);
  for (auto& value : head.x) value = 0;
  head.x[5] = -std::numeric_limits<float>::denorm_min();
  for (auto& block : head.rows)
    for (auto& q : block.qs) q = 0;
  head.block(100, 0).d = f32_to_f16(0.5f);  // logit 1 denorm_min, and a bound above it: computed first
  head.block(100, 0).qs[5] = -2;
  head.block(700, 0).d = f32_to_f16(0.25f);  // logit 2 denorm_min
  head.block(700, 0).qs[5] = -8;
  const auto w = head.packed(PackedLayout::planes);
  for (const Isa isa : available_isas()) {
    const auto full = product(w, head.x, isa, 1);
    REQUIRE(full.logits[700] > full.logits[100]);
    REQUIRE(full.logits[100] > 0);
    TopLogits room(w);
    const auto got = top(room, w, head.x, 1, isa, 2);
    CHECK(!got.done);
    CHECK(got.logits == std::vector<float>(1000, 77.0f));
  }
}

TEST_CASE("where too many panels are left, the next steps go the ordinary way, and more of them each time") {
  Head head(2000, 64, 0);
  for (auto& block : head.rows) block = head.rows[0];  // all alike: nothing can be skipped
  const auto w = head.packed(PackedLayout::planes);
  TopLogits room(w);
  CHECK(!room.begins(TopLogits::most + 1));
  std::int64_t n_left_out = 1;
  for (const std::int64_t wait : {2, 6, 14}) {
    const auto got = top(room, w, head.x, 1, available_isas().back(), 1);
    CHECK(same_bits(got.logits, product(w, head.x, available_isas().back(), 1).logits));
    for (std::int64_t i = 0; i < wait; ++i) CHECK(!room.begins(1));
    n_left_out += wait;
  }
  CHECK(room.counts().n_left_out == n_left_out);
  CHECK(room.counts().n_steps == 3);
}
