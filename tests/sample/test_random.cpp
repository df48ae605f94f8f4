#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "vitrine/sample/random.hpp"

using namespace vitrine;

TEST_CASE("philox gives the known answers of its paper") {
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == RandomBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const std::uint32_t f = 0xffffffff;
  CHECK(philox4x32({f, f, f, f}, {f, f}) == RandomBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        RandomBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a draw depends on seed, position and stream alone") {
  // From a second implementation, in Python's unbounded integers.
  CHECK(random_uniform(42, 0) == 0x1.39d5e0a6efea9p-1);
  CHECK(random_uniform(42, 1) == 0x1.f9b6424ea774dp-1);
  CHECK(random_uniform(42, 0, 1) == 0x1.499bb49028f40p-7);
  CHECK(random_uniform(43, 0) == 0x1.f7baeec48ef80p-4);
  CHECK(random_uniform(0xfedcba9876543210u, 0x123456789abu) == 0x1.94e34d0730f63p-1);
}

TEST_CASE("draws are uniform and do not follow each other") {
  constexpr int n = 200000, bins = 100;
  std::vector<double> count(bins);
  double product = 0, previous = 0.5;
  for (int i = 0; i < n; ++i) {
    const double u = random_uniform(7, std::uint64_t(i));
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    ++count[std::size_t(u * bins)];
    product += (u - 0.5) * (previous - 0.5);
    previous = u;
  }
  double chi_square = 0;
  for (const double c : count) chi_square += (c - n / bins) * (c - n / bins) / (n / bins);
  CHECK(chi_square < 148.2);  // 99 degrees of freedom, 0.1 %
  CHECK(chi_square > 60);     // too even would be wrong as well
  CHECK(std::abs(product / n) < 4 / 12.0 / std::sqrt(double(n)));
}
