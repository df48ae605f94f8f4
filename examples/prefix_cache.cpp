// What a prefix cache is for: the second request with the same long beginning is answered at once.
//
// The first request computes keys and values of its whole prompt and leaves them, in blocks of 64 tokens, where later
// requests look first. These compute only what is new, at least the last token, and give the same bits.
//
//   prefix_cache --common_tokens 1000 --own_tokens 20 --requests 4
#include "vitrine/engine/prefix_cache.hpp"

#include <cstring>
#include <string>
#include <vector>

#include "common/model.hpp"
#include "common/table.hpp"
#include "vitrine/engine/timings.hpp"

using example::fixed, vitrine::concat;

namespace {

struct Request {
  std::int64_t n_prompt, n_cached;
  double seconds;  // to the logits of the first token
  bool same_bits;  // as without a prefix cache
};

void show(const example::Arguments& args) {
  const auto n_common = args.get<std::int64_t>("common_tokens", 1, 1 << 20),
             n_own = args.get<std::int64_t>("own_tokens", 1, 1 << 20),
             n_requests = args.get<std::int64_t>("requests", 2, 1000);
  const auto folder = args.folder("folder");
  const auto model = example::load_model(args);
  vitrine::PrefixOptions kept;
  kept.folder = folder;
  const auto prefixes = std::make_shared<vitrine::PrefixCache>(*model, kept);
  vitrine::SessionOptions options{.n_context = n_common + n_own + 1, .n_threads = args.threads()};
  vitrine::Session plain(model, options);
  options.cache = vitrine::CacheKind::paged;
  options.prefixes = prefixes;

  std::vector<Request> requests;
  for (std::int64_t i = 0; i < n_requests; ++i) {
    auto prompt = example::any_tokens(*model, n_common + n_own);
    for (auto t = std::size_t(n_common); t < prompt.size(); ++t)
      prompt[t] = example::Token((std::int64_t(t) * 31 + i * 977) % model->config().n_vocab);
    plain.reset();
    const auto expected = plain.prefill(prompt);
    vitrine::Session session(model, options);
    const vitrine::Stopwatch watch;
    const auto logits = session.prefill(prompt);
    const double seconds = watch.seconds();
    const bool same = std::memcmp(logits.data(), expected.data(), logits.size_bytes()) == 0;
    requests.push_back({std::int64_t(prompt.size()), session.n_cached_tokens(), seconds, same});
  }
  const auto counts = prefixes->counts();
  if (const auto failure = prefixes->last_failure(); !failure.empty())
    std::cerr << "prefixes: " << vitrine::counted(counts.n_refused, "file") << " refused, " << counts.n_writes_failed
              << " not written; the last: " << failure << '\n';
  bool all_same = true;
  for (const auto& request : requests) all_same = all_same && request.same_bits;

  if (args.json()) {
    auto rows = example::json::array();
    for (const auto& request : requests)
      rows.push_back({{"prompt_tokens", request.n_prompt},
                      {"cached_tokens", request.n_cached},
                      {"ttft_ms", 1000 * request.seconds},
                      {"bit_identical", request.same_bits}});
    example::print_json({{"requests", rows},
                         {"hits", counts.n_hits},
                         {"blocks", counts.n_blocks},
                         {"files_read", counts.n_read},
                         {"files_written", counts.n_written},
                         {"files_refused", counts.n_refused},
                         {"files_not_written", counts.n_writes_failed}});
  } else {
    example::Table table({"request", "prompt", "cached", "computed", "time to first token"}, 0);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto& request = requests[i];
      table.row({std::to_string(i + 1), std::to_string(request.n_prompt), std::to_string(request.n_cached),
                 std::to_string(request.n_prompt - request.n_cached), fixed(1000 * request.seconds, 2) + " ms"});
    }
    table.print();
    if (!folder.empty()) std::cout << counts.n_read << " blocks read, " << counts.n_written << " written\n";
    const auto &first = requests[0], &second = requests[1];
    const double ratio = first.seconds / second.seconds;
    example::what_to_notice(concat(
        "The second request computed ", second.n_prompt - second.n_cached, " of its ", second.n_prompt, " tokens, ",
        first.n_cached > 0 ? concat("the first, with what was on disk, ", first.n_prompt - first.n_cached)
                           : "the first all",
        "; its first token came after ", fixed(1000 * second.seconds, 1), " ms instead of ",
        fixed(1000 * first.seconds, 1), ", ",
        ratio > 1.05 ? concat(example::rounded(ratio), " times as fast") : std::string("no faster here"),
        ". The logits of all ", requests.size(), " requests are ",
        all_same ? "bit-identical to those computed anew." : "NOT those computed anew."));
  }
  vitrine::check(all_same, vitrine::ErrorKind::numeric_failure, "logits: not the same with the prefix cache");
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    add("common_tokens", "tokens that all prompts begin with", cxxopts::value<std::int64_t>()->default_value("1000"),
        "N");
    add("own_tokens", "tokens of each request's own", cxxopts::value<std::int64_t>()->default_value("20"), "N");
    add("requests", "requests, one after the other, 2 at least", cxxopts::value<std::int64_t>()->default_value("4"),
        "N");
    add("folder", "keep prefixes on disk, too: run it twice", cxxopts::value<std::string>()->default_value(""), "PATH");
  };
  return example::run(argc, argv, {"prefix_cache", "Prompts that begin alike, with a prefix cache", options, show});
}
