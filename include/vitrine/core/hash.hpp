// XXH64, the checksum of Yann Collet: 64 bits at the speed of memory, for saved files and for the identity of a
// model. It finds damage, not malice.
//
//   Hash64 hash;  hash.add(bytes, n);  hash.add(more, m);  hash.value()         the same as of all bytes in one piece
//
// A text is added with its length before it, so that "ab" "c" and "a" "bc" differ; a number as the bytes it has in
// memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

class Hash64 {
 public:
  explicit Hash64(std::uint64_t seed = 0) : lanes_{seed + p1 + p2, seed + p2, seed, seed - p1}, seed_(seed) {}

  Hash64& add(const void* data, std::size_t n) {
    if (n == 0) return *this;  // of nothing, `data` may be null
    const auto* from = static_cast<const unsigned char*>(data);
    const std::size_t filled = total_ % 32;
    total_ += n;
    if (filled > 0) {
      const auto more = (std::min)(n, 32 - filled);
      std::memcpy(rest_ + filled, from, more);
      from += more;
      n -= more;
      if (filled + more < 32) return *this;
      stripe(rest_);
    }
    for (; n >= 32; from += 32, n -= 32) stripe(from);
    if (n > 0) std::memcpy(rest_, from, n);
    return *this;
  }
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) Hash64& add(T value) { return add(&value, sizeof value); }
  Hash64& add(std::string_view text) { return add(std::uint64_t(text.size())).add(text.data(), text.size()); }

  std::uint64_t value() const {
    std::uint64_t h = seed_ + p5;
    if (total_ >= 32) {
      h = rotated(lanes_[0], 1) + rotated(lanes_[1], 7) + rotated(lanes_[2], 12) + rotated(lanes_[3], 18);
      for (const auto lane : lanes_) h = (h ^ round(0, lane)) * p1 + p4;
    }
    h += total_;
    const unsigned char* at = rest_;
    std::size_t left = total_ % 32;
    for (; left >= 8; at += 8, left -= 8) h = rotated(h ^ round(0, read<std::uint64_t>(at)), 27) * p1 + p4;
    if (left >= 4) {
      h = rotated(h ^ read<std::uint32_t>(at) * p1, 23) * p2 + p3;
      at += 4;
      left -= 4;
    }
    for (; left > 0; ++at, --left) h = rotated(h ^ *at * p5, 11) * p1;
    h = (h ^ h >> 33) * p2;
    h = (h ^ h >> 29) * p3;
    return h ^ h >> 32;
  }

 private:
  static constexpr std::uint64_t p1 = 0x9E3779B185EBCA87, p2 = 0xC2B2AE3D27D4EB4F, p3 = 0x165667B19E3779F9,
                                 p4 = 0x85EBCA77C2B2AE63, p5 = 0x27D4EB2F165667C5;
  static std::uint64_t rotated(std::uint64_t x, int by) { return x << by | x >> (64 - by); }
  static std::uint64_t round(std::uint64_t lane, std::uint64_t input) { return rotated(lane + input * p2, 31) * p1; }
  template <class T>
  static std::uint64_t read(const unsigned char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  void stripe(const unsigned char* from) {
    for (std::size_t i = 0; i < 4; ++i) lanes_[i] = round(lanes_[i], read<std::uint64_t>(from + 8 * i));
  }

  std::uint64_t lanes_[4];
  std::uint64_t seed_, total_ = 0;
  unsigned char rest_[32] = {};
};

VITRINE_NAMESPACE_END
