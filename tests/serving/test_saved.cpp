// Saved sessions: the same bits afterwards; what is cut, damaged or foreign is refused and changes nothing.
#include <fstream>
#include <sstream>

#include "support/bits.hpp"
#include "vitrine/core/version.hpp"

using namespace support;

namespace {

std::string saved(const Session& session) {
  std::ostringstream out;
  session.save(out);
  return out.str();
}

Error refused(Session& session, const std::string& file) {
  std::istringstream in(file);
  return error_of([&] { session.load(in); });
}

}  // namespace

TEST_CASE("a restored session goes on with the same bits") {
  for (const char* path : {"tiny/llama_gqa/model-f32.gguf", "tiny/mistral_swa", "tiny/gemma3/model-f32.gguf"})
    for (const auto kind : all_cache_kinds)
      for (const std::int64_t n : {0, 1, 63, 64, 130, 200}) {
        const auto types = n % 2 ? KvTypes(DType::int8, DType::int4) : n == 64 ? KvTypes(DType::int4) : DType::f16;
        const bool sinks = n == 200;
        INFO(path << ", " << cache_kind_name(kind) << ", " << n << " tokens of " << types.name());
        const auto shared = model(data(path));
        const SessionOptions options{.n_context = 256,
                                     .n_threads = 1,
                                     .kv_type = types,
                                     .cache = kind,
                                     .window = sinks ? 20 : 0,
                                     .sinks = sinks ? 4 : 0,
                                     .chunk = 16};
        Session session(shared, options), other(shared, options);
        if (n > 0) session.prefill(some_tokens(n));
        const auto file = saved(session);
        CHECK(file == saved(session));  // nothing in it depends on chance
        other.prefill(some_tokens(17));
        std::istringstream in(file + "what follows is not touched");
        other.load(in);
        CHECK(other.length() == n);
        CHECK(std::equal(other.tokens().begin(), other.tokens().end(), session.tokens().begin()));
        CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == "what follows is not touched");
        CHECK(saved(other) == file);
        const auto n_before = other.n_pass_tokens();
        CHECK(same_bits(other.decode(7), session.decode(7)));
        CHECK(other.n_pass_tokens() == n_before + 1);  // nothing was computed again
        for (int step = 0; step < (is_sanitized ? 4 : 40); ++step)
          CHECK(same_bits(other.decode(step), session.decode(step)));
        other.truncate(n / 2);
        session.truncate(n / 2);
        CHECK(same_bits(other.decode(9), session.decode(9)));
      }
}

TEST_CASE("a file that is cut at any byte, or damaged in any byte, is refused and the session is as it was") {
  for (const auto kind : all_cache_kinds) {
    INFO(cache_kind_name(kind));
    const auto shared = model(data("tiny/mistral_swa"));
    const SessionOptions options{.n_context = 128, .n_threads = 1, .cache = kind, .chunk = 8};
    Session session(shared, options), other(shared, options);
    session.prefill(some_tokens(3));
    const auto file = saved(session);
    other.prefill(some_tokens(70));
    const auto before = saved(other);
    int n_wrong = 0;
    constexpr std::size_t slow = is_sanitized ? 9 : 1;
    for (std::size_t n = 0; n < file.size(); n += n < 300 ? 1 : slow)
      n_wrong += refused(other, file.substr(0, n)).kind() != ErrorKind::bad_file;
    CHECK(n_wrong == 0);
    const std::size_t step = slow * (file.size() > 4000 ? 7 : 1);
    for (std::size_t at = 0; at < file.size(); at += at < 300 ? 1 : step) {
      auto damaged = file;
      damaged[at] = char(damaged[at] ^ (at % 2 ? 1 : 0x80));
      const auto found = refused(other, damaged).kind();
      n_wrong += found != ErrorKind::bad_file && found != ErrorKind::context_full && found != ErrorKind::out_of_memory;
    }
    CHECK(n_wrong == 0);
    CHECK(saved(other) == before);
    if (kind == CacheKind::paged) CHECK(other.options().pool->counts().n_used == 2);
  }
}

TEST_CASE("a stream that cannot be read is refused as such") {
  Session session(tiny());
  std::ifstream none("no such file");
  const auto error = error_of([&] { session.load(none); });
  CHECK(error.kind() == ErrorKind::io);
  CHECK_THAT(error.what(), Catch::Contains("expected a stream that can be read"));
}

TEST_CASE("a file of another model, arithmetic, type, kind or length is refused by name") {
  Session session(tiny(), {.n_context = 128});
  session.prefill(some_tokens(100));
  const auto file = saved(session);
  using Catch::Matchers::Contains;
  const auto refuses = [&](Session other, ErrorKind kind, const std::string& named) {
    other.prefill(some_tokens(5));
    const auto error = refused(other, file);
    CHECK(error.kind() == kind);
    CHECK_THAT(error.what(), Contains(named));
    CHECK(other.length() == 5);
  };
  refuses(Session(model(data("tiny/llama_gqa/model-f16.gguf"))), ErrorKind::bad_file, "model");
  refuses(Session(tiny(), {.kv_type = DType::f32}), ErrorKind::bad_file, "F32");
  refuses(Session(tiny(), {.cache = CacheKind::paged}), ErrorKind::bad_file, "paged");
  refuses(Session(tiny(), {.n_context = 99}), ErrorKind::context_full, "100 tokens");
  auto older = file;
  const auto at = file.find("arithmetic " + std::to_string(arithmetic_version));
  REQUIRE(at != std::string::npos);
  older[at + 11] = '0';
  const auto error = refused(session, older);
  CHECK(error.kind() == ErrorKind::bad_file);
  CHECK_THAT(error.what(), Contains("arithmetic 0") && Contains("arithmetic " + std::to_string(arithmetic_version)));
  CHECK(saved(session) == file);
  Session exact(tiny(), {.n_context = 100});
  std::istringstream in(file);
  exact.load(in);
  CHECK(exact.length() == 100);

  std::ostringstream full;
  full.setstate(std::ios::badbit);
  CHECK(error_of([&] { session.save(full); }).kind() == ErrorKind::io);
  CHECK(refused(session, "").kind() == ErrorKind::bad_file);
}

TEST_CASE("models have the same fingerprint when all their weights are the same") {
  const auto one = Model::load(data("tiny/llama_gqa/model-f32.gguf"));
  CHECK(one->fingerprint() == tiny()->fingerprint());
  CHECK(one->fingerprint() == model(data("tiny/llama_gqa"))->fingerprint());  // the same weights from safetensors
  CHECK(one->fingerprint() != model(data("tiny/llama_gqa/model-f16.gguf"))->fingerprint());
  auto loaded = load_model_files(data("tiny/llama_gqa/model-f32.gguf"));
  loaded.weights.layers.back().feed_forward_norm[5] += 1;
  CHECK(Model(Transformer(std::move(loaded)), tiny()->tokenizer()).fingerprint() != one->fingerprint());
}
