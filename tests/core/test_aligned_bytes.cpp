// Memory of tensors: where it begins, on either side of the size from which large pages back it.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>

#include "vitrine/core/tensor.hpp"

using namespace vitrine;

static std::uintptr_t address(AlignedBytes& bytes) { return reinterpret_cast<std::uintptr_t>(bytes.data()); }

TEST_CASE("memory begins on cache lines, from 4 MB on on large pages, and is zeros") {
  for (const std::size_t n_bytes :
       {std::size_t(1), 2 * huge_page_bytes - 1, 2 * huge_page_bytes, 2 * huge_page_bytes + 1}) {
    CAPTURE(n_bytes);
    AlignedBytes bytes(n_bytes);
    CHECK(address(bytes) % (n_bytes < 2 * huge_page_bytes ? tensor_alignment : huge_page_bytes) == 0);
    CHECK(bytes.data()[0] == std::byte(0));
    CHECK(bytes.data()[n_bytes - 1] == std::byte(0));
  }
}

TEST_CASE("small and large memory change places") {
  AlignedBytes small(100), large(3 * huge_page_bytes);
  const auto at_small = address(small), at_large = address(large);
  std::swap(small, large);
  CHECK(address(small) == at_large);
  CHECK(address(large) == at_small);
  large = std::move(small);
  CHECK(large.size() == 3 * huge_page_bytes);
  CHECK(address(large) == at_large);
}

TEST_CASE("more memory than there is is refused by its size") {
  for (const std::size_t n_bytes : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2 + 1})
    CHECK_THROWS_WITH(AlignedBytes(n_bytes), Catch::Contains(std::to_string(n_bytes)));
}
