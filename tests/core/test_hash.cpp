// XXH64 against values of the reference implementation (Python's xxhash 3).
#include <catch2/catch.hpp>
#include <vector>

#include "vitrine/core/hash.hpp"

using vitrine::Hash64;

TEST_CASE("the hash is XXH64, for every length of tail, in one piece or many") {
  std::vector<unsigned char> bytes;
  for (int i = 0; i < 1000; ++i) bytes.push_back(static_cast<unsigned char>((i * 31 + 7) % 256));
  struct Expected {
    std::size_t n;
    std::uint64_t with_seed_0, with_a_seed;
  };
  for (const auto& [n, with_seed_0, with_a_seed] :
       std::vector<Expected>{{0, 0xef46db3751d8e999, 0xac75fda2929b17ef},
                             {1, 0xa96c7f0ce858bbb7, 0x84e535b36672440d},
                             {3, 0x56e6957632a487f9, 0xd095a9239060f0a3},
                             {4, 0xc60d15b1e3ff8f04, 0xd4e4b946fb0bfbb4},
                             {7, 0xafbefc3d6c6f9a8e, 0x38386302628c52dc},
                             {8, 0x3da5c7aa269683e0, 0x3748218f9083d1c1},
                             {31, 0x4a74f3a1a39ad4a1, 0xb806f858c84789ea},
                             {32, 0x8d57d6a4671cc43d, 0x8ef2e38dde10f162},
                             {33, 0x62c9fd21ed857664, 0x5a653650552f822c},
                             {63, 0x5c320a0d2707057f, 0xcdec73bbccfd2d50},
                             {64, 0x7bbabbc45729d17e, 0x861fd034d84dab20},
                             {100, 0xefa0ad2d3e70c151, 0x4ac13414471c7284},
                             {1000, 0x99594f4828043d35, 0xf8735ce614aeb002}}) {
    INFO(n << " bytes");
    CHECK(Hash64().add(bytes.data(), n).value() == with_seed_0);
    CHECK(Hash64(2654435761).add(bytes.data(), n).value() == with_a_seed);
    for (const std::size_t piece : {1, 5, 32, 37}) {
      Hash64 hash;
      for (std::size_t at = 0; at < n; at += piece) hash.add(bytes.data() + at, std::min(piece, n - at));
      CHECK(hash.value() == with_seed_0);
    }
  }
}
