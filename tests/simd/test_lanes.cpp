// The lanes of every instruction set against the plain conversions and sums.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "vitrine/core/float16.hpp"
#include "vitrine/simd/dispatch.hpp"

using namespace vitrine;

namespace {

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace

TEST_CASE("all 65536 patterns of both 16-bit formats widen as the plain code says") {
  const std::size_t n = 65536;
  std::vector<std::uint16_t> in(n);
  std::vector<float> f16(n), bf16(n), out(n);
  for (std::size_t i = 0; i < n; ++i) {
    in[i] = std::uint16_t(i);
    f16[i] = f16_to_f32(in[i]);
    bf16[i] = bf16_to_f32(in[i]);
  }
  for (const Isa isa : available_isas()) {
    CAPTURE(isa_name(isa));
    kernels(isa).convert.f16_to_f32(in.data(), out.data(), std::int64_t(n));
    CHECK(same_bytes(out, f16));
    kernels(isa).convert.bf16_to_f32(in.data(), out.data(), std::int64_t(n));
    CHECK(same_bytes(out, bf16));
  }
}

TEST_CASE("floats around every 16-bit value round as the plain code says") {
  // Each representable value, the ties half-way to its neighbours, and the floats beside those.
  std::vector<float> in;
  for (std::uint32_t i = 0; i < 65536; ++i)
    for (const std::uint32_t bits : {std::uint32_t(float_to_bits(f16_to_f32(std::uint16_t(i)))), i << 16})
      for (const std::int32_t step : {0, 1, -1, 0x1000, 0xfff, 0x1001, 0x7fff, 0x8000, 0x8001, 0x20000000})
        in.push_back(bits_to_float(bits + std::uint32_t(step)));
  std::vector<std::uint16_t> f16(in.size()), bf16(in.size()), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    f16[i] = f32_to_f16(in[i]);
    bf16[i] = f32_to_bf16(in[i]);
  }
  for (const Isa isa : available_isas()) {
    CAPTURE(isa_name(isa));
    kernels(isa).convert.f32_to_f16(in.data(), out.data(), std::int64_t(in.size()));
    CHECK(same_bytes(out, f16));
    kernels(isa).convert.f32_to_bf16(in.data(), out.data(), std::int64_t(in.size()));
    CHECK(same_bytes(out, bf16));
  }
}

TEST_CASE("tails of every length are converted, and nothing beside them is touched") {
  for (const Isa isa : available_isas())
    for (std::int64_t n = 0; n <= 40; ++n) {
      CAPTURE(isa_name(isa), n);
      std::vector<float> in(41), back(44, -1.0f);
      std::vector<std::uint16_t> mid(44, 0x7777);
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = float(i) * 0.25f - 3.0f;
      kernels(isa).convert.f32_to_f16(in.data() + 1, mid.data() + 1, n);
      CHECK(mid[0] == 0x7777);
      CHECK(mid[std::size_t(n) + 1] == 0x7777);
      kernels(isa).convert.f16_to_f32(mid.data() + 1, back.data() + 1, n);
      CHECK(back[0] == -1.0f);
      CHECK(back[std::size_t(n) + 1] == -1.0f);
      CHECK(std::memcmp(back.data() + 1, in.data() + 1, std::size_t(n) * sizeof(float)) == 0);
    }
}

TEST_CASE("a sum is taken in sixteen lanes and a tree on every instruction set") {
  std::vector<float> in(100);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = std::sin(float(i)) * std::exp2(float(i % 13));
  for (const std::size_t n : {std::size_t(0), std::size_t(1), std::size_t(15), std::size_t(16), std::size_t(17),
                              std::size_t(31), std::size_t(64), std::size_t(100)}) {
    float lanes[16] = {};
    for (std::size_t i = 0; i < n; ++i) lanes[i % 16] += in[i];
    for (int step = 8; step > 0; step /= 2)
      for (int i = 0; i < step; ++i) lanes[i] += lanes[i + step];
    for (const Isa isa : available_isas()) {
      CAPTURE(isa_name(isa), n);
      const float got = kernels(isa).convert.sum(in.data(), std::int64_t(n));
      CHECK(std::memcmp(&got, lanes, sizeof got) == 0);
    }
  }
}
