// Sessions: bounds, roll-back, cancellation, sharing of models, moving.
#include <cfenv>
#include <cmath>
#include <limits>
#include <thread>

#include "support/bits.hpp"
#include "vitrine/cache/contiguous.hpp"

using namespace support;

namespace {

using Catch::Matchers::Contains;

}  // namespace

TEST_CASE("a session's defaults and limits") {
  Session session(tiny());
  CHECK(session.context() == 256);  // what the model was trained for
  CHECK(session.options().n_threads >= 1);
  CHECK(Session(tiny(), {.n_context = 1000, .n_threads = 1}).options().chunk == 256);
  CHECK(Session(tiny(), {.n_context = 1000, .n_threads = 2}).options().chunk == 512);
  CHECK(session.length() == 0);
  // layers x tokens x KV heads x head dim x bytes x 2
  CHECK(session.kv_bytes() == std::size_t(session.model().config().n_layer * 256 * 2 * 16 * 2 * 2));

  for (const auto& [options, named] : std::vector<std::pair<SessionOptions, std::string>>{
           {{.n_context = -1}, "n_context"},
           {{.window = (std::numeric_limits<std::int64_t>::max)() - 257}, "window"},
           {{.n_threads = -2}, "n_threads"},
           {{.chunk = -1}, "chunk"},
           {{.kv_type = DType::q8_0}, "Q8_0"},
           {{.kv_type = DType(999)}, "unknown"},
           {{.isa = Isa(77)}, "isa: expected scalar, avx2"},
           {{.isa = Isa(-1)}, "got Isa(-1)"}}) {
    const auto error = error_of([&, &o = options] { Session refused(tiny(), o); });
    CHECK(error.kind() == ErrorKind::bad_argument);
    CHECK_THAT(error.what(), Contains(named));
  }
  CHECK(error_of([] { Session refused(nullptr); }).kind() == ErrorKind::bad_argument);
}

TEST_CASE("a context too large for the machine is refused with the numbers and what would fit") {
  const auto error = error_of([] { Session refused(tiny(), {.n_context = std::int64_t(1) << 31}); });
  CHECK(error.kind() == ErrorKind::out_of_memory);
  CHECK_THAT(error.what(), Contains("n_context <= ") && Contains("needs"));
}

TEST_CASE("tokens outside the vocabulary are refused by index and value") {
  Session session(tiny());
  session.prefill(some_tokens(3));
  for (const Token bad : {Token(-1), Token(384), std::numeric_limits<Token>::max()}) {
    const auto error = error_of([&] { session.prefill(std::vector<Token>{1, bad}); });
    CHECK(error.kind() == ErrorKind::bad_argument);
    CHECK_THAT(error.what(), Contains("index 1") && Contains(std::to_string(bad)));
  }
  CHECK(error_of([&] { session.prefill({}); }).kind() == ErrorKind::bad_argument);
  CHECK(session.length() == 3);
}

TEST_CASE("what does not fit the context is refused, never cut") {
  Session session(tiny(), {.n_context = 10});
  session.prefill(some_tokens(4));
  const auto error = error_of([&] { session.prefill(some_tokens(7)); });
  CHECK(error.kind() == ErrorKind::context_full);
  CHECK_THAT(error.what(), Contains("7 tokens") && Contains("4 of 10"));
  CHECK(session.length() == 4);
  session.prefill(some_tokens(6));
  const auto full = error_of([&] { session.decode(1); });
  CHECK(full.kind() == ErrorKind::context_full);
  CHECK_THAT(full.what(), Contains("1 token does not fit"));
  CHECK(session.length() == 10);
}

TEST_CASE("truncate and reset: what follows has the bits of a fresh session") {
  const auto prompt = some_tokens(30);
  Session fresh(tiny());
  const auto expected = copy(fresh.prefill(std::span(prompt).first(20)));
  Session session(tiny());
  session.prefill(prompt);
  session.truncate(13);
  CHECK(session.length() == 13);
  CHECK(same_bits(session.prefill(std::span(prompt).subspan(13, 7)), expected));
  session.reset();
  CHECK(session.length() == 0);
  CHECK(same_bits(session.prefill(std::span(prompt).first(20)), expected));
  for (const std::int64_t bad : {-1, 21})
    CHECK(error_of([&] { session.truncate(bad); }).kind() == ErrorKind::bad_argument);
  CHECK(session.length() == 20);
}

TEST_CASE("the logits of all positions are those that a prefill up to there gives") {
  const auto prompt = some_tokens(21);
  Session all(tiny());
  std::int64_t expected_position = 0;
  all.prefill_logits(prompt, [&](std::int64_t position, std::span<const float> logits) {
    CHECK(position == expected_position++);
    Session up_to_here(tiny());
    CHECK(same_bits(logits, up_to_here.prefill(std::span(prompt).first(std::size_t(position) + 1))));
  });
  CHECK(expected_position == 21);
  CHECK(all.length() == 21);
}

TEST_CASE("the logits of all positions come with progress, and the call can be stopped like a prefill") {
  const auto prompt = some_tokens(40);
  for (const bool use_cache : {true, false}) {
    INFO((use_cache ? "with" : "without") << " cache");
    Session session(tiny(), {.n_threads = 1, .use_cache = use_cache});
    session.prefill(std::span(prompt).first(3));
    const std::int64_t first = use_cache ? 0 : 3;  // without a cache the tokens before are computed again
    std::vector<std::int64_t> done;
    const auto note = [&](const ProgressEvent& event) {
      CHECK(event.phase == "prefill");
      CHECK(event.total == 37 + first);
      done.push_back(event.done);
    };
    std::stop_source source;
    std::int64_t n_seen = 0;
    const auto stop_at_once = [&](std::int64_t, std::span<const float>) {
      ++n_seen;
      source.request_stop();
    };
    const auto rest = std::span(prompt).subspan(3);
    const auto error = error_of([&] { session.prefill_logits(rest, stop_at_once, source.get_token(), note); });
    CHECK(error.kind() == ErrorKind::cancelled);
    CHECK(n_seen == 16 - first);  // the tokens of the first pass only
    CHECK(done == std::vector<std::int64_t>{16});
    CHECK(session.length() == 3);
    done.clear();
    n_seen = 0;
    session.prefill_logits(
        rest, [&](std::int64_t, std::span<const float>) { ++n_seen; }, {}, note);
    CHECK(done == std::vector<std::int64_t>{16, 32, 37 + first});
    CHECK(n_seen == 37);
    CHECK_THROWS_WITH(session.prefill_logits(some_tokens(2), [](auto...) { throw std::runtime_error("seen enough"); }),
                      "seen enough");
    CHECK(session.length() == 40);
  }
}

TEST_CASE("cancellation takes effect within a layer and leaves the session as it was") {
  std::stop_source source;
  SessionOptions options{.n_threads = 2, .chunk = 8};
  int layers_seen = 0;
  bool asked = false;
  options.trace = [&](const TraceEvent& event) {
    if (event.layer == 1 && event.name == "q") {
      asked = true;
      source.request_stop();
    }
    layers_seen += asked && event.name == "attention_norm";
  };
  Session session(tiny(), options);
  CHECK(error_of([&] { session.prefill(some_tokens(20), source.get_token()); }).kind() == ErrorKind::cancelled);
  CHECK(asked);
  CHECK(layers_seen == 0);  // no further layer was begun
  CHECK(session.length() == 0);
  Session other(tiny(), {.n_threads = 2});
  const auto expected = copy(other.prefill(some_tokens(20)));
  CHECK(same_bits(session.prefill(some_tokens(20)), expected));
}

TEST_CASE("an observer that throws ends the call with its exception and leaves the session usable") {
  SessionOptions options{.n_threads = 2};
  bool angry = true;
  options.trace = [&](const TraceEvent& event) {
    if (angry && event.name == "q_rope") throw std::runtime_error("seen enough");
  };
  Session session(tiny(), options);
  CHECK_THROWS_WITH(session.prefill(some_tokens(5)), "seen enough");
  CHECK(session.length() == 0);
  angry = false;
  Session other(tiny(), {.n_threads = 1});
  const auto expected = copy(other.prefill(some_tokens(5)));
  CHECK(same_bits(session.prefill(some_tokens(5)), expected));
}

TEST_CASE("progress of a prefill counts up to the whole prompt") {
  Session session(tiny(), {.chunk = 8});
  std::vector<std::int64_t> done;
  session.prefill(some_tokens(20), {}, [&](const ProgressEvent& event) {
    CHECK(event.phase == "prefill");
    CHECK(event.total == 20);
    done.push_back(event.done);
  });
  CHECK(done == std::vector<std::int64_t>{8, 16, 20});
}

TEST_CASE("NaN in the weights is a named failure, not a token") {
  auto loaded = load_model_files(data("tiny/llama_gqa/model-f32.gguf"));
  loaded.weights.final_norm[3] = std::numeric_limits<float>::quiet_NaN();
  auto poisoned = std::make_shared<const Model>(Transformer(std::move(loaded)), tiny()->tokenizer());
  Session session(poisoned);
  const auto error = error_of([&] { session.prefill(some_tokens(5)); });
  CHECK(error.kind() == ErrorKind::numeric_failure);
  CHECK_THAT(error.what(), Contains("position 4"));
  CHECK(session.length() == 0);
}

TEST_CASE("logits come with the largest of each 64, from every kind of head, pass and number of threads") {
  std::vector<std::string> files = {"quantmodel/llama256/model-Q4_0.gguf", "quantmodel/llama256/model-Q4_1.gguf",
                                    "quantmodel/llama256/model-Q4_K_M.gguf"};
  for (const auto& folder : support::tiny_folders()) {
    const bool is_gguf = fs::exists(data("tiny/" + folder + "/model-f32.gguf"));
    files.push_back("tiny/" + folder + (is_gguf ? "/model-f32.gguf" : ""));
  }
  for (const auto& file : files)
    for (const int n_threads : {1, 3}) {
      INFO(file << ", " << n_threads << " threads");
      Session session(model(data(file)), {.n_threads = n_threads, .crowding = Crowding::ignore});
      std::int64_t n_rows = 0;
      const auto look = [&](const vitrine::Logits& logits) {
        const auto maxima = logits.block_max();
        REQUIRE(std::int64_t(maxima.size()) == vitrine::Logits::n_blocks(session.model().config().n_vocab));
        for (std::size_t i = 0; i < logits.size(); i += 64) {
          const auto end = (std::min)(logits.size(), i + 64);
          REQUIRE(maxima[i / 64] == *std::max_element(logits.begin() + i, logits.begin() + end));
        }
        ++n_rows;
      };
      look(session.prefill(some_tokens(20)));
      look(session.decode(7));
      look(session.decode(5, std::vector<Token>{6, 8}));
      look(session.decode(6));
      session.prefill_logits(some_tokens(20), [&](std::int64_t, const vitrine::Logits& logits) { look(logits); });
      CHECK(n_rows == 24);
    }
}

TEST_CASE("sessions move, and two of them share a model from two threads") {
  const auto prompt = some_tokens(25);
  const auto expected = run(tiny(), prompt, 10, {.n_threads = 1});
  Session first(tiny(), {.n_threads = 2});
  first.prefill(std::span(prompt).first(10));
  Session moved(std::move(first));
  CHECK(same_bits(moved.prefill(std::span(prompt).subspan(10)), expected.logits[0]));

  std::vector<int> differences(2, -2);
  std::vector<std::thread> threads;
  const auto shared = tiny();
  for (std::size_t i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      Session session(shared, {.n_context = 64, .n_threads = 2});
      auto logits = session.prefill(prompt);
      int different = !same_bits(logits, expected.logits[0]);
      for (std::size_t step = 0; step < 10; ++step)
        different += !same_bits(session.decode(expected.tokens[step]), expected.logits[step + 1]);
      differences[i] = different;
    });
  for (auto& thread : threads) thread.join();
  CHECK(differences == std::vector<int>{0, 0});
}

namespace {

// A host program that rounds upwards and flushes subnormals to zero (MXCSR's bits 15 and 6); ends with the object.
class ForeignFloatEnvironment {
 public:
  ForeignFloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetround(FE_UPWARD);
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | flush_bits);
  }
  ~ForeignFloatEnvironment() { std::fesetenv(&saved_); }
  bool still_there() const {
    return std::fegetround() == FE_UPWARD &&
           (__builtin_ia32_stmxcsr() & (flush_bits | 3u << 13)) == (flush_bits | 2u << 13);
  }

 private:
  static constexpr unsigned flush_bits = 1u << 15 | 1u << 6;
  std::fenv_t saved_;
};

}  // namespace

TEST_CASE("a host's rounding and flush-to-zero modes change no bit, and are still there after each call") {
  const auto prompt = some_tokens(12);
  const auto expected = run(tiny(), prompt, 3, {.n_threads = 1});
  for (const int n_threads : {1, 2}) {
    INFO(n_threads << " threads");
    Run foreign;
    bool kept = true;
    {
      const ForeignFloatEnvironment host;
      REQUIRE(host.still_there());
      Session session(tiny(), {.n_threads = n_threads});
      kept = kept && host.still_there();
      foreign.logits.push_back(copy(session.prefill(prompt)));
      kept = kept && host.still_there();
      for (const Token token : expected.tokens) {
        foreign.logits.push_back(copy(session.decode(token)));
        kept = kept && host.still_there();
      }
    }
    CHECK(kept);
    CHECK(first_difference(expected, foreign) == -1);
  }
}

TEST_CASE("a model loaded by a host with such modes is the same model") {
  const auto prompt = some_tokens(12);
  // Formats whose loading computes: rotation tables, norms of Gemma's folder, scales, conversions.
  for (const char* path : {"tiny/llama_rope_llama3/model-f32.gguf", "tiny/llama_gqa/model-f16.gguf", "tiny/gemma3",
                           "tiny/mistral_swa", "quantmodel/llama256/model-Q4_K_M.gguf"}) {
    INFO(path);
    const auto expected = run(model(data(path)), prompt, 2, {.n_threads = 1});
    std::shared_ptr<const Model> loaded;
    bool kept = false;
    {
      const ForeignFloatEnvironment host;
      loaded = Model::load(data(path));
      kept = host.still_there();
    }
    CHECK(kept);
    CHECK(first_difference(expected, run(loaded, prompt, 2, {.n_threads = 1})) == -1);
  }
}

TEST_CASE("a batch that contradicts itself, the model or its memory is refused before anything runs") {
  const auto& transformer = tiny()->transformer();
  ContiguousCache cache(transformer.kv_layout(DType::f16), 64);
  auto scratch = transformer.make_scratch(4, 64, 1);
  Tensor<float, 2> logits({1, 384});
  Team team(1);
  const auto refuses = [&](std::vector<Token> ids, SequenceSlice slice, std::vector<std::int64_t> rows,
                           const std::string& named) {
    const auto error = error_of([&] {
      transformer.forward(team, kernels(), {ids, {&slice, 1}, rows}, scratch, logits.view(), nullptr, {});
    });
    CHECK(error.kind() == ErrorKind::bad_argument);
    CHECK_THAT(error.what(), Contains(named));
  };
  const auto* of_cache = &cache.tables();
  refuses({1, 2, 3, 4, 5}, {of_cache, 0, 0, 5}, {4}, "1 to 4");
  refuses({1, 384}, {of_cache, 0, 0, 2}, {1}, "index 1");
  refuses({1, 2}, {of_cache, 0, 0, 1}, {1}, "cover 2");
  refuses({1, 2}, {of_cache, 0, 1, 1}, {1}, "rows from 0");
  refuses({1, 2}, {of_cache, 63, 0, 2}, {1}, "below 64");
  refuses({1, 2}, {of_cache, 0, 0, 2}, {2}, "0 to 1");
  refuses({1, 2}, {of_cache, 0, 0, 2}, {0, 1}, "[2, 384]");
  refuses({1, 2}, {nullptr, 0, 0, 2}, {1}, "cache");
}

TEST_CASE("a call during another call of the same session is refused and undoes nothing else") {
  Session session(tiny(), {.n_context = 64, .chunk = 8});
  const auto error =
      error_of([&] { session.prefill(some_tokens(20), {}, [&](const ProgressEvent&) { session.reset(); }); });
  CHECK(error.kind() == ErrorKind::bad_argument);
  CHECK_THAT(error.what(), Contains("one call at a time"));
  CHECK(session.length() == 0);
  CHECK(error_of([&] { session.prefill_logits(some_tokens(3), {}); }).kind() == ErrorKind::bad_argument);
  Session fresh(tiny(), {.n_context = 64});
  const auto expected = copy(fresh.prefill(some_tokens(20)));
  CHECK(same_bits(session.prefill(some_tokens(20)), expected));
}

TEST_CASE("refused memory is an Error that says for what") {
  const auto error = error_of([] { naming_memory([]() -> int { throw std::bad_alloc(); }, "a thing of ", 7); });
  CHECK(error.kind() == ErrorKind::out_of_memory);
  CHECK_THAT(error.what(), Contains("a thing of 7"));
}
