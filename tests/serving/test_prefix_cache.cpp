// Prefixes: what is reused, by whom, and that nobody can tell from the logits.
#include <thread>

#include "support/bits.hpp"
#include "support/temporary_folder.hpp"
#include "vitrine/engine/engine.hpp"

using namespace support;

namespace {

std::vector<float> logits_of(const std::vector<Token>& prompt) {
  Session session(tiny(), {.n_threads = 1});
  return copy(session.prefill(prompt));
}

std::vector<Token> first(const std::vector<Token>& tokens, std::int64_t n) {
  return {tokens.begin(), tokens.begin() + n};
}

}  // namespace

TEST_CASE("a prompt sent again, a part of it, and one that goes on are answered with the same bits") {
  for (const auto kind : {CacheKind::contiguous, CacheKind::paged}) {
    INFO(cache_kind_name(kind));
    const auto prefixes = std::make_shared<PrefixCache>(*tiny(), PrefixOptions{});
    const SessionOptions options{.n_threads = 1, .cache = kind, .prefixes = prefixes, .chunk = 50};
    const auto prompt = some_tokens(200);
    struct Case {
      std::vector<Token> tokens;
      std::int64_t cached;
    };
    auto other = prompt;
    other[100] = 300;
    for (const auto& [tokens, cached] : std::vector<Case>{{prompt, 0},
                                                          {prompt, 192},
                                                          {first(prompt, 12), 11},
                                                          {first(prompt, 128), 127},
                                                          {first(prompt, 129), 128},
                                                          {first(prompt, 1), 0},
                                                          {other, 100},
                                                          {some_tokens(201), 192},
                                                          {some_tokens(200, 6), 0}}) {
      INFO(tokens.size() << " tokens");
      Session session(tiny(), options);
      CHECK(same_bits(session.prefill(tokens), logits_of(tokens)));
      CHECK(session.n_cached_tokens() == cached);
      CHECK(session.n_pass_tokens() == std::int64_t(tokens.size()) - cached);
    }
    CHECK(prefixes->counts().n_hits == 6);
    // Nothing was copied but blocks that were reused in part: three of the cases above.
    if (kind == CacheKind::paged) CHECK(prefixes->pool()->counts().n_copied == 3);
  }
}

TEST_CASE("what was generated is reused by the next turn, in the same session and in others") {
  const auto prefixes = std::make_shared<PrefixCache>(*tiny(), PrefixOptions{});
  const SessionOptions options{.n_threads = 1, .cache = CacheKind::paged, .prefixes = prefixes};
  Session session(tiny(), options);
  auto tokens = some_tokens(60);
  auto logits = session.prefill(tokens);
  for (int step = 0; step < 100; ++step) {
    tokens.push_back(best(logits));
    logits = session.decode(tokens.back());
  }
  for (int i = 0; i < 20; ++i) tokens.push_back(i);
  Session next(tiny(), options);
  CHECK(same_bits(next.prefill(tokens), logits_of(tokens)));
  CHECK(next.n_cached_tokens() == 128);
  // A session that goes back takes what it lacks: it holds 40 of these 180 tokens.
  session.truncate(40);
  CHECK(same_bits(session.prefill(std::span(tokens).subspan(40)), logits_of(tokens)));
  CHECK(session.n_cached_tokens() == 88);
  // All logits wanted, or a removed range behind it: nothing is taken, nothing given.
  Session edited(tiny(), options);
  edited.prefill(tokens);
  edited.remove_range(5, 10);
  edited.prefill(some_tokens(80));
  const auto n_blocks = prefixes->counts().n_blocks;
  CHECK(edited.n_cached_tokens() == 0);
  CHECK(prefixes->counts().n_blocks == n_blocks);
  Session fresh(tiny(), {.n_threads = 1});
  CHECK(same_bits(next.prefill(some_tokens(3)), [&] {
    auto all = tokens;
    for (const auto token : some_tokens(3)) all.push_back(token);
    return logits_of(all);
  }()));
  auto result = generate(next, some_tokens(9), {.max_new_tokens = 3, .ignore_end = true}, [](auto&) { return true; });
  CHECK(result.timings.cached_tokens == 0);
  next.reset();
  result = generate(next, tokens, {.max_new_tokens = 3, .ignore_end = true}, [](auto&) { return true; });
  CHECK(result.timings.cached_tokens == 179);
}

TEST_CASE("memory stays within the limit, and a full pool takes it back") {
  const auto layout = tiny()->transformer().kv_layout(DType::f16);
  const auto prefixes = std::make_shared<PrefixCache>(*tiny(), PrefixOptions{.limit_bytes = 3 * layout.block_bytes()});
  for (int seed = 0; seed < 5; ++seed) {
    Session session(tiny(), {.n_threads = 1, .prefixes = prefixes});
    session.prefill(some_tokens(130, seed));
    CHECK(prefixes->counts().n_blocks <= 3);
    CHECK(prefixes->pool()->counts().n_used <= 3);
  }
  CHECK(prefixes->counts().n_evicted == 10 - 3);

  const auto pool = std::make_shared<BlockPool>(layout, 4);
  const auto shared = std::make_shared<PrefixCache>(*tiny(), PrefixOptions{.pool = pool});
  const SessionOptions options{.n_threads = 1, .cache = CacheKind::paged, .prefixes = shared, .chunk = 64};
  for (int seed = 0; seed < 4; ++seed) {
    Session session(tiny(), options);
    CHECK(same_bits(session.prefill(some_tokens(200, seed)), logits_of(some_tokens(200, seed))));
  }
  CHECK(shared->counts().n_evicted >= 9);
  Session one(tiny(), options), two(tiny(), options);
  one.prefill(some_tokens(200));
  CHECK(error_of([&] { two.prefill(some_tokens(70, 1)); }).kind() == ErrorKind::out_of_blocks);
}

TEST_CASE("a folder keeps prefixes for other processes, and a damaged file is no prefix") {
  const TemporaryFolder folder("prefixes");
  const auto prompt = some_tokens(200), expected_tokens = some_tokens(201);
  const auto expected = logits_of(prompt);
  const auto open = [&] { return std::make_shared<PrefixCache>(*tiny(), PrefixOptions{.folder = folder.path}); };
  const auto request = [&](const std::shared_ptr<PrefixCache>& prefixes, CacheKind kind,
                           const std::vector<Token>& tokens) {
    Session session(tiny(), {.n_threads = 1, .cache = kind, .prefixes = prefixes});
    CHECK(same_bits(session.prefill(tokens), logits_of(tokens)));
    return session.n_cached_tokens();
  };
  const auto writer = open();
  CHECK(request(writer, CacheKind::paged, prompt) == 0);
  CHECK(writer->counts().n_written == 3);
  CHECK(folder.files().size() == 3);
  for (const auto kind : {CacheKind::paged, CacheKind::contiguous}) {
    const auto reader = open();
    CHECK(request(reader, kind, prompt) == 192);
    CHECK(reader->counts().n_read == 3);
    CHECK(request(reader, kind, first(prompt, 128)) == 127);
    CHECK(reader->counts().n_read == 3);  // it is in memory now
    CHECK(reader->counts().n_written == 0);
  }
  // Cut or damaged anywhere: refused, removed, and written anew.
  for (const auto& file : folder.files())
    for (const int damage : {0, 1, 2, 3}) {
      std::string bytes;
      {
        std::ifstream in(file, std::ios::binary);
        bytes.assign(std::istreambuf_iterator<char>(in), {});
      }
      auto damaged = bytes;
      if (damage == 0) damaged.resize(bytes.size() / 2);
      if (damage == 1) damaged[bytes.size() / 2] ^= 1;
      if (damage == 2) damaged += '!';
      if (damage == 3) damaged[60] ^= 1;
      std::ofstream(file, std::ios::binary) << damaged;
      const auto reader = open();
      CHECK(request(reader, CacheKind::paged, prompt) < 192);
      CHECK(reader->counts().n_refused == 1);
      CHECK(reader->counts().n_written == 1);
      std::ifstream in(file, std::ios::binary);
      CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == bytes);
    }
  // Another model finds nothing in it.
  const auto other = model(data("tiny/llama_gqa/model-f16.gguf"));
  const auto foreign = std::make_shared<PrefixCache>(*other, PrefixOptions{.folder = folder.path});
  Session session(other, {.n_threads = 1, .prefixes = foreign});
  session.prefill(prompt);
  CHECK(session.n_cached_tokens() == 0);
  CHECK(folder.files().size() == 6);
  // With a limit, the files that were used longest ago go first; a block that no file may hold is no failure.
  const auto one = fs::file_size(folder.files()[0]);
  const auto small = std::make_shared<PrefixCache>(
      *tiny(), PrefixOptions{.folder = folder.path, .folder_limit_bytes = 2 * std::size_t(one) + 2000});
  CHECK(folder.files().size() == 2);
  request(small, CacheKind::paged, some_tokens(200, 9));
  CHECK(folder.files().size() == 2);
  CHECK(small->counts().n_written == 3);
  std::ofstream(folder.path / "a file") << "x";
  CHECK(error_of([&] { PrefixCache(*tiny(), PrefixOptions{.folder = folder.path / "a file"}); }).kind() ==
        ErrorKind::io);
}

TEST_CASE("all damaged files of a prompt are replaced by the first request that needs them") {
  const TemporaryFolder folder("prefixes-damaged");
  const auto prompt = some_tokens(200);
  const auto request = [&] {
    const auto prefixes = std::make_shared<PrefixCache>(*tiny(), PrefixOptions{.folder = folder.path});
    Session session(tiny(), {.n_threads = 1, .prefixes = prefixes});
    session.prefill(prompt);
    return prefixes;
  };
  CHECK(request()->last_failure().empty());
  for (const auto& file : folder.files()) fs::resize_file(file, fs::file_size(file) / 2);
  const auto prefixes = request();
  CHECK(prefixes->counts().n_refused == 3);
  CHECK(prefixes->counts().n_written == 3);
  CHECK_THAT(prefixes->last_failure(), Catch::Contains(folder.path.string()) && Catch::Contains("ends in the middle"));
  const auto healed = request();
  CHECK((healed->counts().n_read == 3 && healed->counts().n_refused == 0));
}

TEST_CASE("a folder in which no file can be written is refused, and a file that cannot be written is counted") {
  const auto unwritable = [](const fs::path& path) {
    return error_of([&] { PrefixCache(*tiny(), PrefixOptions{.folder = path}); });
  };
  if (fs::exists("/proc/self")) {  // a folder in which nobody may write
    CHECK(unwritable("/proc/self").kind() == ErrorKind::io);
    CHECK_THAT(unwritable("/proc/self").what(), Catch::Contains("/proc/self: ") && Catch::Contains("no file can"));
    CHECK(error_of([] { Engine(tiny(), {.prefixes = PrefixOptions{.folder = "/proc/self"}}); }).kind() ==
          ErrorKind::io);
  }
  const TemporaryFolder folder("prefixes-gone");
  PrefixOptions options{.folder = folder.path};
  const auto prefixes = std::make_shared<PrefixCache>(*tiny(), options);
  Engine engine(tiny(), {.n_threads = 1, .prefixes = options});
  CHECK(folder.files().empty());  // nothing of the trial is left
  fs::remove_all(folder.path);
  std::ofstream(folder.path) << "a file where the folder was";
  Session session(tiny(), {.n_threads = 1, .prefixes = prefixes});
  CHECK(same_bits(session.prefill(some_tokens(200)), logits_of(some_tokens(200))));
  CHECK((prefixes->counts().n_writes_failed == 3 && prefixes->counts().n_refused == 0));
  CHECK_THAT(prefixes->last_failure(), Catch::Contains(folder.path.string()) && Catch::Contains("cannot be written"));
  engine.submit(some_tokens(200), {.max_new_tokens = 2, .ignore_end = true}).wait();
  engine.drain();
  CHECK(engine.metrics().prefix_files_not_written_total == 3);
  CHECK(engine.metrics().prefix_files_refused_total == 0);
  CHECK_THAT(engine.metrics().prefix_last_failure, Catch::Contains("cannot be written"));
}

TEST_CASE("what does not go together is refused") {
  const auto prefixes = std::make_shared<PrefixCache>(*tiny(), PrefixOptions{});
  const auto other = model(data("tiny/llama_gqa/model-f16.gguf"));
  CHECK(error_of([&] { Session(other, {.prefixes = prefixes}); }).kind() == ErrorKind::bad_argument);
  CHECK(error_of([&] { Session(tiny(), {.kv_type = DType::f32, .prefixes = prefixes}); }).kind() ==
        ErrorKind::bad_argument);
  CHECK(error_of([&] { Session(tiny(), {.cache = CacheKind::ring, .prefixes = prefixes}); }).kind() ==
        ErrorKind::bad_argument);
  CHECK(error_of([&] { PrefixCache(*tiny(), PrefixOptions{.limit_bytes = 10}); }).kind() == ErrorKind::bad_argument);
  CHECK(error_of([&] {
          PrefixCache(*tiny(), PrefixOptions{.kv_type = DType::f32, .pool = prefixes->pool()});
        }).kind() == ErrorKind::bad_argument);
}

TEST_CASE("sessions on several threads share prefixes") {
  const auto prefixes = std::make_shared<PrefixCache>(
      *tiny(), PrefixOptions{.limit_bytes = 6 * tiny()->transformer().kv_layout(DType::f16).block_bytes()});
  std::vector<std::vector<float>> expected;
  for (int seed = 0; seed < 4; ++seed) expected.push_back(logits_of(some_tokens(150, seed)));
  std::vector<int> n_different(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 12; ++round) {
        Session session(
            tiny(),
            {.n_threads = 1, .cache = round % 2 ? CacheKind::paged : CacheKind::contiguous, .prefixes = prefixes});
        const int seed = (round + int(i)) % 4;
        n_different[i] += !same_bits(session.prefill(some_tokens(150, seed)), expected[std::size_t(seed)]);
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(n_different == std::vector<int>(4, 0));
  CHECK(prefixes->counts().n_hits > 0);
  CHECK(prefixes->counts().n_evicted > 0);
}
