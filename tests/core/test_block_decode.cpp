// The plain decoders against values that the gguf package (and ggml's own decoder) gave for the same blocks.
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "vitrine/core/block_decode.hpp"
#include "vitrine/core/error.hpp"

using namespace vitrine;

namespace {

std::vector<char> read_file(const std::string& name) {
  std::ifstream in(std::string(VITRINE_TEST_DATA) + "/quants/" + name, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("every quantised fixture block decodes to the reference's very bits") {
  for (const DType type : {DType::f16, DType::bf16, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0,
                           DType::q4_k, DType::q5_k, DType::q6_k}) {
    const DTypeInfo info = dtype_info(type);
    CAPTURE(info.name);
    const auto blocks = read_file(std::string(info.name) + ".quantised.bin");
    const auto values = read_file(std::string(info.name) + ".values.f32");
    REQUIRE(blocks.size() / info.block_bytes * info.block_len * sizeof(float) == values.size());
    std::vector<float> out(values.size() / sizeof(float));
    decode_block_row(type, reinterpret_cast<const std::byte*>(blocks.data()), std::int64_t(out.size()), out.data());
    CHECK(std::memcmp(out.data(), values.data(), values.size()) == 0);
  }
}

TEST_CASE("a row that is no whole number of blocks is refused") {
  const std::byte blocks[64] = {};
  float out[64];
  CHECK_THROWS_AS(decode_block_row(DType::q8_0, blocks, 33, out), Error);
  CHECK_THROWS_AS(decode_block_row(DType(99), blocks, 32, out), Error);
}
