// Many requests on one model: what happens to throughput and to each one's latency as their number grows.
//
// A step of the engine reads the weights once, whoever is in it. So a second request costs little more than the first,
// until arithmetic takes over from memory. The second part answers questions of unequal length in two ways. Static
// batching waits until a whole batch has ended; continuous batching fills a place as soon as it is free.
//
//   batching
//   batching --requests 1,4,16,32 --new_tokens 128
#include <algorithm>
#include <string>
#include <vector>

#include "common/model.hpp"
#include "common/table.hpp"
#include "vitrine/core/rounding.hpp"
#include "vitrine/engine/engine.hpp"
#include "vitrine/engine/timings.hpp"

using example::fixed, example::percent, example::rounded;
using vitrine::Token;

struct Measured {
  std::int64_t n_requests = 0;
  double seconds = 0;
  double answer_seconds = 0;  // from the beginning to the end of an answer, mean
  double places_used = 0;     // share of the places in all steps that drew a token
  vitrine::EngineMetrics metrics;
  double tokens_per_second() const { return double(metrics.generation_tokens_total) / seconds; }
};

struct Wanted {
  std::vector<Token> prompt;
  std::int64_t n_new;
};

static std::vector<Wanted> requests(const vitrine::Model& model, std::int64_t n, std::int64_t n_prompt,
                                    const std::vector<std::int64_t>& lengths) {
  std::vector<Wanted> wanted;
  for (std::int64_t i = 0; i < n; ++i)
    wanted.push_back({example::any_tokens(model, n_prompt, i), lengths[std::size_t(i) % lengths.size()]});
  return wanted;
}

// `together` requests at a time; static: the next ones only when all of these have ended.
static Measured measure(const std::shared_ptr<const vitrine::Model>& model, const example::Arguments& args,
                        const std::vector<Wanted>& wanted, std::int64_t together, bool is_static) {
  vitrine::EngineOptions options{.n_threads = args.threads()};
  options.scheduler.max_running = together;
  options.scheduler.step_tokens = std::max<std::int64_t>(256, together);
  for (const auto& request : wanted)
    options.n_context = std::max(options.n_context, std::int64_t(request.prompt.size()) + request.n_new + 1);
  vitrine::Engine engine(model, options);
  std::vector<vitrine::RequestHandle> handles;
  std::vector<double> last_token(wanted.size());  // written by the engine's thread, read when it is drained
  const vitrine::Stopwatch watch;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (is_static && std::int64_t(i) % together == 0) engine.drain();
    handles.push_back(engine.submit(
        wanted[i].prompt, {.sampling = {.temperature = 0}, .max_new_tokens = wanted[i].n_new, .ignore_end = true},
        [&, i](const vitrine::GeneratedToken&) {
          last_token[i] = watch.seconds();
          return true;
        }));
  }
  engine.drain();
  Measured result{std::int64_t(wanted.size()), watch.seconds(), 0, 0, engine.metrics()};
  for (const double seconds : last_token) result.answer_seconds += seconds / double(last_token.size());
  for (auto& handle : handles)
    if (const auto& error = handle.wait().error) std::rethrow_exception(error);
  result.places_used =
      double(result.metrics.generation_tokens_total) / double(result.metrics.n_steps) / double(together);
  return result;
}

static example::json to_json(const Measured& run) {
  const auto latency = [](const vitrine::LatencySummary& summary) {
    return example::json{{"mean", summary.mean}, {"p50", summary.p50}, {"p95", summary.p95}, {"p99", summary.p99}};
  };
  return {{"requests", run.n_requests},
          {"seconds", run.seconds},
          {"steps", run.metrics.n_steps},
          {"tokens", run.metrics.generation_tokens_total},
          {"tokens_per_second", run.tokens_per_second()},
          {"places_used", run.places_used},
          {"time_to_first_token_seconds", latency(run.metrics.time_to_first_token_seconds)},
          {"inter_token_latency_seconds", latency(run.metrics.inter_token_latency_seconds)},
          {"answer_seconds", run.answer_seconds}};
}

static std::string milliseconds(double seconds) { return fixed(1000 * seconds, 1) + " ms"; }

static void show(const example::Arguments& args) {
  const auto counts = args.whole_numbers("requests", 1, 256);
  const auto n_prompt = args.get<std::int64_t>("prompt_tokens", 1, 1 << 20);
  const auto n_new = args.get<std::int64_t>("new_tokens", 2, 1 << 20);
  const auto together = args.get<std::int64_t>("batch", 1, 256);
  const auto model = example::load_model(args);
  std::vector<Measured> growing;
  for (const auto n : counts) growing.push_back(measure(model, args, requests(*model, n, n_prompt, {n_new}), n, false));
  // Every fourth answer is long, the others are short.
  const std::vector<std::int64_t> lengths = {n_new, vitrine::divide_up(n_new, 8), vitrine::divide_up(n_new, 4),
                                             vitrine::divide_up(n_new, 8)};
  const auto unequal = requests(*model, 4 * together, n_prompt, lengths);
  const auto waiting = measure(model, args, unequal, together, true);
  const auto flowing = measure(model, args, unequal, together, false);

  if (args.json()) {
    example::json out;
    for (const auto& run : growing) out["concurrent"].push_back(to_json(run));
    out["static"] = to_json(waiting);
    out["continuous"] = to_json(flowing);
    return example::print_json(out);
  }
  std::cout << n_prompt << " tokens in and " << n_new << " out, all requests at once\n\n";
  example::Table table({"requests", "tokens/s", "of first", "first token", "next token", "its p99"});
  for (const auto& run : growing)
    table.row({std::to_string(run.n_requests), fixed(run.tokens_per_second(), 1),
               rounded(run.tokens_per_second() / growing[0].tokens_per_second()) + " x",
               milliseconds(run.metrics.time_to_first_token_seconds.mean),
               milliseconds(run.metrics.inter_token_latency_seconds.p50),
               milliseconds(run.metrics.inter_token_latency_seconds.p99)});
  table.print();
  std::cout << '\n' << unequal.size() << " requests of unequal length, " << together << " places\n\n";
  example::Table ways({"batching", "steps", "places used", "tokens/s", "an answer ends at", "all"});
  for (const auto* run : {&waiting, &flowing})
    ways.row({run == &waiting ? "static" : "continuous", std::to_string(run->metrics.n_steps),
              percent(run->places_used), fixed(run->tokens_per_second(), 1), fixed(run->answer_seconds, 2) + " s",
              fixed(run->seconds, 2) + " s"});
  ways.print();
  const auto &one = growing.front(), &most = growing.back();
  example::what_to_notice(vitrine::concat(
      "From ", one.n_requests, " to ", most.n_requests, " requests at once the machine gives ",
      rounded(most.tokens_per_second() / one.tokens_per_second()), " times the tokens, and each request waits ",
      rounded(most.metrics.inter_token_latency_seconds.p50 / one.metrics.inter_token_latency_seconds.p50),
      " times as long for its next one. Continuous batching needs ", flowing.metrics.n_steps,
      " steps where static needs ", waiting.metrics.n_steps, ", because a place that is free is filled at once."));
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    add("requests", "numbers of requests at once", cxxopts::value<std::string>()->default_value("1,2,4,8"), "LIST");
    add("prompt_tokens", "tokens of each prompt", cxxopts::value<std::int64_t>()->default_value("16"), "N");
    add("new_tokens", "tokens of each answer", cxxopts::value<std::int64_t>()->default_value("64"), "N");
    add("batch", "places in the comparison of static and continuous",
        cxxopts::value<std::int64_t>()->default_value("4"), "N");
  };
  return example::run(argc, argv, {"batching", "Throughput and latency of many requests at once", options, show});
}
