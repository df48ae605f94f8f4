// What a sliding window saves, what it costs, and what attention sinks are for.
//
//   everything        a token looks at all tokens before it: the cache grows with the text
//   window            ... at the last W only: the cache stays as it is, however long the text gets
//   window and sinks  ... and at the first S tokens besides                                     arXiv:2309.17453
//
// A model that was trained to see everything leans on the first tokens; when they fall out of the window it stumbles,
// and a few sinks prevent that. But what has left the window is gone: at the end the text begins again, word for word,
// which only a model that still sees the beginning finds easy to foretell.
//
//   sliding_window --window 64 --sinks 4 --context 32768
#include <string>
#include <vector>

#include "common/logit_measures.hpp"
#include "common/sample_text.hpp"
#include "common/table.hpp"
#include "vitrine/engine/session.hpp"

using example::fixed, example::scaled, vitrine::concat, vitrine::Token;

struct Way {
  std::string name;
  std::int64_t window = 0, sinks = 0;
  std::size_t bytes = 0;
  double perplexity = 0, repetition = 0;  // of the text behind the first window; of its beginning, read again
};

struct Mean {
  double sum = 0, n = 0;
  void add(double value) { sum += value, n += 1; }
  double perplexity() const { return std::exp(sum / n); }
};

static void compare(const example::Arguments& args) {
  const auto window = args.get<std::int64_t>("window", 1, 1 << 20), sinks = args.get<std::int64_t>("sinks", 1, 256);
  const auto context = args.get<std::int64_t>("context", 1, 1 << 24);
  const auto model = example::load_model(args);
  auto tokens = example::text_tokens(args, *model, args.get<std::int64_t>("tokens", 2, 1 << 20));
  const auto n_text = std::int64_t(tokens.size()), n_known = std::int64_t(8),
             n_again = std::min<std::int64_t>(48, n_text);
  example::expect(n_text > window + sinks, concat("--window and --sinks: expected less than the text's ", n_text,
                                                  " tokens, got ", window, " + ", sinks));
  example::expect(n_again > n_known, concat("--text: expected more than ", n_known, " tokens, got ", n_text));
  example::expect(context >= n_text + n_again,
                  concat("--context: expected at least ", n_text + n_again, ", the text and its beginning again, got ",
                         context, "; a larger --context or fewer --tokens help"));
  for (std::int64_t i = 0; i < n_again; ++i) tokens.push_back(tokens[std::size_t(i)]);

  std::vector<Way> ways = {{"everything"}, {concat("window ", window), window}};
  ways.push_back({concat("window ", window, " + ", vitrine::counted(sinks, "sink")), window, sinks});
  for (auto& way : ways) {
    vitrine::Session session(model, {.n_context = context,
                                     .n_threads = args.threads(),
                                     .cache = vitrine::CacheKind::ring,
                                     .window = way.window,
                                     .sinks = way.sinks,
                                     .chunk = 64});
    Mean far, again;
    session.prefill_logits(tokens, [&](std::int64_t position, std::span<const float> logits) {
      const auto next = position + 1;  // foretold by what was read up to `position`
      if (next == std::int64_t(tokens.size())) return;
      if (next >= window + sinks && next < n_text) far.add(example::surprise(logits, tokens[std::size_t(next)]));
      if (next >= n_text + n_known) again.add(example::surprise(logits, tokens[std::size_t(next)]));
    });
    way.bytes = session.kv_bytes();
    way.perplexity = far.perplexity();
    way.repetition = again.perplexity();
  }

  if (args.json()) {
    example::json out = {{"text_tokens", n_text}, {"context", context}};
    for (const auto& way : ways)
      out["ways"].push_back({{"window", way.window},
                             {"sinks", way.sinks},
                             {"kv_bytes", way.bytes},
                             {"perplexity", way.perplexity},
                             {"perplexity_of_repetition", way.repetition}});
    return example::print_json(out);
  }
  example::Table table({"a token looks at", concat("cache for ", example::grouped(double(context)), " tokens"),
                        "perplexity", "beginning again"});
  for (const auto& way : ways)
    table.row({way.name, scaled(double(way.bytes), "B"), fixed(way.perplexity, 1), fixed(way.repetition, 1)});
  table.print();

  const auto &all = ways[0], &bare = ways[1], &with = ways[2];
  const auto harm = [&](const Way& way) {
    const double factor = way.perplexity / all.perplexity;
    return factor < 1.005 ? std::string("leaves it as it is") : concat("multiplies it by ", fixed(factor, 2));
  };
  example::what_to_notice(
      concat("For ", example::grouped(double(context)), " tokens the window's cache takes ",
             fixed(double(all.bytes) / double(with.bytes), 1),
             " times less memory than one for everything. The text behind the first ", window + sinks,
             " tokens has a perplexity of ", fixed(all.perplexity, 1), ": the bare window ", harm(bare), ", with ",
             vitrine::counted(sinks, "sink"), " it ", harm(with),
             ". Sinks bring nothing back that has left the window: words read before have a perplexity of ",
             fixed(with.repetition, 1), " when they come again, and of ", fixed(all.repetition, 1),
             " for a model that still sees them."));
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    example::add_text_option(add);
    add("tokens", "of the text at most", cxxopts::value<std::int64_t>()->default_value("2048"), "N");
    add("window", "tokens that a token looks at, itself included", cxxopts::value<std::int64_t>()->default_value("64"),
        "N");
    add("sinks", "first tokens that stay visible", cxxopts::value<std::int64_t>()->default_value("4"), "N");
    add("context", "tokens that the caches are made for", cxxopts::value<std::int64_t>()->default_value("4096"), "N");
  };
  return example::run(argc, argv, {"sliding_window", "Sliding windows and attention sinks", options, compare});
}
