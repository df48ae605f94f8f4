// Inverse frequencies against numbers computed by transformers.
#include <catch2/catch.hpp>

#include "vitrine/core/error.hpp"
#include "vitrine/model/architecture.hpp"
#include "vitrine/model/rope_frequencies.hpp"

using vitrine::inverse_frequencies;
using vitrine::RopeConfig;
using vitrine::RopeScaling;

namespace {

RopeConfig llama31() {
  RopeConfig rope;
  rope.theta = 500000;
  rope.scaling = RopeScaling::llama3;
  rope.factor = 8;
  rope.low_freq_factor = 1;
  rope.high_freq_factor = 4;
  rope.original_context = 8192;
  return rope;
}

// Equal to the number of eight or nine digits that is given, up to two units in the last place of a float: they were
// not rounded after each step as ours are.
Catch::Matchers::Floating::WithinUlpsMatcher near_float(float value) { return Catch::WithinULP(value, 2); }

}  // namespace

TEST_CASE("Llama 3.1's scaled frequencies") {
  RopeConfig plain = llama31();
  plain.scaling = RopeScaling::none;
  const auto unscaled = inverse_frequencies(plain, 128), scaled = inverse_frequencies(llama31(), 128);
  REQUIRE(scaled.size() == 64);
  CHECK(scaled[0] == 1.0f);
  CHECK_THAT(scaled[28], near_float(0.003211446f));
  CHECK_THAT(unscaled[29], near_float(0.0026160993f));
  CHECK_THAT(scaled[29], near_float(0.0021665708f));
  CHECK_THAT(unscaled[32], near_float(0.0014142136f));
  CHECK_THAT(scaled[32], near_float(0.00052484616f));
  CHECK_THAT(unscaled[34], near_float(0.00093847387f));
  CHECK_THAT(scaled[34], near_float(0.00017850781f));
  CHECK_THAT(unscaled[35], near_float(0.00076449699f));
  CHECK_THAT(scaled[35], near_float(9.5562124e-05f));
  CHECK_THAT(unscaled[63], near_float(2.4551408e-06f));
  CHECK_THAT(scaled[63], near_float(3.0689260e-07f));
}

TEST_CASE("Which pairs Llama 3.1's scaling leaves, blends and divides") {
  const std::int64_t head_dim = GENERATE(128, 64);
  RopeConfig rope = llama31();
  if (head_dim == 64) rope.factor = 32;
  RopeConfig plain = rope;
  plain.scaling = RopeScaling::none;
  const auto unscaled = inverse_frequencies(plain, head_dim), scaled = inverse_frequencies(rope, head_dim);
  const std::size_t last_kept = head_dim == 128 ? 28 : 14, last_blended = head_dim == 128 ? 34 : 17;
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    INFO("pair " << i);
    if (i <= last_kept) {
      CHECK(scaled[i] == unscaled[i]);
    } else if (i <= last_blended) {
      CHECK(scaled[i] < unscaled[i]);
      CHECK(scaled[i] > unscaled[i] / rope.factor);
    } else {
      CHECK(scaled[i] == unscaled[i] / rope.factor);
    }
  }
}

TEST_CASE("Linear scaling divides every frequency, divisors each its own") {
  RopeConfig rope;
  const auto plain = inverse_frequencies(rope, 8);
  CHECK(plain == std::vector<float>{1.0f, 0.1f, 0.01f, 0.001f});
  rope.scaling = RopeScaling::linear;
  rope.factor = 4;
  CHECK(inverse_frequencies(rope, 8) == std::vector<float>{0.25f, 0.025f, 0.0025f, 0.00025f});
  rope.scaling = RopeScaling::none;
  rope.frequency_divisors = {1, 2, 4, 8};
  CHECK(inverse_frequencies(rope, 8) == std::vector<float>{1.0f, 0.05f, 0.0025f, 0.000125f});
  rope.frequency_divisors = {1, 2};
  CHECK_THROWS_AS(inverse_frequencies(rope, 8), vitrine::Error);
  CHECK_THROWS_AS(inverse_frequencies(RopeConfig{}, 7), vitrine::Error);
}

TEST_CASE("GGUF's frequency divisors give the bits of config.json's parameters") {
  const std::string folder = std::string(VITRINE_TEST_DATA) + "/tiny/llama_rope_llama3";
  const auto from_json = vitrine::read_config(folder), from_gguf = vitrine::read_config(folder + "/model-f32.gguf");
  CHECK(inverse_frequencies(from_json.rope[0], from_json.head_dim) ==
        inverse_frequencies(from_gguf.rope[0], from_gguf.head_dim));
}
