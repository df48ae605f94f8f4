// The linear layer straight from its definition (simd/linear_kernels.hpp), in plain scalar code on the file's own rows,
// and random matrices to try it on.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "vitrine/core/block_decode.hpp"
#include "vitrine/core/dtype.hpp"
#include "vitrine/core/float16.hpp"

namespace linear_oracle {

using namespace vitrine;

// One block of one row: w = d * weight[k] + m * min[k], all integers but d and m.
struct IntegerBlock {
  int weight[256] = {}, min[256] = {};
  float d = 0, m = 0;
  bool has_min = false;
};

template <class Block>
Block read_block(const std::byte* bytes) {
  Block block;
  std::memcpy(&block, bytes, sizeof block);
  return block;
}

inline IntegerBlock integer_block(DType type, const std::byte* bytes) {
  IntegerBlock out;
  const auto nibble = [](const std::uint8_t* qs, int k) { return k < 16 ? qs[k] & 15 : qs[k - 16] >> 4; };
  const auto fifth = [](const std::uint8_t* qh, int k) { return (qh[k / 8] >> (k % 8) & 1) * 16; };
  const auto k_block = [&](const auto& b, const std::uint8_t* qh) {
    out.d = f16_to_f32(b.d);
    out.m = -f16_to_f32(b.dmin);
    out.has_min = true;
    for (int k = 0; k < 256; ++k) {
      const int j = k / 32, i = k % 32;
      const int q = (b.qs[32 * (j / 2) + i] >> (4 * (j % 2)) & 15) + (qh ? 16 * (qh[i] >> j & 1) : 0);
      out.weight[k] = unpack_k_scale(b.scales, j).scale * q;
      out.min[k] = unpack_k_scale(b.scales, j).min;
    }
  };
  switch (type) {
    case DType::q4_0: {
      const auto b = read_block<BlockQ4_0>(bytes);
      out.d = f16_to_f32(b.d);
      for (int k = 0; k < 32; ++k) out.weight[k] = nibble(b.qs, k) - 8;
      break;
    }
    case DType::q5_0: {
      const auto b = read_block<BlockQ5_0>(bytes);
      out.d = f16_to_f32(b.d);
      for (int k = 0; k < 32; ++k) out.weight[k] = nibble(b.qs, k) + fifth(b.qh, k) - 16;
      break;
    }
    case DType::q8_0: {
      const auto b = read_block<BlockQ8_0>(bytes);
      out.d = f16_to_f32(b.d);
      for (int k = 0; k < 32; ++k) out.weight[k] = b.qs[k];
      break;
    }
    case DType::q4_1: {
      const auto b = read_block<BlockQ4_1>(bytes);
      out.d = f16_to_f32(b.d);
      out.m = f16_to_f32(b.m);
      out.has_min = true;
      for (int k = 0; k < 32; ++k) out.weight[k] = nibble(b.qs, k), out.min[k] = 1;
      break;
    }
    case DType::q5_1: {
      const auto b = read_block<BlockQ5_1>(bytes);
      out.d = f16_to_f32(b.d);
      out.m = f16_to_f32(b.m);
      out.has_min = true;
      for (int k = 0; k < 32; ++k) out.weight[k] = nibble(b.qs, k) + fifth(b.qh, k), out.min[k] = 1;
      break;
    }
    case DType::q4_k: k_block(read_block<BlockQ4_K>(bytes), nullptr); break;
    case DType::q5_k: {
      const auto b = read_block<BlockQ5_K>(bytes);
      k_block(b, b.qh);
      break;
    }
    case DType::q6_k: {
      const auto b = read_block<BlockQ6_K>(bytes);
      out.d = f16_to_f32(b.d);
      for (int k = 0; k < 256; ++k) {
        const int half = k / 128, g = k / 32 % 4, i = k % 32;
        const int low = b.ql[64 * half + 32 * (g % 2) + i] >> (4 * (g / 2)) & 15;
        const int high = b.qh[32 * half + i] >> (2 * g) & 3;
        out.weight[k] = b.scales[k / 16] * (low + 16 * high - 32);
      }
      break;
    }
    default: break;
  }
  return out;
}

struct QuantisedX {
  std::vector<int> q;               // [n]
  std::vector<float> scale;         // [n / block_len]
  std::vector<std::int64_t> peaks;  // where the largest of each section are, which count as 0 in q
};

inline QuantisedX quantise(const float* original, std::int64_t n, std::int64_t block_len) {
  QuantisedX out;
  std::vector<float> x(original, original + n);
  const std::int64_t n_units = std::max(n / 256, std::int64_t(1)), n_sections = std::min(n_units, std::int64_t(4));
  for (std::int64_t section = 0; section < n_sections; ++section) {
    const std::int64_t end = section + 1 < n_sections ? n_units * (section + 1) / n_sections * 256 : n;
    std::int64_t peak = n_units * section / n_sections * 256;
    for (std::int64_t k = peak; k < end; ++k)
      if (std::fabs(x[std::size_t(k)]) > std::fabs(x[std::size_t(peak)])) peak = k;
    out.peaks.push_back(peak);
  }
  for (const std::int64_t peak : out.peaks) x[std::size_t(peak)] = 0;
  for (std::int64_t b = 0; b < n / block_len; ++b) {
    float amax = 0;
    for (std::int64_t i = 0; i < block_len; ++i) amax = std::fmax(amax, std::fabs(x[std::size_t(b * block_len + i)]));
    const float inverse = 127.0f / amax;
    const bool vanishes = std::isinf(inverse);
    out.scale.push_back(vanishes ? 0.0f : amax / 127.0f);
    for (std::int64_t i = 0; i < block_len; ++i)
      out.q.push_back(vanishes ? 0 : int(std::nearbyint(x[std::size_t(b * block_len + i)] * inverse)));
  }
  return out;
}

// One row times one token.
inline float dot(DType type, const std::byte* row, std::int64_t n_cols, const float* x, const QuantisedX& quantised) {
  float acc = 0;
  std::vector<float> w(static_cast<std::size_t>(n_cols));
  decode_block_row(type, row, n_cols, w.data());
  if (is_float_type(type)) {
    for (std::int64_t k = 0; k < n_cols; ++k) acc = std::fma(w[std::size_t(k)], x[k], acc);
    return acc;
  }
  const DTypeInfo info = dtype_info(type);
  for (std::int64_t b = 0; b < n_cols / info.block_len; ++b) {
    const IntegerBlock block = integer_block(type, row + std::size_t(b) * info.block_bytes);
    int sum = 0, sum_x = 0;
    for (int k = 0; k < int(info.block_len); ++k) {
      const int q = quantised.q[std::size_t(b * info.block_len + k)];
      sum += block.weight[k] * q;
      sum_x += block.min[k] * q;
    }
    const float xd = quantised.scale[std::size_t(b)];
    acc = std::fma(float(sum), block.d * xd, acc);
    if (block.has_min) acc = std::fma(block.m, xd * float(sum_x), acc);
  }
  for (const std::int64_t k : quantised.peaks) acc = std::fma(w[std::size_t(k)], x[k], acc);
  return acc;
}

// Rows of random bytes with scales of ordinary size (either sign); `extreme` sets every weight bit pattern to its ends.
inline std::vector<std::byte> random_rows(DType type, std::int64_t n_rows, std::int64_t n_cols, bool extreme,
                                          unsigned seed) {
  std::mt19937 random(seed);
  const DTypeInfo info = dtype_info(type);
  const std::int64_t n_blocks = n_rows * n_cols / info.block_len;
  std::vector<std::byte> out(std::size_t(n_blocks) * info.block_bytes);
  for (auto& byte : out) {
    const unsigned bits = random() & 255u;
    byte = std::byte(extreme ? (bits & 1 ? 0xff : bits & 2 ? 0x80 : bits & 4 ? 0x7f : 0) : bits);
  }
  const auto f16 = [&] { return f32_to_f16((float(random() % 2001) - 1000) * 1e-4f); };
  const auto put = [&](std::byte* at, std::uint16_t bits) { std::memcpy(at, &bits, sizeof bits); };
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    std::byte* block = out.data() + std::size_t(b) * info.block_bytes;
    switch (type) {
      case DType::f32: {
        const float value = (float(random() % 20001) - 10000) * 1e-4f;
        std::memcpy(block, &value, sizeof value);
        break;
      }
      case DType::f16: put(block, f16()); break;
      case DType::bf16: put(block, f32_to_bf16((float(random() % 2001) - 1000) * 1e-3f)); break;
      case DType::q6_k: put(block + offsetof(BlockQ6_K, d), f16()); break;
      case DType::q4_1:
      case DType::q5_1:
      case DType::q4_k:
      case DType::q5_k: put(block + 2, f16()); [[fallthrough]];
      default: put(block, f16());
    }
  }
  return out;
}

// Makes every byte of quantised rows `value` but those of the scales in F16.
inline void fill_quants(DType type, std::vector<std::byte>& rows, std::byte value) {
  const DTypeInfo info = dtype_info(type);
  const bool has_two = type == DType::q4_1 || type == DType::q5_1 || type == DType::q4_k || type == DType::q5_k;
  const std::size_t first = type == DType::q6_k ? offsetof(BlockQ6_K, d) : 0, last = first + (has_two ? 4 : 2);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t at = i % info.block_bytes;
    if (at < first || at >= last) rows[i] = value;
  }
}

}  // namespace linear_oracle
