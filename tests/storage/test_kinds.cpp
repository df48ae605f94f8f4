// The invariant over kinds of storage: contiguous, paged and ring give the same bits, in any company.
#include <cmath>

#include "support/bits.hpp"

using namespace support;

namespace {

// Windows (8 tokens in both) far shorter than the prompt, and a model without any.
const std::vector<std::string> models = {"tiny/mistral_swa", "tiny/gemma3/model-f32.gguf",
                                         "tiny/llama_gqa/model-f16.gguf"};
// Logits of the last token of each prompt and of its next three tokens.
using Rows = std::vector<std::vector<float>>;
constexpr std::int64_t n_next = 3;

// All sequences in the same passes, up to `chunk` tokens of each, every one in a cache of its own.
std::vector<Rows> together(const Model& model, const std::vector<std::vector<Token>>& sequences, KvTypes kv_type,
                           CacheKind kind, std::int64_t chunk, int n_threads) {
  constexpr std::int64_t n_context = 128;
  const auto& transformer = model.transformer();
  const auto layout = transformer.kv_layout(kv_type);
  const auto pool = std::make_shared<BlockPool>(layout);
  std::vector<AnyCache> caches;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (kind == CacheKind::contiguous) caches.emplace_back(ContiguousCache(layout, n_context));
    if (kind == CacheKind::paged) caches.emplace_back(PagedCache(pool, n_context));
    if (kind == CacheKind::ring) caches.emplace_back(RingCache(layout, transformer.kv_reach(), n_context, chunk));
  }
  auto scratch = transformer.make_scratch(chunk * std::int64_t(sequences.size()), n_context, n_threads);
  Tensor<float, 2> logits({std::int64_t(sequences.size()), model.config().n_vocab});
  Team team(n_threads);
  std::vector<Rows> result(sequences.size());
  for (bool is_over = false; !is_over;) {
    is_over = true;
    std::vector<Token> tokens;
    std::vector<SequenceSlice> slices;
    std::vector<std::int64_t> logit_rows;
    std::vector<std::size_t> in_pass, drawing;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const auto pos0 = caches[i].length(), left = std::int64_t(sequences[i].size()) - pos0;
      if (left == 0) continue;
      const auto n = left > n_next ? std::min(chunk, left - n_next) : 1;
      caches[i].prepare(n);
      slices.push_back({&caches[i].tables(), pos0, std::int64_t(tokens.size()), n});
      tokens.insert(tokens.end(), sequences[i].begin() + pos0, sequences[i].begin() + pos0 + n);
      in_pass.push_back(i);
      is_over = is_over && left == n;
      if (left - n > n_next) continue;
      logit_rows.push_back(std::int64_t(tokens.size()) - 1);
      drawing.push_back(i);
    }
    REQUIRE(transformer.forward(team, kernels(), {tokens, slices, logit_rows}, scratch, logits.view(), nullptr, {}));
    for (std::size_t k = 0; k < in_pass.size(); ++k) caches[in_pass[k]].append(slices[k].n_rows);
    for (std::size_t k = 0; k < drawing.size(); ++k)
      result[drawing[k]].push_back(copy(logits.view().row(std::int64_t(k))));
  }
  return result;
}

}  // namespace

TEST_CASE("kinds: contiguous, paged and ring storage give the same bits") {
  const auto path = GENERATE(from_range(models));
  const auto kv_type = GENERATE(KvTypes(DType::f32), DType::f16, DType::bf16, DType::int8, DType::int4);
  INFO(path << ", " << kv_type.name());
  const auto shared = model(data(path));
  const auto prompt = spread_tokens(*shared, 300);
  const auto expected = run(shared, prompt, 8, {.n_threads = 1, .kv_type = kv_type, .chunk = 300});
  for (const auto kind : all_cache_kinds)
    for (const std::int64_t chunk : {1, 17, 64, 300})
      for (const int n_threads : {1, 2}) {
        INFO(cache_kind_name(kind) << ", chunk " << chunk << ", " << n_threads << " threads");
        const auto other =
            run(shared, prompt, 8, {.n_threads = n_threads, .kv_type = kv_type, .cache = kind, .chunk = chunk});
        CHECK(first_difference(expected, other) == -1);
      }
}

TEST_CASE("kinds: sequences in the same passes get the bits that each gets alone, in chunks of any size") {
  const auto path = GENERATE(from_range(models));
  const auto kv_type = GENERATE(KvTypes(DType::f32), DType::f16, DType::bf16, DType::int8, DType::int4);
  INFO(path << ", " << kv_type.name());
  const auto shared = model(data(path));
  const auto all = spread_tokens(*shared, 300);
  std::vector<std::vector<Token>> sequences;
  std::vector<Rows> expected;
  for (const auto& [first, n] : {std::pair(0, 70), {100, 13}, {150, 110}}) {
    sequences.emplace_back(all.begin() + first, all.begin() + first + n);
    Session alone(shared, {.n_context = 128, .n_threads = 1, .kv_type = kv_type});
    const std::span tokens(sequences.back());
    auto& rows = expected.emplace_back();
    rows.push_back(copy(alone.prefill(tokens.first(tokens.size() - n_next))));
    for (const auto token : tokens.last(n_next)) rows.push_back(copy(alone.decode(token)));
  }
  for (const auto kind : all_cache_kinds)
    for (const std::int64_t chunk : {1, 17, 64})
      for (const int n_threads : {1, 2}) {
        INFO(cache_kind_name(kind) << ", chunk " << chunk << ", " << n_threads << " threads");
        const auto got = together(*shared, sequences, kv_type, kind, chunk, n_threads);
        for (std::size_t i = 0; i < sequences.size(); ++i) {
          REQUIRE(got[i].size() == expected[i].size());
          for (std::size_t k = 0; k < got[i].size(); ++k) CHECK(same_bits(got[i][k], expected[i][k]));
        }
      }
}

TEST_CASE("kinds: types of the cache move logits by no more than their rounding lets expect", "[control]") {
  struct Bound {
    KvTypes types;
    double largest_difference;  // of any logit, as a share of the largest one
    double agreement;           // on the likeliest token
  };
  // Random weights are sensitive: about three times what these models show; guesses would agree on one in 384.
  const std::vector<Bound> bounds = {{DType::f16, 0.02, 0.98},
                                     {DType::bf16, 0.15, 0.95},
                                     {DType::int8, 0.4, 0.8},
                                     {{DType::int8, DType::int4}, 2, 0.35},
                                     {DType::int4, 2, 0.3}};
  for (const auto& path : models) {
    const auto shared = model(data(path));
    const auto prompt = spread_tokens(*shared, 300);
    const auto logits_of = [&](KvTypes types) {
      Session session(shared, {.n_context = 300, .kv_type = types});
      Rows rows;
      session.prefill_logits(prompt,
                             [&](std::int64_t, std::span<const float> logits) { rows.push_back(copy(logits)); });
      return rows;
    };
    const auto expected = logits_of(DType::f32);
    for (const auto& [types, largest_difference, agreement] : bounds) {
      const auto got = logits_of(types);
      double largest = 0, difference = 0, n_agree = 0;
      for (std::size_t t = 0; t < got.size(); ++t) {
        for (std::size_t i = 0; i < got[t].size(); ++i) {
          largest = std::max(largest, std::fabs(double(expected[t][i])));
          difference = std::max(difference, std::fabs(double(got[t][i]) - double(expected[t][i])));
        }
        n_agree += best(got[t]) == best(expected[t]);
      }
      INFO(path << ", " << types.name() << ": " << difference << " of " << largest << ", agreement "
                << n_agree / double(got.size()));
      CHECK(difference > 0);
      CHECK(difference <= largest_difference * largest);
      CHECK(n_agree >= agreement * double(got.size()));
    }
  }
}

TEST_CASE("kinds: a ring really overwrites what left the window, and keeps the rest", "[control]") {
  const auto shared = model(data("tiny/mistral_swa"));
  const auto window = shared->config().layers[0].window;
  REQUIRE((window > 0 && window < 64));
  Session session(shared, {.n_context = 1000, .cache = CacheKind::ring, .chunk = 16}),
      plain(shared, {.n_context = 1000});
  CHECK(session.kv_bytes() * 16 == plain.kv_bytes() * std::size_t((window - 1 + 16 + 63) / 64 + 1));
}

TEST_CASE("kinds: going back and cancelled calls leave a session with the bits of a fresh one") {
  const auto path = GENERATE(from_range(models));
  const auto kind = GENERATE(from_range(all_cache_kinds));
  INFO(path << ", " << cache_kind_name(kind));
  const auto shared = model(data(path));
  const auto prompt = spread_tokens(*shared, 250);
  const SessionOptions options{.n_context = 256, .n_threads = 1, .cache = kind, .chunk = 16};
  Session fresh(shared, {.n_context = 256, .n_threads = 1});
  const auto expected = copy(fresh.prefill(std::span(prompt).first(200)));
  Session session(shared, options);
  session.prefill(prompt);
  for (const std::int64_t keep : {199, 180, 65, 64, 3, 0}) {
    INFO("back to " << keep);
    session.truncate(keep);
    CHECK(same_bits(session.prefill(std::span(prompt).subspan(std::size_t(keep), std::size_t(200 - keep))), expected));
  }
  session.truncate(20);
  std::stop_source source;
  const auto stop = [&](const ProgressEvent& event) { event.done >= 160 ? source.request_stop() : false; };
  CHECK_THROWS_AS(session.prefill(std::span(prompt).subspan(20, 200), source.get_token(), stop), Error);
  CHECK(session.length() == 20);
  CHECK(same_bits(session.prefill(std::span(prompt).subspan(20, 180)), expected));
}

TEST_CASE("kinds: forks go their own ways with the bits of fresh sessions") {
  const auto path = GENERATE(from_range(models));
  const auto kind = GENERATE(from_range(all_cache_kinds));
  INFO(path << ", " << cache_kind_name(kind));
  const auto shared = model(data(path));
  const auto prompt = spread_tokens(*shared, 150);
  const SessionOptions options{.n_context = 256, .n_threads = 1, .cache = kind, .chunk = 32};
  Session session(shared, options);
  session.prefill(std::span(prompt).first(100));
  Session first = session.fork(), second = session.fork();
  CHECK(first.length() == 100);
  CHECK(first.n_passes() == 0);
  const std::vector<std::size_t> ways = {100, 105, 109};
  Session* const sessions[] = {&session, &first, &second};
  for (int step = 0; step < 30; ++step)  // in turn, so that each could spoil the others' blocks
    for (std::size_t i = 0; i < 3; ++i) sessions[i]->decode(prompt[ways[i] + std::size_t(step)]);
  for (std::size_t i = 0; i < 3; ++i) {
    INFO("way " << i);
    auto tokens = std::vector<Token>(prompt.begin(), prompt.begin() + 100);
    tokens.insert(tokens.end(), prompt.begin() + std::ptrdiff_t(ways[i]),
                  prompt.begin() + std::ptrdiff_t(ways[i]) + 30);
    tokens.push_back(7);
    Session alone(shared, {.n_context = 256, .n_threads = 1});
    CHECK(same_bits(sessions[i]->decode(7), alone.prefill(tokens)));
  }
  if (kind != CacheKind::paged) return;
  // Three blocks each, of which the first is everybody's; the second was copied for two of them.
  const auto counts = session.cache().paged()->pool()->counts();
  CHECK(counts.n_used == 1 + 3 * 2);
  CHECK(counts.n_shared == 1);
  CHECK(counts.n_copied == 2);
}

TEST_CASE("kinds: sessions on one pool, and what does not fit them", "[control]") {
  const auto shared = model(data("tiny/llama_gqa/model-f32.gguf"));
  const auto prompt = spread_tokens(*shared, 130);
  const auto pool = std::make_shared<BlockPool>(shared->transformer().kv_layout(DType::f16), 4);
  Session one(shared, {.cache = CacheKind::paged, .pool = pool, .chunk = 64});
  Session other(shared, {.cache = CacheKind::paged, .pool = pool, .chunk = 64});
  one.prefill(prompt);
  CHECK(error_of([&] { other.prefill(prompt); }).kind() == ErrorKind::out_of_blocks);
  CHECK(other.length() == 0);
  CHECK(pool->counts().n_used == 3);  // what its first chunk took is given back
  one.truncate(60);
  other.prefill(prompt);
  CHECK(pool->counts().n_used == 4);
  CHECK(error_of([&] { Session(shared, {.pool = pool}); }).kind() == ErrorKind::bad_argument);
  CHECK(error_of([&] { Session(shared, {.kv_type = DType::f32, .cache = CacheKind::paged, .pool = pool}); }).kind() ==
        ErrorKind::bad_argument);
  CHECK(error_of([&] { Session(shared, {.cache = CacheKind(9)}); }).kind() == ErrorKind::bad_argument);
}
