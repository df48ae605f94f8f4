// Layout R16 holds the file's rows exactly: each row decodes to the bits of the plain decoder.
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "numbers.hpp"
#include "vitrine/core/block_decode.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/ops/packed_matrix.hpp"

using namespace vitrine;
using namespace ops_test;

namespace {

// Any bytes are a valid row of any type.
std::vector<std::byte> random_rows(std::size_t n_bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> out(n_bytes);
  for (auto& byte : out) byte = std::byte(random() & 255u);
  return out;
}

}  // namespace

TEST_CASE("every row of a packed matrix decodes as in the file, in any row order") {
  for (const DType type : all_types)
    for (const std::int64_t n_rows : {1, 15, 16, 17, 40})
      for (const std::int64_t n_blocks : {1, 2, 3, 4}) {
        const DTypeInfo info = dtype_info(type);
        const std::int64_t n_cols = n_blocks * info.block_len;
        CAPTURE(info.name, n_rows, n_cols);
        PackedMatrix matrix(type, n_rows, n_cols);
        // One byte off, so that nothing relies on the alignment of the file.
        const auto bytes = random_rows(std::size_t(n_rows) * matrix.row_bytes() + 1, unsigned(n_rows * 10 + n_blocks));
        const std::byte* rows = bytes.data() + 1;
        std::vector<std::int64_t> order(static_cast<std::size_t>(n_rows));
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = n_rows - 1 - std::int64_t(i);
        for (const bool reversed : {false, true}) {
          for (std::int64_t p = 0; p < matrix.n_panels(); ++p)
            matrix.pack_panels(p, p + 1, rows, reversed ? order.data() : nullptr);
          std::vector<float> got(static_cast<std::size_t>(n_cols)), wanted(static_cast<std::size_t>(n_cols));
          for (std::int64_t row = 0; row < n_rows; ++row) {
            const std::int64_t source = reversed ? n_rows - 1 - row : row;
            decode_block_row(type, rows + std::size_t(source) * matrix.row_bytes(), n_cols, wanted.data());
            matrix.decode_row(row, got.data());
            REQUIRE(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)) == 0);
          }
        }
      }
}

TEST_CASE("a packed matrix takes the bytes of the file, and its panels begin on cache lines") {
  for (const DType type : all_types) {
    const PackedMatrix matrix(type, 64, 1024);
    CAPTURE(dtype_info(type).name);
    CHECK(matrix.bytes() == 64 * matrix.row_bytes());
    CHECK(matrix.n_panels() == 4);
    for (std::int64_t p = 0; p < matrix.n_panels(); ++p)
      CHECK(reinterpret_cast<std::uintptr_t>(matrix.panel(p)) % 64 == 0);
  }
}

TEST_CASE("matrices in one piece of memory leave each other alone") {
  const auto rows = random_rows(20 * 34, 2), others = random_rows(20 * 34, 3);
  const std::size_t n_bytes = PackedMatrix::bytes_of(DType::q8_0, 20, 32), room = (n_bytes + 63) / 64 * 64;
  auto memory = std::make_shared<AlignedBytes>(room + n_bytes);
  PackedMatrix first(DType::q8_0, 20, 32, memory, 0), second(DType::q8_0, 20, 32, memory, room);
  first.pack_panels(0, 2, rows.data(), nullptr);
  second.pack_panels(0, 2, others.data(), nullptr);
  for (const auto* which : {&first, &second}) {
    PackedMatrix alone(DType::q8_0, 20, 32);
    alone.pack_panels(0, 2, which == &first ? rows.data() : others.data(), nullptr);
    CHECK(std::memcmp(which->data(), alone.data(), n_bytes) == 0);
  }
  CHECK_THROWS_AS(PackedMatrix(DType::q8_0, 20, 32, memory, 32), Error);
  CHECK_THROWS_AS(PackedMatrix(DType::q8_0, 20, 32, memory, room + 64), Error);
  CHECK_THROWS_AS(PackedMatrix(DType::q8_0, 20, 32, memory, 2 * room + 64), Error);
  CHECK_THROWS_AS(PackedMatrix(DType::q8_0, 20, 32, std::shared_ptr<AlignedBytes>(), 0), Error);
  PackedMatrix borrowed(DType::q8_0, 20, 32, second.data(), memory);
  CHECK_THROWS_AS(borrowed.pack_panels(0, 2, rows.data(), nullptr), Error);
}

TEST_CASE("impossible shapes, panels, rows and orders are refused by name") {
  CHECK_THROWS_AS(PackedMatrix(DType::q8_0, 4, 33), Error);
  CHECK_THROWS_AS(PackedMatrix(DType::q8_0, 0, 32), Error);
  CHECK_THROWS_AS(PackedMatrix(DType::q4_k, 4, 128), Error);
  CHECK_THROWS_AS(PackedMatrix(DType(77), 4, 128), Error);
  CHECK_THROWS_AS(PackedMatrix(DType::f32, std::int64_t(1) << 40, std::int64_t(1) << 40), Error);
  PackedMatrix matrix(DType::q8_0, 20, 32);
  const auto bytes = random_rows(20 * 34, 1);
  CHECK_THROWS_AS(matrix.pack_panels(0, 3, bytes.data(), nullptr), Error);
  std::vector<std::int64_t> order(20, 20);
  CHECK_THROWS_AS(matrix.pack_panels(0, 1, bytes.data(), order.data()), Error);
  float out[32];
  CHECK_THROWS_AS(matrix.decode_row(20, out), Error);
  CHECK(PackedMatrix().empty());
}
