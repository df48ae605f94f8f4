// Rounding up: checked by counting, and at the end of the range.
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>

#include "vitrine/core/rounding.hpp"

TEST_CASE("rounding up takes as many pieces as are needed, and no more") {
  for (std::int64_t n = 0; n <= 70; ++n)
    for (const std::int64_t piece : {1, 2, 3, 16, 64}) {
      std::int64_t n_pieces = 0;
      while (n_pieces * piece < n) ++n_pieces;
      CAPTURE(n, piece);
      CHECK(vitrine::divide_up(n, piece) == n_pieces);
      CHECK(vitrine::round_up(n, piece) == n_pieces * piece);
    }
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  CHECK(vitrine::round_up(most - 4095, 4096) == most - 4095);
  static_assert(vitrine::round_up(65, 16) == 80 && vitrine::divide_up(65, 16) == 5);
}
