// The 16-bit lanes of every instruction set against the plain conversions, through the kernels that use them: a matrix
// of one column widens its weights, a KV cache rounds what it stores.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "vitrine/core/float16.hpp"
#include "vitrine/ops/linear.hpp"
#include "vitrine/ops/packed_matrix.hpp"
#include "vitrine/simd/dispatch.hpp"

using namespace vitrine;

namespace {

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// One head's K [4][head_dim][16 keys] and V [64 keys][head_dim], each value 0x7777 until it is written.
struct HeadBlock {
  explicit HeadBlock(std::int64_t width) : head_dim(width), values(std::size_t(2 * 64 * width), 0x7777) {}

  void store(Isa isa, DType type, std::int64_t position, std::int64_t n_tokens, const float* rows) {
    std::byte* const block = reinterpret_cast<std::byte*>(values.data());
    const AttentionCache cache{type, type, &block, 0, std::size_t(64 * head_dim) * sizeof(std::uint16_t), 0};
    kernels(isa).attention.store(cache, position, n_tokens, head_dim, rows, head_dim, rows, head_dim);
  }
  std::uint16_t k(std::int64_t token, std::int64_t d) const {
    return values[std::size_t((token / 16 * head_dim + d) * 16 + token % 16)];
  }
  std::uint16_t v(std::int64_t token, std::int64_t d) const { return values[std::size_t((64 + token) * head_dim + d)]; }

  std::int64_t head_dim;
  std::vector<std::uint16_t> values;
};

}  // namespace

TEST_CASE("all 65536 patterns of both 16-bit formats widen as the plain code says") {
  const std::int64_t n = 65536;
  std::vector<std::uint16_t> patterns(n);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = std::uint16_t(i);
  for (const DType type : {DType::f16, DType::bf16}) {
    std::vector<float> expected(n), out(n);
    const float one = 1;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      const float plain = type == DType::f16 ? f16_to_f32(patterns[i]) : bf16_to_f32(patterns[i]);
      expected[i] = std::fma(plain, one, 0.0f);
    }
    PackedMatrix matrix(type, n, 1);
    matrix.pack_panels(0, matrix.n_panels(), reinterpret_cast<const std::byte*>(patterns.data()), nullptr);
    LinearJob job;
    job.weights = matrix.panel(0);
    job.panel_bytes = matrix.panel_bytes();
    job.n_rows = job.y_stride = n;
    job.n_cols = job.n_tokens = job.x_stride = 1;
    job.x = &one;
    job.y = out.data();
    for (const Isa isa : available_isas()) {
      CAPTURE(isa_name(isa), dtype_info(type).name);
      const LinearForms& forms = linear_forms(kernels(isa).linear, type);
      for (const LinearKernel kernel : {forms.one_token, forms.many_tokens}) {
        out.assign(n, -1.0f);
        kernel(job, 0, matrix.n_panels());
        CHECK(same_bytes(out, expected));
      }
    }
  }
}

TEST_CASE("floats around every 16-bit value round as the plain code says") {
  // Each representable value, the ties half-way to its neighbours, and the floats beside those.
  const std::int64_t head_dim = 64, n_block = 64 * head_dim;
  std::vector<float> in;
  for (std::uint32_t i = 0; i < 65536; ++i)
    for (const std::uint32_t bits : {std::uint32_t(float_to_bits(f16_to_f32(std::uint16_t(i)))), i << 16})
      for (const std::int32_t step : {0, 1, -1, 0x1000, 0xfff, 0x1001, 0x7fff, 0x8000, 0x8001, 0x20000000})
        in.push_back(bits_to_float(bits + std::uint32_t(step)));
  REQUIRE(in.size() % std::size_t(n_block) == 0);
  for (const DType type : {DType::f16, DType::bf16})
    for (const Isa isa : available_isas()) {
      CAPTURE(isa_name(isa), dtype_info(type).name);
      std::int64_t n_wrong = 0;
      HeadBlock block(head_dim);
      for (std::size_t begin = 0; begin < in.size(); begin += std::size_t(n_block)) {
        const float* const rows = in.data() + begin;
        block.store(isa, type, 0, 64, rows);
        for (std::int64_t i = 0; i < n_block; ++i) {
          const std::uint16_t expected = type == DType::f16 ? f32_to_f16(rows[i]) : f32_to_bf16(rows[i]);
          n_wrong += block.k(i / head_dim, i % head_dim) != expected;
          n_wrong += block.v(i / head_dim, i % head_dim) != expected;
        }
      }
      CHECK(n_wrong == 0);
    }
}

TEST_CASE("rows of every length are stored, and nothing beside them is touched") {
  std::vector<float> rows(std::size_t(64 * 40));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = float(i) * 0.25f - 3.0f;
  for (const Isa isa : available_isas())
    for (std::int64_t head_dim = 1; head_dim <= 40; ++head_dim)
      for (const std::int64_t n_tokens : {1, 5, 16, 33}) {
        CAPTURE(isa_name(isa), head_dim, n_tokens);
        const std::int64_t first = 7;
        HeadBlock block(head_dim);
        block.store(isa, DType::f16, first, n_tokens, rows.data());
        std::int64_t n_wrong = 0;
        for (std::int64_t t = 0; t < 64; ++t)
          for (std::int64_t d = 0; d < head_dim; ++d) {
            const bool stored = t >= first && t < first + n_tokens;
            const std::uint16_t expected =
                stored ? f32_to_f16(rows[std::size_t((t - first) * head_dim + d)]) : std::uint16_t(0x7777);
            n_wrong += (block.k(t, d) != expected) + (block.v(t, d) != expected);
          }
        CHECK(n_wrong == 0);
      }
}

TEST_CASE("kernels that multiply tiles leave the shapes of the host program's tiles as they were") {
#if defined(__x86_64__)
  if (std::string_view(isa_name(available_isas().back())) != "avx512amx") return;
  struct alignas(64) Shapes {
    std::uint8_t bytes[64] = {};
    bool operator==(const Shapes&) const = default;
  };
  Shapes host, after;
  host.bytes[0] = 1;                                        // palette
  for (int i = 0; i < 8; ++i) host.bytes[16 + 2 * i] = 12;  // bytes of a row
  for (int i = 0; i < 8; ++i) host.bytes[48 + i] = 7;       // rows
  const std::int64_t n = 64;
  PackedMatrix matrix(DType::q8_0, n, n);
  const std::vector<std::byte> zeros(matrix.bytes());
  matrix.pack_panels(0, matrix.n_panels(), zeros.data(), nullptr);
  const std::vector<float> x(std::size_t(n * n), 1.0f);
  std::vector<float> y(x.size());
  LinearInput input;
  input.reserve(n, n);
  const KernelTable& table = kernels(available_isas().back());
  REQUIRE(table.linear.takes_tiles(n));
  OwnWorker worker;
  __asm__ volatile("ldtilecfg %0" ::"m"(host));
  input.prepare(worker, table, {x.data(), {n, n}}, {&matrix});
  linear(worker, table, matrix, input, {y.data(), {n, n}});
  __asm__ volatile("sttilecfg %0" : "=m"(after));
  __asm__ volatile("tilerelease");
  CHECK(after == host);
#endif
}
