// Quantised keys and values: what is stored, read back from the layout by plain code, against the reference.
#include <catch2/catch.hpp>
#include <cmath>

#include "attention_case.hpp"
#include "vitrine/cache/kv_layout.hpp"
#include "vitrine/ops/reference.hpp"

using namespace vitrine;
using namespace attention_test;

namespace {

float scale_at(const std::byte* scales, std::int64_t index) {
  std::uint16_t bits;
  std::memcpy(&bits, scales + 2 * index, 2);
  return bf16_to_f32(bits);
}
float nibble_of(const std::byte* byte, bool high) { return float(int(*byte) >> (high ? 4 : 0) & 15) - 8; }
float signed_byte(const std::byte* byte) { return float(std::int8_t(*byte)); }

// Values [head_dim] of one token and head, by the description in simd/kv_format.hpp.
std::vector<float> key_at(const KvView& cache, std::int64_t position, std::int64_t head) {
  const std::int64_t slot = position % 64, panel = slot / 16, lane = slot % 16, n = cache.head_dim;
  const bool int8 = cache.types.k == DType::int8;
  const std::int64_t per_row = int8 ? 4 : 8, n_rows = (n + per_row - 1) / per_row, n_groups = int8 ? 1 : (n + 31) / 32;
  const std::byte* data = cache.k(position / 64, head);
  const std::byte* scales = data + 4 * n_rows * 64;
  std::vector<float> out;
  for (std::int64_t d = 0; d < n; ++d) {
    const std::byte* byte = data + (panel * n_rows + d / per_row) * 64 + lane * 4 + d % 4;
    const float scale = scale_at(scales, (panel * n_groups + (int8 ? 0 : d / 32)) * 16 + lane);
    out.push_back((int8 ? signed_byte(byte) : nibble_of(byte, d % 8 >= 4)) * scale);
  }
  return out;
}
std::vector<float> value_at(const KvView& cache, std::int64_t position, std::int64_t head) {
  const std::int64_t slot = position % 64, n = cache.head_dim;
  const bool int8 = cache.types.v == DType::int8;
  const std::int64_t stride = int8 ? (n + 15) / 16 * 16 : (n + 31) / 32 * 16;
  const std::byte* data = cache.v(position / 64, head);
  std::vector<float> out;
  for (std::int64_t d = 0; d < n; ++d) {
    const std::byte* byte = data + slot * stride + (int8 ? d : d / 32 * 16 + d % 16);
    const float scale = scale_at(data + 64 * stride, (int8 ? 0 : d / 32) * 64 + slot);
    out.push_back((int8 ? signed_byte(byte) : nibble_of(byte, d % 32 >= 16)) * scale);
  }
  return out;
}

std::vector<float> stored(DType type, const float* x, std::int64_t n) {
  std::vector<float> out(std::size_t(n), 0.0f);
  reference::stored(type, {x, std::size_t(n)}, out);
  return out;
}

constexpr DType quantised_types[] = {DType::int8, DType::int4};

// k = v = x [n_tokens, head_dim], one head, from position pos0 on.
void store(const ScatteredCache& cache, const Tensor<float, 2>& x, std::int64_t pos0,
           Isa isa = available_isas().back()) {
  Team(1).run([&](Worker& worker) { store_kv(worker, kernels(isa), cache.view(), pos0, x.view(), x.view()); });
}

}  // namespace

TEST_CASE("KV types: names, sizes, and what no cache holds") {
  CHECK(KvTypes(DType::int8).name() == "INT8");
  CHECK(KvTypes(DType::int8, DType::int4).name() == "INT8/INT4");
  CHECK(KvTypes() == KvTypes(DType::f16));
  CHECK(KvTypes(DType::int8, DType::int4).known());
  CHECK_FALSE(KvTypes(DType::q8_0).known());
  CHECK_FALSE(KvTypes(DType::f16, DType(77)).known());
  const auto per_token = [](KvTypes types, std::int64_t head_dim) {
    return double(KvLayout{types, 1, 1, head_dim}.block_bytes()) / 64;
  };
  CHECK(per_token(DType::f16, 64) == 256);
  CHECK(per_token(DType::int8, 64) == 2 * (64 + 2));
  CHECK(per_token(DType::int4, 64) == 2 * (32 + 2 * 2));
  CHECK(per_token({DType::int8, DType::int4}, 256) == 256 + 2 + 128 + 8 * 2);
  CHECK(per_token(DType::int8, 100) == (100 + 2) + (112 + 2));       // V in whole vectors
  CHECK(per_token(DType::int4, 80) == (40 + 3 * 2) + (48 + 3 * 2));  // V in whole groups
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::int8, DType::int4}) {
    for (std::int64_t head_dim = 2; head_dim <= 256; head_dim += 2) {  // every part begins with a cache line
      REQUIRE(kv_key_bytes(type, head_dim) % 64 == 0);
      REQUIRE(kv_value_bytes(type, head_dim) % 64 == 0);
    }
  }
}

TEST_CASE("store_kv quantises as the reference does, from every instruction set, and touches nothing else") {
  for (const DType k_type : quantised_types) {
    for (const DType v_type : quantised_types) {
      for (const std::int64_t head_dim : {2, 16, 20, 32, 64, 80, 96, 100, 128, 256}) {
        const std::int64_t n_kv_head = 2, n_tokens = 85, pos0 = 55;
        INFO(KvTypes(k_type, v_type).name() << ", width " << head_dim);
        const auto k = random_matrix(n_tokens, n_kv_head * head_dim, 1, 5);
        const auto v = random_matrix(n_tokens, n_kv_head * head_dim, 2, 0.01f);
        const auto filled = [&](Isa isa, int n_threads) {
          ScatteredCache cache({k_type, v_type}, n_kv_head, head_dim, 192, 9);
          Team(n_threads).run(
              [&](Worker& worker) { store_kv(worker, kernels(isa), cache.view(), pos0, k.view(), v.view()); });
          return cache;
        };
        const auto cache = filled(available_isas().back(), 2);
        for (const Isa isa : available_isas()) {
          const auto other = filled(isa, 1);
          CHECK(std::memcmp(cache.memory().data(), other.memory().data(), cache.memory().size()) == 0);
        }
        for (std::int64_t position = 0; position < 192; ++position) {
          const std::int64_t t = position - pos0;
          for (std::int64_t head = 0; head < n_kv_head; ++head) {
            const auto key = key_at(cache.view(), position, head), value = value_at(cache.view(), position, head);
            if (t >= 0 && t < n_tokens) {
              REQUIRE(key == stored(k_type, &k(t, head * head_dim), head_dim));
              REQUIRE(value == stored(v_type, &v(t, head * head_dim), head_dim));
            } else {
              for (const float x : key) REQUIRE(std::isnan(x));
              for (const float x : value) REQUIRE(std::isnan(x));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a quantised value is within half a step, whatever else is in its head") {
  for (const DType type : quantised_types) {
    const std::int64_t head_dim = 96, group = type == DType::int8 ? head_dim : 32;
    auto x = random_matrix(64, head_dim, 3, 1);
    for (std::int64_t t = 0; t < 64; ++t) {
      x(t, t) = t % 2 == 0 ? 1e4f : -1e4f;
      for (std::int64_t d = 64; d < 96 && t < 8; ++d) x(t, d) = 0;
    }
    ScatteredCache cache(type, 1, head_dim, 64, 1);
    store(cache, x, 0);
    for (std::int64_t t = 0; t < 64; ++t) {
      const auto key = key_at(cache.view(), t, 0), value = value_at(cache.view(), t, 0);
      CHECK(key == value);
      for (std::int64_t g = 0; g < head_dim; g += group) {
        float peak = 0;
        for (std::int64_t d = g; d < g + group; ++d) peak = std::fmax(peak, std::fabs(x(t, d)));
        const float step = peak / (type == DType::int8 ? 127 : 8) * (1 + 1.0f / 128);  // the scale is rounded up
        for (std::int64_t d = g; d < g + group; ++d) {
          // INT4 has one step less on one side.
          const float bound = type == DType::int8 || std::fabs(x(t, d)) < peak * 7 / 8 ? step / 2 : step;
          REQUIRE(std::fabs(key[std::size_t(d)] - x(t, d)) <= bound * 1.0001f);
          if (peak == 0) REQUIRE(float_to_bits(key[std::size_t(d)]) == 0u);
        }
      }
    }
  }
}

TEST_CASE("quantised caches: zeros stay exact zeros, NaN and infinity do not get lost") {
  for (const DType type : quantised_types) {
    for (const Isa isa : available_isas()) {
      const AttentionShape shape{1, 1, 64, 0, 0.125f};
      const auto attend = [&](float k_value, float v_value) {
        ScatteredCache cache(type, 1, 64, 3, 3);
        Tensor<float, 2> q({3, 64}), k({3, 64}), v({3, 64}), out({3, 64});
        for (std::int64_t d = 0; d < 64; ++d) q(2, d) = 1;
        k(1, 5) = k_value, v(1, 5) = v_value;
        AttentionScratch scratch;
        scratch.reserve(shape, 3, 3, 1);
        Team(1).run([&](Worker& worker) {
          store_kv(worker, kernels(isa), cache.view(), 0, k.view(), v.view());
          attention(worker, kernels(isa), shape, q.view(), cache.view(), 0, out.view(), scratch);
        });
        return out;
      };
      const auto zeros = attend(0, 0);
      for (std::int64_t d = 0; d < 64; ++d) REQUIRE(float_to_bits(zeros(2, d)) == 0u);
      CHECK(attend(0, 1e-44f)(2, 5) == 0);  // too small for a scale
      CHECK(attend(0, 3)(2, 5) == Approx(1).epsilon(0.01));
      CHECK(attend(1e4f, 3)(2, 5) == Approx(3).epsilon(0.01));
      for (const float bad : {std::nanf(""), -std::nanf(""), INFINITY, -INFINITY}) {
        CHECK_FALSE(std::isfinite(attend(0, bad)(2, 5)));
        CHECK_FALSE(std::isfinite(attend(bad, 1)(2, 5)));
      }
    }
  }
}

TEST_CASE("quantised caches are read as they are: the scratch of a thread does not grow with the context") {
  const AttentionShape shape{9, 3, 64, 0, 0.125f};
  AttentionScratch few, many;
  few.reserve(shape, 256, 300, 1);
  many.reserve(shape, 256, 100000, 1);
  CHECK(few.thread_floats() == many.thread_floats());
}
