// Speed of the engine for many requests, in four tests:
//
//   concurrent  B requests decode at once: tokens/s of all together, over the time in which all of them decode, as
//               llama-batched-bench counts (its S_TG), and how many times that of the first B
//   arrival     N requests decode, and a long prompt arrives: how long each waits for its next token
//   prefix      a prompt, and once more after it is known: time to the first token
//   lookup      an answer that repeats its prompt, with and without guesses from the prompt
//
// arrival: the latencies of a request are the times between its tokens, as the engine's thread hands them over. They
// are put together from all N requests; those that end before the prompt is submitted are "before", those until its
// first token "during", the rest, in which it decodes as the others do, "after". Percentiles are by nearest rank. The
// ratio is p99 over the median, both of the whole run: before, during and after.
//
// Tokens are arbitrary and greedy; the median of the repetitions counts.
#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "common/averages.hpp"
#include "common/chat.hpp"
#include "common/kv_types.hpp"
#include "common/model.hpp"
#include "common/sample_text.hpp"
#include "common/table.hpp"
#include "vitrine/engine/drafter.hpp"
#include "vitrine/engine/engine.hpp"
#include "vitrine/engine/timings.hpp"

using example::fixed, example::json, example::median, example::rounded, vitrine::concat;
using vitrine::Token;

namespace {

struct Setup {
  std::shared_ptr<const vitrine::Model> model;
  vitrine::EngineOptions options;  // what all tests have in common
  std::int64_t repetitions = 1;
  std::int64_t n_prompt = 0, n_new = 0, n_arriving = 0, n_beside = 0, n_prefix = 0, n_lookup = 0;
  std::vector<std::int64_t> requests, others;
};

vitrine::GenerateOptions greedy(std::int64_t n_new) {
  return {.sampling = {.temperature = 0}, .max_new_tokens = n_new, .ignore_end = true};
}

const vitrine::RequestResult& result_of(vitrine::RequestHandle& handle) {
  const auto& result = handle.wait();
  if (result.error) std::rethrow_exception(result.error);
  return result;
}

std::string ms(double seconds) { return fixed(1000 * seconds, 2); }

json to_json(const vitrine::LatencySummary& summary) {
  return {{"count", summary.count}, {"mean", summary.mean}, {"p50", summary.p50},
          {"p95", summary.p95},     {"p99", summary.p99},   {"max", summary.largest}};
}

// --- concurrent

// Tokens per second of all requests together, from when the last of them has its first token until one has its last.
double concurrent_rate(const Setup& setup, std::int64_t n_requests, std::int64_t n_prompt, std::int64_t n_new) {
  auto options = setup.options;
  options.n_context = n_prompt + n_new + 1;
  options.scheduler.max_running = n_requests;
  options.scheduler.step_tokens = std::max<std::int64_t>(256, n_requests);
  options.scheduler.prompt_work = 0;  // prompts are no part of the test: the sooner they end the better
  options.prefixes.reset();
  vitrine::Engine engine(setup.model, options);
  std::vector<std::vector<double>> times(static_cast<std::size_t>(n_requests));  // of tokens, by the engine's thread
  const vitrine::Stopwatch watch;
  std::vector<vitrine::RequestHandle> handles;
  for (std::int64_t i = 0; i < n_requests; ++i) {
    auto& own = times[std::size_t(i)];
    own.reserve(std::size_t(n_new));
    handles.push_back(engine.submit(example::any_tokens(*setup.model, n_prompt, i), greedy(n_new),
                                    [&own, &watch](const vitrine::GeneratedToken&) {
                                      own.push_back(watch.seconds());
                                      return true;
                                    }));
  }
  for (auto& handle : handles) result_of(handle);
  double begin = 0, end = std::numeric_limits<double>::infinity();
  for (const auto& own : times) {
    begin = std::max(begin, own.front());
    end = std::min(end, own.back());
  }
  std::int64_t n = 0;
  for (const auto& own : times)
    n += std::count_if(own.begin(), own.end(), [&](double time) { return begin < time && time <= end; });
  vitrine::check(n >= n_requests, vitrine::ErrorKind::bad_argument,
                 "--new_tokens: expected more, the first request has ended before all had begun");
  return double(n) / (end - begin);
}

json concurrent(const Setup& setup) {
  const auto n_prompt = setup.n_prompt, n_new = setup.n_new;
  const auto& counts = setup.requests;
  std::vector<std::vector<double>> rates(counts.size());
  for (std::int64_t round = 0; round < setup.repetitions; ++round)  // in turn, since the machine changes meanwhile
    for (std::size_t i = 0; i < counts.size(); ++i)
      rates[i].push_back(concurrent_rate(setup, counts[i], n_prompt, n_new));
  json rows;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < rates[i].size(); ++round) ratios.push_back(rates[i][round] / rates[0][round]);
    rows.push_back({{"requests", counts[i]},
                    {"prompt_tokens", n_prompt},
                    {"new_tokens", n_new},
                    {"tokens_per_second", median(rates[i])},
                    {"of_first", median(ratios)},
                    {"rounds", rates[i]},
                    {"ratios", ratios}});
  }
  return rows;
}

void print_concurrent(const json& rows) {
  example::Table table({"requests at once", "tokens/s", "each", "of first", "least", "most"});
  for (const auto& row : rows) {
    const auto ratios = row["ratios"].get<std::vector<double>>();
    const double rate = row["tokens_per_second"], n = row["requests"];
    table.row({fixed(n, 0), fixed(rate, 1), fixed(rate / n, 1), fixed(row["of_first"], 2) + " x",
               fixed(*std::min_element(ratios.begin(), ratios.end()), 2) + " x",
               fixed(*std::max_element(ratios.begin(), ratios.end()), 2) + " x"});
  }
  std::cout << rows[0]["prompt_tokens"] << " tokens in, " << rows[0]["new_tokens"] << " out\n";
  table.print();
}

// --- arrival

struct Latencies {
  std::vector<double> before, during, after, whole;
  double first_token = 0;  // of the prompt that arrives
};

Latencies arrival_latencies(const Setup& setup, std::int64_t n_others) {
  const auto n_prompt = setup.n_prompt, n_arriving = setup.n_arriving, n_beside = setup.n_beside;
  auto options = setup.options;
  const auto most_of_others = n_beside + n_arriving + n_beside;  // in the worst case a token for each of the prompt
  options.n_context = std::max(n_arriving + n_beside, n_prompt + most_of_others) + 1;
  options.scheduler.max_running = std::max(options.scheduler.max_running, n_others + 1);
  options.scheduler.step_tokens = std::max(options.scheduler.step_tokens, options.scheduler.max_running);
  options.prefixes.reset();
  vitrine::Engine engine(setup.model, options);
  // All of these are the engine's thread's while it runs.
  std::vector<std::vector<double>> times(static_cast<std::size_t>(n_others));
  for (auto& own : times) own.reserve(std::size_t(most_of_others));
  const auto arriving = example::any_tokens(*setup.model, n_arriving, n_others);
  double submitted = std::numeric_limits<double>::infinity(), answered = submitted;
  bool over = false;
  const vitrine::Stopwatch watch;
  std::vector<vitrine::RequestHandle> handles;
  vitrine::RequestHandle prompt;
  const auto submit_prompt = [&] {
    submitted = watch.seconds();
    prompt = engine.submit(arriving, greedy(n_beside), [&](const vitrine::GeneratedToken& token) {
      if (token.index == 0) answered = watch.seconds();
      over = token.index + 1 == n_beside;
      return true;
    });
  };
  for (std::size_t i = 0; i < times.size(); ++i)
    handles.push_back(engine.submit(example::any_tokens(*setup.model, n_prompt, std::int64_t(i)),
                                    greedy(most_of_others), [&, i](const vitrine::GeneratedToken& token) {
                                      times[i].push_back(watch.seconds());
                                      if (i + 1 == times.size() && token.index + 1 == n_beside) submit_prompt();
                                      return !over;
                                    }));
  engine.drain();
  for (auto& handle : handles) result_of(handle);
  Latencies latencies;
  latencies.first_token = result_of(prompt).timings.ttft_seconds;
  double all_decode = 0;
  for (const auto& own : times) all_decode = std::max(all_decode, own.front());
  for (const auto& own : times)
    for (std::size_t k = 1; k < own.size(); ++k) {
      if (own[k - 1] < all_decode) continue;  // the others' own prompts are no part of the test
      const double latency = own[k] - own[k - 1];
      (own[k] <= submitted  ? latencies.before
       : own[k] <= answered ? latencies.during
                            : latencies.after)
          .push_back(latency);
      latencies.whole.push_back(latency);
    }
  return latencies;
}

json arrival(const Setup& setup) {
  json rows;
  for (const auto n_others : setup.others)
    for (std::int64_t round = 0; round < setup.repetitions; ++round) {
      const auto latencies = arrival_latencies(setup, n_others);
      const auto before = vitrine::summarise(latencies.before), during = vitrine::summarise(latencies.during),
                 after = vitrine::summarise(latencies.after), whole = vitrine::summarise(latencies.whole);
      rows.push_back({{"others", n_others},
                      {"arriving_tokens", setup.n_arriving},
                      {"first_token_seconds", latencies.first_token},
                      {"before", to_json(before)},
                      {"during", to_json(during)},
                      {"after", to_json(after)},
                      {"whole", to_json(whole)},
                      {"p99_over_median", whole.p99 / whole.p50},
                      {"p99_during_over_median_before", during.p99 / before.p50}});
    }
  return rows;
}

void print_arrival(const json& rows) {
  std::cout << "a prompt of " << rows[0]["arriving_tokens"] << " tokens arrives; ms from one token to the next\n";
  example::Table table({"others", "", "tokens", "p50", "p95", "p99", "longest", "p99/p50"}, 2);
  for (const auto& row : rows) {
    for (const char* part : {"before", "during", "after", "whole"}) {
      const auto& of = row[part];
      table.row({std::string(part) == "before" ? fixed(row["others"], 0) : "", part, fixed(of["count"], 0),
                 ms(of["p50"]), ms(of["p95"]), ms(of["p99"]), ms(of["max"]),
                 fixed(of["p99"].get<double>() / of["p50"].get<double>(), 2)});
    }
    table.row({"", concat("its first token after ", fixed(1000 * row["first_token_seconds"].get<double>(), 0), " ms")});
  }
  table.print();
}

// --- prefix

json prefix(const Setup& setup) {
  const auto n_tokens = setup.n_prefix;
  auto options = setup.options;
  options.n_context = n_tokens + 2;
  vitrine::Engine engine(setup.model, options);
  std::vector<double> cold, warm, ratios;
  std::int64_t n_cached = 0;
  for (std::int64_t round = -1; round < setup.repetitions; ++round) {  // once to warm up
    const auto prompt = example::any_tokens(*setup.model, n_tokens, round + 1);
    double seconds[2];
    for (double& one : seconds) {
      auto handle = engine.submit(prompt, greedy(1));
      const auto& result = result_of(handle);
      one = result.timings.ttft_seconds;
      n_cached = result.metrics.cached_tokens;
    }
    if (round < 0) continue;
    cold.push_back(seconds[0]);
    warm.push_back(seconds[1]);
    ratios.push_back(seconds[0] / seconds[1]);
  }
  return {{"prompt_tokens", n_tokens},      {"cached_tokens", n_cached},       {"cold_seconds", median(cold)},
          {"cached_seconds", median(warm)}, {"times_as_fast", median(ratios)}, {"ratios", ratios}};
}

void print_prefix(const json& found) {
  example::Table table({"prompt", "computed", "first token"});
  const std::int64_t n = found["prompt_tokens"], n_cached = found["cached_tokens"];
  table.row({"new", std::to_string(n), ms(found["cold_seconds"]) + " ms"});
  table.row({"known", std::to_string(n - n_cached), ms(found["cached_seconds"]) + " ms"});
  table.print();
  std::cout << rounded(found["times_as_fast"]) << " times as fast\n";
}

// --- lookup

json lookup(const Setup& setup) {
  const auto n_new = setup.n_lookup;
  const auto& tokenizer = setup.model->tokenizer();
  const auto prompt =
      tokenizer.chat_template().empty()
          ? tokenizer.encode(example::copy_task)
          : example::chat_prompt(vitrine::ChatTemplate(tokenizer), tokenizer, {{"user", example::copy_task}});
  auto options = setup.options;
  options.n_context = std::int64_t(prompt.size()) + n_new + 1;
  vitrine::Engine engine(setup.model, options);
  std::vector<double> rates[2], ratios;
  std::int64_t n_guesses = 0, n_accepted = 0, n_tokens = 0;
  for (std::int64_t round = -1; round < setup.repetitions; ++round) {
    std::vector<Token> answers[2];
    for (const std::size_t with : {0u, 1u}) {
      auto wanted = greedy(n_new);
      if (with) wanted.speculation.drafter = vitrine::prompt_lookup();
      auto handle = engine.submit(prompt, wanted);
      const auto& result = result_of(handle);
      answers[with] = result.tokens;
      n_tokens = std::int64_t(result.tokens.size());
      n_guesses = result.metrics.n_draft_tokens;
      n_accepted = result.metrics.n_accepted_tokens;
      if (round >= 0) rates[with].push_back(result.timings.decode_tokens_per_second());
    }
    vitrine::check(answers[0] == answers[1], vitrine::ErrorKind::numeric_failure, "lookup: not the same tokens");
    if (round >= 0) ratios.push_back(rates[1].back() / rates[0].back());
  }
  return {{"prompt_tokens", prompt.size()},
          {"new_tokens", n_tokens},
          {"guesses", n_guesses},
          {"accepted", n_accepted},
          {"tokens_per_second", median(rates[0])},
          {"tokens_per_second_with_lookup", median(rates[1])},
          {"times_as_fast", median(ratios)},
          {"ratios", ratios}};
}

void print_lookup(const json& found) {
  example::Table table({"decoding", "tokens/s", "guesses", "accepted"});
  table.row({"plain", fixed(found["tokens_per_second"], 1), "", ""});
  table.row({"prompt lookup", fixed(found["tokens_per_second_with_lookup"], 1), fixed(found["guesses"], 0),
             fixed(found["accepted"], 0)});
  table.print();
  std::cout << fixed(found["times_as_fast"], 2) << " times as fast, over " << found["new_tokens"] << " tokens\n";
}

struct Test {
  const char* name;
  json (*measure)(const Setup&);
  void (*print)(const json&);
};
constexpr Test all_tests[] = {{"concurrent", concurrent, print_concurrent},
                              {"arrival", arrival, print_arrival},
                              {"prefix", prefix, print_prefix},
                              {"lookup", lookup, print_lookup}};

void show(const example::Arguments& args) {
  const auto kv_type = example::kv_types("kv", args.get<std::string>("kv"));
  std::vector<const Test*> wanted;
  const auto names = "," + args.get<std::string>("tests") + ",";
  const auto runs = [&](const char* test) { return names.find(concat(",", test, ",")) != std::string::npos; };
  std::size_t n_read = 1;
  for (const auto& test : all_tests)
    if (runs(test.name)) {
      wanted.push_back(&test);
      n_read += std::string(test.name).size() + 1;
    }
  example::expect(n_read == names.size(), "--tests: expected some of concurrent, arrival, prefix, lookup, got '" +
                                              args.get<std::string>("tests") + "'");
  const auto of = [&](const char* test, std::initializer_list<const char*> options) {
    for (const char* option : options) args.only(option, runs(test), concat("with --tests ", test));
  };
  of("concurrent", {"requests", "new_tokens"});
  of("arrival", {"others", "arriving_tokens", "tokens_beside"});
  of("prefix", {"prefix_tokens"});
  of("lookup", {"lookup_tokens"});
  args.only("prompt_tokens", runs("concurrent") || runs("arrival"), "with --tests concurrent or arrival");
  Setup setup;
  setup.options.n_threads = args.threads();
  setup.options.kv_type = kv_type;
  setup.options.scheduler.prompt_work = args.numbers("prompt_work", 0, 1e6).front();
  setup.repetitions = args.get<std::int64_t>("repetitions", 1, 1000);
  setup.n_prompt = args.whole_number("prompt_tokens", 1, 1 << 20);
  setup.n_new = args.whole_number("new_tokens", 2, 1 << 20);
  setup.n_arriving = args.whole_number("arriving_tokens", 1, 1 << 20);
  setup.n_beside = args.whole_number("tokens_beside", 2, 1 << 20);
  setup.n_prefix = args.whole_number("prefix_tokens", 2, 1 << 20);
  setup.n_lookup = args.whole_number("lookup_tokens", 2, 1 << 20);
  setup.requests = args.whole_numbers("requests", 1, 1024);
  setup.others = args.whole_numbers("others", 1, 256);
  setup.model = example::load_model(args);
  json out = {{"model", setup.model->config().name},
              {"kv", kv_type.name()},
              {"isa", vitrine::isa_name(vitrine::kernels().isa)},
              {"threads", args.threads() > 0 ? args.threads() : vitrine::available_threads()}};
  if (!args.json())
    std::cout << setup.model->config().name << ", KV cache in " << kv_type.name() << ", kernels "
              << vitrine::isa_name(vitrine::kernels().isa) << ", " << out["threads"] << " threads\n";
  for (const auto* test : wanted) {
    out[test->name] = test->measure(setup);
    if (args.json()) continue;
    std::cout << '\n' << test->name << ": ";
    test->print(out[test->name]);
    example::check_output();
  }
  if (args.json()) example::print_json(out);
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    const auto text = [&](const char* name, const char* what, const char* value, const char* kind) {
      add(name, what, cxxopts::value<std::string>()->default_value(value), kind);
    };
    text("tests", "which: concurrent, arrival, prefix, lookup", "concurrent,arrival,prefix,lookup", "LIST");
    text("requests", "concurrent: requests at once", "1,2,4,8,16", "LIST");
    text("prompt_tokens", "concurrent, arrival: tokens of each prompt", "128", "N");
    text("new_tokens", "concurrent: tokens of each answer", "128", "N");
    text("others", "arrival: requests that decode", "1,4,8", "LIST");
    text("arriving_tokens", "arrival: tokens of the prompt", "4000", "N");
    text("tokens_beside", "arrival: tokens of each before it comes, and after its first", "100", "N");
    text("prefix_tokens", "prefix: tokens of the prompt", "2000", "N");
    text("lookup_tokens", "lookup: tokens of the answer", "96", "N");
    text("kv", "type of the KV cache: f32, f16, bf16, int8 or int4, or k/v", "f16", "TYPE");
    text("prompt_work", "the scheduler's", example::fixed(vitrine::SchedulerOptions{}.prompt_work, 2).c_str(), "X");
    add("repetitions", "how often each test runs", cxxopts::value<std::int64_t>()->default_value("3"), "N");
  };
  return example::run(argc, argv, {"serving_bench", "Speed of many requests at once", options, show});
}
