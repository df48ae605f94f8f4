// Attention against the reference, and bit for bit across chunks, threads, instruction sets and block tables.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "attention_case.hpp"
#include "support/models.hpp"
#include "vitrine/ops/reference.hpp"

using namespace vitrine;
using namespace attention_test;

namespace {

AttentionShape shape_of(std::int64_t n_head, std::int64_t n_kv_head, std::int64_t head_dim, std::int64_t window = 0) {
  return {n_head, n_kv_head, head_dim, window, 1.0f / std::sqrt(float(head_dim))};
}

AttentionShape with_sinks(AttentionShape shape, std::int64_t sinks) {
  shape.sinks = sinks;
  return shape;
}

// Every head of x as a cache of this type gives it back.
Tensor<float, 2> stored(const Tensor<float, 2>& x, DType type, std::int64_t head_dim) {
  Tensor<float, 2> out(x.shape());
  for (std::int64_t i = 0; i < x.view().count(); i += head_dim) {
    reference::stored(type, {x.data() + i, std::size_t(head_dim)}, {out.data() + i, std::size_t(head_dim)});
  }
  return out;
}

Tensor<float, 2> expected(const AttentionCase& c, const Numbers& numbers) {
  const auto head_dim = c.shape.head_dim;
  Tensor<float, 2> out(numbers.q.shape());
  const auto query = [&](const Tensor<float, 2>& x) {
    Tensor<float, 2> q(x.shape());
    for (std::int64_t i = 0; i < q.view().count(); i += head_dim) {
      const std::span<const float> head(x.data() + i, std::size_t(head_dim));
      reference::query(c.types.k, head, {q.data() + i, std::size_t(head_dim)});
    }
    return q;
  };
  reference::attention(c.shape, query(numbers.q).view(), stored(numbers.k, c.types.k, head_dim).view(),
                       stored(numbers.v, c.types.v, head_dim).view(), c.pos0, out.view(), query(numbers.q_sink).view());
  return out;
}

double worst_difference(const Tensor<float, 2>& a, const Tensor<float, 2>& b) {
  double worst = 0;
  for (std::int64_t i = 0; i < a.view().count(); ++i) {
    const double difference = std::fabs(double(a.data()[i]) - double(b.data()[i]));
    if (!(difference <= worst)) worst = difference;  // NaN too
  }
  return worst;
}

std::vector<std::int64_t> whole(const AttentionCase& c) { return {0, c.n_tokens}; }

std::vector<std::int64_t> steps(const AttentionCase& c, std::int64_t size) {
  std::vector<std::int64_t> cuts;
  for (std::int64_t t = 0; t < c.n_tokens; t += size) cuts.push_back(t);
  cuts.push_back(c.n_tokens);
  return cuts;
}

std::vector<std::int64_t> random_cuts(const AttentionCase& c, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int64_t> cuts{0};
  while (cuts.back() < c.n_tokens) {
    cuts.push_back((std::min)(c.n_tokens, cuts.back() + 1 + std::int64_t(random() % 40)));
  }
  return cuts;
}

std::string describe(const AttentionCase& c) {
  return concat(c.shape.n_head, " heads, ", c.shape.n_kv_head, " kv, width ", c.shape.head_dim, ", window ",
                c.shape.window, ", sinks ", c.shape.sinks, ", ", c.types.name(), ", positions ", c.pos0, " + ",
                c.n_tokens);
}

// Every width; multi-head, grouped and multi-query; windows; far positions.
std::vector<AttentionCase> cases() {
  std::vector<AttentionCase> all;
  for (const std::int64_t head_dim : {2, 16, 20, 32, 64, 80, 96, 100, 128, 256}) {
    all.push_back({shape_of(3, 1, head_dim), DType::f32, 0, 37});
    all.push_back({shape_of(4, 4, head_dim), DType::f16, 250, 23});
    all.push_back({shape_of(4, 2, head_dim, 50), DType::bf16, 300, 70});
    all.push_back({shape_of(3, 1, head_dim), DType::int8, 0, 37});
    all.push_back({shape_of(4, 2, head_dim, 50), DType::int4, 300, 70});
    all.push_back({shape_of(9, 1, head_dim), {DType::int8, DType::int4}, 250, 23});
  }
  all.push_back({shape_of(9, 3, 64), DType::f16, 0, 300});
  all.push_back({shape_of(4, 1, 256, 512), DType::f16, 700, 40});
  all.push_back({shape_of(14, 2, 64), DType::f16, 1000, 30});
  all.push_back({shape_of(20, 1, 32), DType::bf16, 100, 20});
  all.push_back({shape_of(64, 1, 16), DType::f16, 40, 5});
  all.push_back({shape_of(2, 2, 64, 1), DType::f32, 255, 20});
  all.push_back({shape_of(2, 1, 64, 16), DType::f32, 500, 60});
  all.push_back({shape_of(6, 2, 64), DType::f16, 5000, 17});
  all.push_back({shape_of(6, 2, 64, 257), DType::f16, 5000, 50});
  const DType types[] = {DType::f32, DType::f16, DType::bf16, DType::int8, DType::int4};
  for (const DType k : types) {
    for (const DType v : types) all.push_back({shape_of(6, 2, 80, 200), {k, v}, 480, 40});
  }
  for (const DType type : {DType::f16, DType::int8, DType::int4}) {  // windows with sinks
    all.push_back({with_sinks(shape_of(9, 3, 64, 30), 4), type, 0, 90});
    all.push_back({with_sinks(shape_of(4, 1, 80, 300), 100), type, 700, 40});
  }
  all.push_back({with_sinks(shape_of(2, 2, 32, 1), 256), DType::f32, 0, 300});
  all.push_back({with_sinks(shape_of(3, 1, 64, 600), 4), DType::f16, 3000, 20});
  all.push_back({with_sinks(shape_of(3, 1, 64, 50), 4), DType::bf16, 510, 60});
  for (const DType type : {DType::int8, DType::int4}) {
    all.push_back({shape_of(9, 3, 64), type, 0, 300});
    all.push_back({shape_of(4, 1, 256, 512), type, 700, 40});
    all.push_back({shape_of(64, 1, 16), type, 40, 5});
    all.push_back({shape_of(2, 2, 64, 1), type, 255, 20});
    all.push_back({shape_of(2, 1, 64, 16), type, 500, 60});
    all.push_back({shape_of(9, 3, 64), type, 5000, 17});
  }
  return all;
}

}  // namespace

TEST_CASE("attention agrees with the reference") {
  for (const AttentionCase& c : cases()) {
    const Numbers numbers(c);
    const auto want = expected(c, numbers);
    INFO(describe(c));
    CHECK(worst_difference(run(c, numbers, available_isas().back(), 2, whole(c)), want) < 3e-6);
    CHECK(worst_difference(run(c, numbers, available_isas().back(), 2, steps(c, 1)), want) < 3e-6);
  }
}

TEST_CASE("attention: chunks, threads, instruction sets and block tables change no bit") {
  for (const AttentionCase& c : cases()) {
    const Numbers numbers(c);
    INFO(describe(c));
    const auto first = run(c, numbers, available_isas().back(), 1, whole(c));
    for (const Isa isa : available_isas()) {
      INFO(isa_name(isa));
      CHECK(same_bits(first, run(c, numbers, isa, 1, whole(c))));
      CHECK(same_bits(first, run(c, numbers, isa, 2, steps(c, 1), 77)));
      if (isa == Isa::scalar || support::is_sanitized) continue;  // slow
      CHECK(same_bits(first, run(c, numbers, isa, 1, steps(c, 1), 78)));
      CHECK(same_bits(first, run(c, numbers, isa, 3, whole(c))));
      for (const std::int64_t size : {2, 7, 16}) CHECK(same_bits(first, run(c, numbers, isa, 3, steps(c, size))));
      for (unsigned seed = 0; seed < 4; ++seed) {
        CHECK(same_bits(first, run(c, numbers, isa, int(seed) % 3 + 1, random_cuts(c, seed), seed)));
      }
    }
  }
}

TEST_CASE("attention: 20 random splits and every chunk size of a 40-token prompt") {
  const AttentionCase c{shape_of(9, 3, 64), DType::f16, 0, 40};
  const Numbers numbers(c);
  const Isa isa = available_isas().back();
  const auto first = run(c, numbers, isa, 2, whole(c));
  for (std::int64_t size = 1; size <= 40; ++size) CHECK(same_bits(first, run(c, numbers, isa, 2, steps(c, size))));
  for (unsigned seed = 0; seed < 20; ++seed) CHECK(same_bits(first, run(c, numbers, isa, 2, random_cuts(c, seed))));
}

// A row's numbers never depend on its company: here, other sequences attended to between the same two barriers.
TEST_CASE("attention: several sequences in a row share the scratch without a barrier") {
  std::vector<AttentionCase> batch;
  for (const std::int64_t length : {600, 1, 300, 2000, 257, 256, 1025, 90, 700}) {
    batch.push_back({shape_of(4, 1, 64), DType::f16, length, 1});
  }
  batch.push_back({shape_of(4, 1, 64), DType::f16, 300, 200});
  batch.push_back({shape_of(4, 1, 64), DType::f16, 1500, 3});
  std::vector<Numbers> numbers;
  std::vector<ScatteredCache> caches;
  std::vector<Tensor<float, 2>> alone, together;
  AttentionScratch scratch;
  scratch.reserve(batch[0].shape, 200, 2100, 3);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    numbers.emplace_back(batch[i], unsigned(i) * 10);
    alone.push_back(run(batch[i], numbers[i], available_isas().back(), 1, whole(batch[i])));
    together.emplace_back(alone[i].shape());
    caches.emplace_back(batch[i].types, 1, 64, batch[i].pos0 + batch[i].n_tokens, unsigned(i));
  }
  const auto isas = available_isas();
  for (int repetition = 0; repetition < (support::is_sanitized ? 3 : 30); ++repetition) {
    const KernelTable& table = kernels(isas[std::size_t(repetition / 3) % isas.size()]);
    Team team(1 + repetition % 3);
    team.run([&](Worker& worker) {
      for (std::size_t i = 0; i < batch.size(); ++i) {
        store_kv(worker, table, caches[i].view(), 0, numbers[i].k.view(), numbers[i].v.view());
      }
      worker.sync();
      for (std::size_t i = 0; i < batch.size(); ++i) {
        attention(worker, table, batch[i].shape, numbers[i].q.view(), caches[i].view(), batch[i].pos0,
                  together[i].view(), scratch);
      }
    });
    for (std::size_t i = 0; i < batch.size(); ++i) {
      INFO("sequence " << i << ", repetition " << repetition);
      CHECK(same_bits(alone[i], together[i]));
      std::memset(together[i].data(), 0, sizeof(float) * std::size_t(together[i].view().count()));
    }
  }
}

TEST_CASE("attention: a query that sees no key gets exact zeros, its neighbours are unchanged") {
  const AttentionCase c{shape_of(2, 1, 32), DType::f16, 0, 5};
  const Numbers numbers(c);
  for (const Isa isa : available_isas()) {
    for (const int n_threads : {1, 2}) {
      const auto want = run(c, numbers, isa, 1, whole(c));
      ScatteredCache cache(c.types, 1, 32, 5, 1);
      Tensor<float, 2> q({8, 64}), out({8, 64});
      std::copy_n(numbers.q.data(), 5 * 64, q.data() + 3 * 64);
      std::memset(out.data(), 0xff, 8 * 64 * sizeof(float));
      AttentionScratch scratch;
      scratch.reserve(c.shape, 8, 8, n_threads);
      Team(n_threads).run([&](Worker& worker) {
        store_kv(worker, kernels(isa), cache.view(), 0, numbers.k.view(), numbers.v.view());
        worker.sync();
        attention(worker, kernels(isa), c.shape, q.view(), cache.view(), -3, out.view(), scratch);
      });
      for (std::int64_t i = 0; i < 3 * 64; ++i) REQUIRE(float_to_bits(out.data()[i]) == 0u);
      CHECK(std::memcmp(out.data() + 3 * 64, want.data(), 5 * 64 * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("attention: a query that sees all by window and sinks sees what one without a window does") {
  AttentionCase c{with_sinks(shape_of(4, 2, 64, 40), 10), DType::f16, 0, 50};
  Numbers numbers(c);
  numbers.q_sink = random_matrix(50, 4 * 64, 1, 2.0f);  // as q: up to here nothing lies between sinks and window
  REQUIRE(same_bits(numbers.q, numbers.q_sink));
  const auto limited = expected(c, numbers);
  const auto with = run(c, numbers, available_isas().back(), 2, whole(c));
  c.shape = shape_of(4, 2, 64);
  CHECK(worst_difference(limited, expected(c, numbers)) == 0);
  CHECK(worst_difference(with, expected(c, numbers)) < 3e-6);
  CHECK_FALSE(same_bits(with, run(c, numbers, available_isas().back(), 2, whole(c))));  // the sinks are summed apart
  CHECK(c.shape.sink_position(49) == 49);
}

TEST_CASE("attention: sinks want a window and a second query") {
  const AttentionShape good = with_sinks(shape_of(1, 1, 16, 8), 4);
  CHECK(good.sink_position(11) == 11);
  CHECK(good.sink_position(12) == 11);
  CHECK(good.sink_position(1000) == 11);
  for (const auto& [shape, second] : {std::pair(good, false), std::pair(with_sinks(shape_of(1, 1, 16), 4), true),
                                      std::pair(with_sinks(shape_of(1, 1, 16, 8), 257), true),
                                      std::pair(with_sinks(shape_of(1, 1, 16, 8), -1), true)}) {
    ScatteredCache cache(DType::f16, 1, 16, 1, 1);
    Tensor<float, 2> q({1, 16}), out({1, 16});
    AttentionScratch scratch;
    scratch.reserve(good, 1, 1, 1);
    const auto second_query = second ? std::as_const(q).view() : TensorView<const float, 2>();
    Team(1).run([&, &s = shape](Worker& worker) {
      CHECK_THROWS_AS(attention(worker, kernels(), s, q.view(), cache.view(), 0, out.view(), scratch, second_query),
                      Error);
    });
  }
}

TEST_CASE("attention: one key is its value, equal keys are the mean") {
  AttentionShape shape = shape_of(1, 1, 2);
  for (const Isa isa : available_isas()) {
    ScatteredCache cache(DType::f32, 1, 2, 600, 3);
    Tensor<float, 2> q({600, 2}), k({600, 2}), v({600, 2}), out({600, 2});
    for (std::int64_t t = 0; t < 600; ++t) v(t, 0) = float(t), v(t, 1) = 1;
    AttentionScratch scratch;
    scratch.reserve(shape, 600, 600, 1);
    Team(1).run([&](Worker& worker) {
      store_kv(worker, kernels(isa), cache.view(), 0, k.view(), v.view());
      attention(worker, kernels(isa), shape, q.view(), cache.view(), 0, out.view(), scratch);
    });
    for (std::int64_t t = 0; t < 600; ++t) {
      REQUIRE(out(t, 0) == float(t) / 2);  // mean of 0 .. t: every step of it is exact
      REQUIRE(out(t, 1) == 1.0f);
    }
  }
}

TEST_CASE("attention: huge scores do not overflow, distant ones vanish") {
  AttentionShape shape{1, 1, 2, 0, 1.0f};
  for (const Isa isa : available_isas()) {
    ScatteredCache cache(DType::f32, 1, 2, 300, 3);
    Tensor<float, 2> q({300, 2}), k({300, 2}), v({300, 2}), out({300, 2});
    for (std::int64_t t = 0; t < 300; ++t) q(t, 0) = 1e15f, k(t, 0) = float(t) * 1e15f, v(t, 0) = float(t);
    AttentionScratch scratch;
    scratch.reserve(shape, 300, 300, 1);
    Team(1).run([&](Worker& worker) {
      store_kv(worker, kernels(isa), cache.view(), 0, k.view(), v.view());
      attention(worker, kernels(isa), shape, q.view(), cache.view(), 0, out.view(), scratch);
    });
    for (std::int64_t t = 0; t < 300; ++t) REQUIRE(out(t, 0) == float(t));  // the last key wins outright
  }
}

TEST_CASE("store_kv rounds to nearest even and touches nothing else") {
  const auto isa = GENERATE(from_range(available_isas()));
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t head_dim : {2, 20, 64}) {
      const std::int64_t n_kv_head = 2, n_tokens = 85, pos0 = 55;
      ScatteredCache cache(type, n_kv_head, head_dim, 192, 9), untouched(type, n_kv_head, head_dim, 192, 9);
      const auto k = random_matrix(n_tokens, n_kv_head * head_dim, 1, 5),
                 v = random_matrix(n_tokens, n_kv_head * head_dim, 2, 5);
      Team(2).run([&](Worker& worker) { store_kv(worker, kernels(isa), cache.view(), pos0, k.view(), v.view()); });
      const std::size_t size = dtype_info(type).block_bytes;
      const auto same = [&](const std::byte* place, float value) {
        const std::uint32_t f32 = float_to_bits(value);
        const std::uint16_t narrow = type == DType::f16 ? f32_to_f16(value) : f32_to_bf16(value);
        return size == 4 ? std::memcmp(place, &f32, 4) == 0 : std::memcmp(place, &narrow, 2) == 0;
      };
      const std::uint32_t nan = 0xffffffffu;
      for (std::int64_t position = 0; position < 192; ++position) {
        const bool written = position >= pos0 && position < pos0 + n_tokens;
        for (std::int64_t head = 0; head < n_kv_head; ++head) {
          const std::byte* kb = cache.view().k(position / 64, head);
          const std::byte* vb = cache.view().v(position / 64, head);
          const std::int64_t slot = position % 64;
          for (std::int64_t d = 0; d < head_dim; ++d) {
            const std::byte* kp = kb + std::size_t((slot / 16 * head_dim + d) * 16 + slot % 16) * size;
            const std::byte* vp = vb + std::size_t(slot * head_dim + d) * size;
            if (written) {
              REQUIRE(same(kp, k(position - pos0, head * head_dim + d)));
              REQUIRE(same(vp, v(position - pos0, head * head_dim + d)));
            } else {
              REQUIRE(std::memcmp(kp, &nan, size) == 0);
              REQUIRE(std::memcmp(vp, &nan, size) == 0);
            }
          }
        }
      }
    }
  }
}
