// Objects that were moved from: calls on them are errors with a name, or work as before; none reads through a null
// pointer.
#include <type_traits>

#include "support/bits.hpp"
#include "vitrine/model/gguf.hpp"
#include "vitrine/model/hf_config.hpp"
#include "vitrine/model/loader.hpp"
#include "vitrine/model/safetensors.hpp"
#include "vitrine/text/load_tokenizer.hpp"
#include "vitrine/text/pattern.hpp"

using namespace support;

namespace {

const fs::path llama_folder = data("tiny/llama_gqa");

template <class Action>
void check_refused(const std::string& object, Action&& action) {
  try {
    action();
    FAIL("expected an error naming " << object);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_argument);
    CHECK_THAT(error.what(), Catch::Matchers::StartsWith(object) && Catch::Matchers::Contains("moved from"));
  }
}

}  // namespace

TEST_CASE("every call on a session that was moved from is refused") {
  Session first(model(llama_folder / "model-f32.gguf"));
  first.prefill(std::vector<Token>{1, 2, 3});
  Generation generation(first, {4, 5});
  Session second(std::move(first));
  CHECK(second.length() == 3);
  const auto see = [](std::int64_t, std::span<const float>) {};
  const std::vector<std::function<void()>> calls = {
      [&] { first.prefill(std::vector<Token>{1}); },
      [&] { first.prefill_logits(std::vector<Token>{1}, see); },
      [&] { first.decode(1); },
      [&] { first.truncate(0); },
      [&] { first.reset(); },
      [&] { first.tokens(); },
      [&] { first.length(); },
      [&] { first.context(); },
      [&] { first.model(); },
      [&] { first.options(); },
      [&] { first.isa(); },
      [&] { first.kv_bytes(); },
      [&] { first.cache(); },
      [&] { first.fork(); },
      [&] { first.n_passes(); },
      [&] { first.n_pass_tokens(); },
      [&] { generation.next(); },
      [&] { generate(first, {1}); },
  };
  for (const auto& call : calls) check_refused("session", call);
  first = std::move(second);
  CHECK(first.length() == 3);
  check_refused("session", [&] { second.length(); });
}

TEST_CASE("samplers and files that were moved from are refused") {
  const std::vector<float> logits = {1, 2, 3};
  Sampler sampler({.temperature = 0, .repetition_penalty = 2}, 3);
  CHECK(Sampler(std::move(sampler)).sample(logits, {}, 0) == 2);
  check_refused("sampler", [&] { sampler.sample(logits, {}, 0); });
  check_refused("sampler", [&] { sampler.sample({}, {}, 0); });
  check_refused("sampler", [&] { sampler.explain(logits); });

  auto gguf = GgufFile::open(llama_folder / "model-f32.gguf");
  const auto tensor = gguf.tensors().front();
  const auto moved_gguf = std::move(gguf);
  CHECK(!moved_gguf.bytes(tensor).empty());
  check_refused("GGUF file", [&] { gguf.name(); });
  check_refused("GGUF file", [&] { gguf.integer("llama.block_count"); });
  check_refused("GGUF file", [&] { gguf.bytes(tensor); });

  auto safetensors = SafetensorsFile::open_folder(llama_folder);
  const auto part = safetensors.tensors().front();
  const auto moved_safetensors = std::move(safetensors);
  CHECK(!moved_safetensors.bytes(part).empty());
  check_refused("safetensors file", [&] { safetensors.bytes(part); });

  Transformer transformer(load_model_files(llama_folder / "model-f32.gguf"));
  const Transformer moved_transformer(std::move(transformer));
  auto scratch = moved_transformer.make_scratch(1, 1, 1);
  Team team(1);
  check_refused("transformer", [&] { transformer.forward(team, kernels(), {}, scratch, {}, nullptr, {}); });
}

TEST_CASE("what only points to something shared is of use after a move as before") {
  static_assert(!std::is_move_constructible_v<Model>);
  static_assert(std::is_nothrow_move_constructible_v<Tokenizer> && std::is_nothrow_move_assignable_v<Tokenizer>);
  Tokenizer tokenizer = load_tokenizer(llama_folder);
  const auto ids = tokenizer.encode("one two");
  const Tokenizer moved_tokenizer(std::move(tokenizer));
  CHECK(tokenizer.encode("one two") == ids);
  CHECK(tokenizer.decode(ids) == moved_tokenizer.decode(ids));
  StreamDecoder decoder(moved_tokenizer);
  const StreamDecoder moved_decoder(std::move(decoder));
  CHECK(decoder.push(ids.front()) == moved_tokenizer.decode(std::span(ids).first(1)));

  HfConfig config = HfConfig::parse(R"({"a": 5})", "config.json");
  const HfConfig moved_config(std::move(config));
  CHECK(config.integer("a") == 5);

  Pattern pattern("b+");
  const Pattern moved_pattern(std::move(pattern));
  Pattern::Scratch scratch;
  std::vector<TextRange> matches;
  pattern.find_all("abba", scratch, matches);
  CHECK(matches.size() == 1);
}

TEST_CASE("tensors and matrices that were moved from have the size of the memory that is left to them") {
  Tensor<float, 2> large({100, 10}), small_one({1, 1});
  small_one = std::move(large);
  CHECK(small_one.shape()[0] == 100);
  CHECK(large.shape() == Tensor<float, 2>::Shape{1, 1});
  const Tensor<float, 2> taken(std::move(small_one));
  CHECK(small_one.view().count() == 0);

  PackedMatrix matrix(DType::f32, 16, 4), other;
  other = std::move(matrix);
  CHECK(other.n_rows() == 16);
  CHECK(matrix.empty());
  float row[4];
  CHECK_THROWS_AS(matrix.decode_row(0, row), Error);
  const PackedMatrix last(std::move(other));
  CHECK(other.empty());
  CHECK(last.n_rows() == 16);
}
