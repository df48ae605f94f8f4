// No allocation per generated token: operator new is counted while a session decodes and a sampler draws.
#include "support/counted_allocations.hpp"
#include "support/models.hpp"

using namespace support;

TEST_CASE("decoding and sampling allocate nothing per token") {
  const auto file = GENERATE("tiny/gemma3/model-f32.gguf", "quantmodel/llama256/model-Q4_K_M.gguf");
  for (const auto kv_type : {KvTypes(DType::f16), KvTypes(DType::int8, DType::int4)}) {
    INFO(file << ", cache " << kv_type.name());
    Session session(model(data(file)), {.n_threads = 2, .kv_type = kv_type});
    auto generation = generate(session, {5, 6, 7, 8},
                               {.sampling = {.temperature = 1,
                                             .top_k = 40,
                                             .top_p = 0.9,
                                             .repetition_penalty = 1.1,
                                             .frequency_penalty = 0.1,
                                             .seed = 1},
                                .max_new_tokens = 60,
                                .ignore_end = true,
                                .stop_strings = {"a text that will not come", "nor this"},
                                .time_limit = 1000});
    REQUIRE(generation.next());  // reads the prompt
    const auto before = n_allocations.load();
    for (int i = 0; i < 50; ++i) REQUIRE(generation.next());
    CHECK(n_allocations.load() == before);
  }
}

TEST_CASE("streamed text allocates nothing, from the first token on and however long the pieces are") {
  TokenizerSpec spec;
  for (int byte = 0; byte < 256; ++byte) spec.tokens.push_back({std::string(1, char(byte)), TokenKind::normal});
  spec.tokens.push_back({std::string(60, 'x'), TokenKind::normal});
  spec.tokens.push_back({"\xF0\x9F\x98", TokenKind::normal});
  const Tokenizer tokenizer(spec);
  StreamDecoder first(tokenizer);
  first.push(257);
  StreamDecoder copied(first);  // three bytes of a character wait in it
  std::string text;
  text.reserve(1000);
  const auto before = n_allocations.load();
  StreamDecoder decoder(tokenizer);
  for (int i = 0; i < 10; ++i) decoder.push(256, text);
  copied.push(256, text);
  copied.push(0x8A, text);
  CHECK(n_allocations.load() == before);
  CHECK(text == std::string(600, 'x') + "\uFFFD" + std::string(60, 'x') + "\uFFFD");
  const auto before_growth = n_allocations.load();
  text.reserve(5000);
  CHECK(n_allocations.load() == before_growth + 1);  // the counter counts
}
