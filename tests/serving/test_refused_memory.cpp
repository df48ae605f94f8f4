// Refused memory: every allocation of a call is refused once. Each time the call ends with an Error that says so, and
// what was there before goes on with the bits that it would have had.
#include <optional>
#include <sstream>

#include "support/allocation_counts.hpp"
#include "support/bits.hpp"

using namespace support;

namespace {

const char* const llama_file = "tiny/llama_gqa/model-f32.gguf";

// Refuses allocation 0, then `step`, 2 `step`, ... of `action`, each time in a state made anew by `prepare`, until none
// is refused any more; `afterwards` looks at the state. Returns how many were refused.
template <class Prepare, class Action, class Afterwards>
std::int64_t refuse_each(std::int64_t step, Prepare&& prepare, Action&& action, Afterwards&& afterwards) {
  for (std::int64_t n = 0;; n += step) {
    auto state = prepare();
    bool refused = false, named = true;
    std::string got = "something else";
    allocations_until_refused = n;
    try {
      action(state);
    } catch (const Error& error) {
      refused = true;
      named = error.kind() == ErrorKind::out_of_memory;
      got = error.what();
    } catch (...) {
      refused = true;
      named = false;
    }
    const bool reached = allocations_until_refused < 0;
    allocations_until_refused = -1;
    if (!named) FAIL("allocation " << n << ": expected Error::out_of_memory, got " << got);
    afterwards(state, refused);
    if (!reached) return n / step;
  }
}

}  // namespace

TEST_CASE("refused memory while a model is loaded") {
  for (const char* name : {llama_file, "tiny/mistral_swa"}) {  // a GGUF file, a folder
    INFO(name);
    const auto n = refuse_each(
        is_sanitized ? 7 : 1, [] { return std::shared_ptr<const Model>(); },
        [path = data(name)](auto& loaded) { loaded = Model::load(path, {.n_threads = 1}); },
        [](auto& loaded, bool refused) { CHECK(refused == (loaded == nullptr)); });
    CHECK(n > 100);
  }
}

TEST_CASE("refused memory while a session is made, reads, writes, forks and is saved") {
  using State = std::optional<Session>;
  const auto shared = model(data(llama_file));
  const auto prompt = some_tokens(130);
  Session fresh(shared, {.n_threads = 1});
  fresh.prefill(prompt);
  const auto expected = copy(fresh.decode(7));
  for (const auto kind : all_cache_kinds) {
    INFO(cache_kind_name(kind));
    const SessionOptions options{.n_context = 256, .n_threads = 1, .cache = kind, .chunk = 32};
    const auto make = [&] { return State(std::in_place, shared, options); };
    const auto with_prompt = [&] {
      auto session = make();
      session->prefill(prompt);
      return session;
    };
    const auto goes_on = [&](State& session, bool) {
      if (session->length() == 0) session->prefill(prompt);
      if (session->length() == 130) CHECK(same_bits(session->decode(7), expected));
    };
    refuse_each(
        1, [] { return State(); }, [&](State& session) { session.emplace(shared, options); },
        [](State& session, bool refused) { CHECK(refused == !session); });
    const auto n_prefill = refuse_each(
        1, make, [&](State& session) { session->prefill(prompt); }, goes_on);
    if (kind == CacheKind::paged) CHECK(n_prefill > 0);
    refuse_each(
        1, with_prompt, [&](State& session) { session->decode(7); }, goes_on);
    State forked;
    const auto n_fork = refuse_each(
        1, with_prompt, [&](State& session) { forked.emplace(session->fork()); }, goes_on);
    CHECK(n_fork > 10);
    CHECK((!forked || same_bits(forked->decode(7), expected)));

    std::ostringstream whole;
    with_prompt()->save(whole);
    // A stream over memory that is there.
    struct Fixed : std::streambuf {
      explicit Fixed(std::string& text) {
        setp(text.data(), text.data() + text.size());
        setg(text.data(), text.data(), text.data() + text.size());
      }
    };
    std::string room(whole.str().size(), '?'), file_text = whole.str();
    refuse_each(
        1, with_prompt,
        [&](State& session) {
          Fixed buffer(room);
          std::ostream out(&buffer);
          session->save(out);
        },
        goes_on);
    CHECK(room == file_text);
    refuse_each(
        1, with_prompt,
        [&](State& session) {
          Fixed buffer(file_text);
          std::istream in(&buffer);
          session->load(in);
        },
        goes_on);
    if (kind == CacheKind::ring) continue;
    refuse_each(
        1, with_prompt, [&](State& session) { session->remove_range(5, 9); },
        [&](State& session, bool refused) {
          CHECK(session->length() == (refused ? 130 : 126));
          goes_on(session, refused);
        });
    if (kind == CacheKind::paged) CHECK(with_prompt()->options().pool->counts().n_used == 3);
  }
}

TEST_CASE("refused memory reaches no request through its prefixes") {
  const auto shared = model(data(llama_file));
  const auto prompt = some_tokens(130);
  Session fresh(shared, {.n_threads = 1});
  fresh.prefill(prompt);
  const auto expected = copy(fresh.decode(7));
  for (const bool known : {false, true}) {
    INFO((known ? "known" : "new"));
    std::shared_ptr<PrefixCache> prefixes;
    refuse_each(
        1,
        [&] {
          prefixes = std::make_shared<PrefixCache>(*shared, PrefixOptions{});
          const SessionOptions options{.n_context = 256, .n_threads = 1, .prefixes = prefixes};
          if (known) Session(shared, options).prefill(prompt);
          return std::optional<Session>(std::in_place, shared, options);
        },
        [&](auto& session) { session->prefill(prompt); },
        [&](auto& session, bool refused) {
          CHECK(!refused);  // without memory for prefixes it goes without them
          CHECK(same_bits(session->decode(7), expected));
        });
  }
}
