// Counter-based random numbers: number i of a seed is a function of (seed, i) alone, so that a draw does not depend on
// how many were made before it, on other requests, on threads or on the machine.
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011): ten rounds, each
// of two 32 x 32 -> 64 bit multiplications whose halves are mixed with the key, which itself steps by fixed odd
// constants.
//
//   key = the seed        counter = (position, stream)
//
// tests/sample/test_random.cpp holds the paper's known answers.
#pragma once

#include <array>
#include <cstdint>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

using RandomBlock = std::array<std::uint32_t, 4>;

inline RandomBlock philox4x32(RandomBlock counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t multiplier[2] = {0xD2511F53u, 0xCD9E8D57u};
  constexpr std::uint32_t key_step[2] = {0x9E3779B9u, 0xBB67AE85u};  // golden ratio, sqrt(3) - 1
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = multiplier[0] * counter[0], b = multiplier[1] * counter[2];
    counter = {std::uint32_t(b >> 32) ^ counter[1] ^ key[0], std::uint32_t(b),
               std::uint32_t(a >> 32) ^ counter[3] ^ key[1], std::uint32_t(a)};
    key[0] += key_step[0];
    key[1] += key_step[1];
  }
  return counter;
}

// The uses of one position.
namespace random_stream {
inline constexpr std::uint64_t token = 0, xtc = 1, guess_accepted = 2, guess_replaced = 3;
}

// A multiple of 2^-53 in [0, 1), uniform.
inline double random_uniform(std::uint64_t seed, std::uint64_t position, std::uint64_t stream = 0) {
  const RandomBlock block = philox4x32(
      {std::uint32_t(position), std::uint32_t(position >> 32), std::uint32_t(stream), std::uint32_t(stream >> 32)},
      {std::uint32_t(seed), std::uint32_t(seed >> 32)});
  const std::uint64_t bits = std::uint64_t(block[0]) << 32 | block[1];
  return double(bits >> 11) * 0x1p-53;
}

VITRINE_NAMESPACE_END
