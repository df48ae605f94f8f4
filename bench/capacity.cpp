// How much load a machine carries: the engine's own scheduler against a model of what a step costs, for any number of
// requests in seconds.
//
//   step = base + row * tokens + key * (keys that the tokens look at)
//
// The three costs are measured on this machine with this model, or given (--costs). Requests arrive at random (Poisson)
// with random lengths (geometric), at loads from little to more than the machine can do. Three settings are compared:
// what the engine does; prompts in one piece instead of chunks, so that a long one holds up all who decode; and a
// contiguous cache that reserves the longest answer for each request, instead of blocks as they are needed.
#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include "common/model.hpp"
#include "common/table.hpp"
#include "vitrine/cache/kv_layout.hpp"
#include "vitrine/engine/metrics.hpp"
#include "vitrine/engine/scheduler.hpp"
#include "vitrine/engine/timings.hpp"
#include "vitrine/sample/random.hpp"

using example::fixed, example::percent;

struct Costs {  // in seconds
  double base = 0, row = 0, key = 0;
};

struct Load {
  std::int64_t n_requests, mean_prompt, mean_answer, longest_prompt, longest_answer;
};

struct Setting {
  std::string name;
  bool chunked = true, paged = true;
};

struct Request : vitrine::Sequence {
  double arrival = 0, last_token = 0;
  std::int64_t n_prompt = 0, n_answer = 0, n_blocks = 0;
};

// Blocks that are only counted.
struct CountedRoom final : vitrine::KvRoom {
  CountedRoom(std::int64_t n_blocks, bool is_paged, const Load& of) : free(n_blocks), paged(is_paged), load(of) {}
  static Request& of(vitrine::Sequence& sequence) { return static_cast<Request&>(sequence); }

  std::int64_t n_free() const override { return free; }
  std::int64_t n_wanted(const vitrine::Sequence& sequence, std::int64_t n_tokens) const override {
    const auto& request = static_cast<const Request&>(sequence);
    const auto n = paged ? request.n_computed + n_tokens : request.n_prompt + load.longest_answer;
    return std::max<std::int64_t>(0, vitrine::KvLayout::blocks_for(n) - request.n_blocks);
  }
  bool take(vitrine::Sequence& sequence, std::int64_t n_tokens) override {
    const auto wanted = n_wanted(sequence, n_tokens);
    if (wanted > free) return false;
    free -= wanted;
    of(sequence).n_blocks += wanted;
    return true;
  }
  bool must_wait(const vitrine::Sequence&) const override { return false; }
  void start(vitrine::Sequence&) override {}
  void give_back(vitrine::Sequence& sequence) override {
    free += std::exchange(of(sequence).n_blocks, 0);
    sequence.n_computed = 0;
  }

  std::int64_t free;
  bool paged;
  const Load& load;
};

struct Outcome {
  double seconds = 0, mean_running = 0;
  std::int64_t n_tokens = 0, n_steps = 0, n_preemptions = 0;
  vitrine::LatencySummary first_token, inter_token;
};

static std::int64_t geometric(double uniform, std::int64_t mean, std::int64_t longest) {
  const auto n = 1 + std::int64_t(std::log(1 - uniform) / std::log(1 - 1 / double(mean)));
  return std::clamp<std::int64_t>(n, 1, longest);
}

static Outcome simulate(const Costs& costs, const Load& load, const Setting& setting, double requests_per_second,
                        std::int64_t n_blocks, std::int64_t max_running) {
  vitrine::SchedulerOptions options{.max_running = max_running};
  if (!setting.chunked) {
    options.prompt_work = 0;
    options.step_tokens = max_running * load.longest_prompt;
  }
  options.step_tokens = std::max(options.step_tokens, max_running);
  vitrine::Scheduler scheduler(options);
  CountedRoom room(n_blocks, setting.paged, load);
  std::deque<Request> requests(std::size_t(load.n_requests));
  double arrival = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto uniform = [&](std::uint64_t stream) { return vitrine::random_uniform(1, i, stream); };
    auto& request = requests[i];
    arrival -= std::log(1 - uniform(0)) / requests_per_second;
    request.arrival = arrival;
    request.n_known = request.n_prompt = geometric(uniform(1), load.mean_prompt, load.longest_prompt);
    request.n_answer = geometric(uniform(2), load.mean_answer, load.longest_answer);
  }
  Outcome outcome;
  vitrine::LatencyHistogram first_token, inter_token;
  double now = 0, places = 0;
  std::size_t n_arrived = 0, n_ended = 0;
  while (n_ended < requests.size()) {
    while (n_arrived < requests.size() && requests[n_arrived].arrival <= now) scheduler.add(requests[n_arrived++]);
    const auto step = scheduler.plan(room);
    if (step.empty()) {
      now = requests[n_arrived].arrival;  // nothing to do until then
      continue;
    }
    double seconds = costs.base;
    for (const auto* sequence : step) {
      const double n = double(sequence->n_now);
      seconds += costs.row * n + costs.key * n * (double(sequence->n_computed) + (n + 1) / 2);
    }
    now += seconds;
    places += double(step.size());
    ++outcome.n_steps;
    for (auto* sequence : step) {
      auto& request = CountedRoom::of(*sequence);
      request.n_computed += request.n_now;
      if (request.n_missing() > 0) continue;
      ++outcome.n_tokens;
      if (request.n_known == request.n_prompt)
        first_token.add(now - request.arrival);
      else
        inter_token.add(now - request.last_token);
      request.last_token = now;
      if (++request.n_known - request.n_prompt < request.n_answer) continue;
      scheduler.remove(request);
      room.give_back(request);
      ++n_ended;
    }
  }
  outcome.seconds = now;
  outcome.mean_running = places / double(outcome.n_steps);
  outcome.n_preemptions = scheduler.n_preemptions();
  outcome.first_token = first_token.summary();
  outcome.inter_token = inter_token.summary();
  return outcome;
}

static Costs measure(const example::Arguments& args) {
  const auto model = example::load_model(args);
  constexpr std::int64_t deep = 1024, chunk = 256, n = 16;
  vitrine::Session session(model, {.n_context = deep + n, .n_threads = args.threads(), .chunk = chunk});
  const auto tokens = example::any_tokens(*model, deep);
  const auto fastest = [](auto&& run) {
    double best = 1e300;
    for (int i = 0; i < 5; ++i) {
      const vitrine::Stopwatch watch;
      run();
      best = std::min(best, watch.seconds());
    }
    return best;
  };
  const auto decode = [&](std::int64_t depth) {
    return fastest([&] {
             session.truncate(depth);
             for (std::int64_t i = 0; i < n; ++i) session.decode(tokens[std::size_t(i)]);
           }) /
           double(n);
  };
  const double prompt = fastest([&] {
    session.reset();
    session.prefill(std::span(tokens).first(chunk));
  });
  const double at_start = decode(0);
  session.reset();
  session.prefill(tokens);
  Costs costs;
  costs.key = std::max(0.0, (decode(deep) - at_start) / double(deep));
  costs.row = std::max(0.0, (prompt - at_start - costs.key * chunk * (chunk + 1) / 2) / double(chunk - 1));
  costs.base = std::max(1e-9, at_start - costs.row);
  return costs;
}

static void show(const example::Arguments& args) {
  const Load load{args.whole_number("requests", 1, 10000000), args.whole_number("prompt_tokens", 2, 1 << 20),
                  args.whole_number("new_tokens", 2, 1 << 20), args.whole_number("longest_prompt", 2, 1 << 20),
                  args.whole_number("longest_answer", 2, 1 << 20)};
  const auto n_blocks = args.whole_number("blocks", 1, 1 << 30), max_running = args.whole_number("running", 1, 4096);
  const auto longest = vitrine::KvLayout::blocks_for(load.longest_prompt + load.longest_answer);
  example::expect(n_blocks >= longest, vitrine::concat("--blocks: expected at least ", longest,
                                                       ", which the longest request needs, got ", n_blocks));
  Costs costs;
  for (const char* name : {"model", "threads", "image_folder"})
    args.only(name, !args.has("costs"), "without --costs, which says what would be measured");
  if (args.has("costs")) {
    const auto given = args.numbers("costs", 0, 1e9);
    example::expect(given.size() == 3 && given[0] > 0, "--costs: expected three numbers, the first above 0");
    costs = {given[0] / 1e6, given[1] / 1e6, given[2] / 1e6};
  } else {
    costs = measure(args);
  }
  const Setting settings[] = {{"engine"}, {"whole prompts", false, true}, {"contiguous", true, false}};
  const vitrine::Stopwatch watch;
  // What the machine can do at best: everybody is there from the beginning.
  const auto most = simulate(costs, load, settings[0], 1e12, n_blocks, max_running);
  const double capacity = double(load.n_requests) / most.seconds;
  example::json out = {{"costs_microseconds", {costs.base * 1e6, costs.row * 1e6, costs.key * 1e6}},
                       {"requests_per_second_at_most", capacity}};
  example::Table table(
      {"load", "setting", "tokens/s", "first token", "its p99", "next token", "its p99", "running", "preempted"}, 2);
  const auto ms = [](double seconds) { return fixed(1000 * seconds, 1); };
  for (const double share : args.numbers("loads", 0.001, 100))
    for (const auto& setting : settings) {
      const auto got = simulate(costs, load, setting, share * capacity, n_blocks, max_running);
      table.row({percent(share), setting.name, fixed(double(got.n_tokens) / got.seconds, 0), ms(got.first_token.mean),
                 ms(got.first_token.p99), ms(got.inter_token.p50), ms(got.inter_token.p99), fixed(got.mean_running, 1),
                 std::to_string(got.n_preemptions)});
      out["runs"].push_back({{"load", share},
                             {"setting", setting.name},
                             {"seconds", got.seconds},
                             {"tokens", got.n_tokens},
                             {"steps", got.n_steps},
                             {"preemptions", got.n_preemptions},
                             {"mean_running", got.mean_running},
                             {"ttft_seconds", {{"mean", got.first_token.mean}, {"p99", got.first_token.p99}}},
                             {"itl_seconds", {{"p50", got.inter_token.p50}, {"p99", got.inter_token.p99}}}});
    }
  if (args.json()) return example::print_json(out);
  std::cout << "a step costs " << fixed(1e6 * costs.base, 0) << " us, and " << fixed(1e6 * costs.row, 1)
            << " us per token, and " << fixed(1e6 * costs.key, 3) << " us per key; " << load.n_requests
            << " requests\nthe machine can do " << fixed(capacity, 2) << " requests/s; times in ms\n\n";
  table.print();
  std::cout << "\nsimulated in " << fixed(watch.seconds(), 1) << " s\n";
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    const auto number = [&](const char* name, const char* what, const char* value) {
      add(name, what, cxxopts::value<std::string>()->default_value(value), "N");
    };
    number("requests", "how many arrive", "100000");
    number("prompt_tokens", "of a request, mean", "200");
    number("new_tokens", "of a request, mean", "100");
    number("longest_prompt", "no prompt is longer", "2000");
    number("longest_answer", "no answer is longer", "500");
    number("blocks", "of 64 tokens, for K and V", "256");
    number("running", "requests in a step at most", "32");
    add("loads", "requests per second, as shares of what the machine can do",
        cxxopts::value<std::string>()->default_value("0.3,0.6,0.9,1.1"), "LIST");
    add("costs", "microseconds per step, per token, per key; otherwise they are measured",
        cxxopts::value<std::string>(), "LIST");
  };
  return example::run(argc, argv,
                      {"capacity", "What load a machine carries, by the engine's scheduler", options, show});
}
