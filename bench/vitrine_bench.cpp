// Speed of prefill and decode in the manner of llama-bench, beside what this machine can do at best, measured in the
// same process: read bandwidth (best of three read kernels), integer and float peak, clock.
//
//   pp512        a prompt of 512 tokens in one call                       tokens/s
//   tg128        128 tokens, one at a time, from an empty cache           tokens/s
//   greedy128    128 tokens, each the most probable after those before it; see --head_in_planes
//   ... @ d2048  the same after 2048 tokens are in the cache
//   ... b64      the prompt in chunks of 64 tokens, when several are asked for
//
// Other tokens are arbitrary and nothing is sampled. What greedy128 is said to read is what tg128 reads. Each test runs
// once to warm up, then `repetitions` times; the median counts. "of bandwidth" is bytes that a pass must read over time
// over bandwidth, "of peak" the time that its operations take at the peaks over its time (examples/common/cost.hpp has
// the formulas). Products that the kernels give to tiles (AMX) are held against the peak of tiles, though a block of 32
// fills half a tile, and integer scales make two or three products of a block of 256.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "common/averages.hpp"
#include "common/cost.hpp"
#include "common/kv_types.hpp"
#include "common/model.hpp"
#include "common/program.hpp"
#include "common/table.hpp"
#include "machine/machine.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/engine/session.hpp"
#include "vitrine/simd/dispatch.hpp"

using example::fixed, example::percent, example::scaled, vitrine::concat;

struct Test {
  std::string name;
  std::int64_t n_tokens = 0, depth = 0, batch = 0;
  bool prefill = true, greedy = false;
  std::vector<double> seconds{};  // of each repetition
  example::Cost cost{};

  double median() const { return example::median(seconds); }
  // Half the distance between the quartiles, as a share of the median.
  double spread() const {
    auto sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return (sorted[sorted.size() * 3 / 4] - sorted[sorted.size() / 4]) / 2 / median();
  }
};

static example::json to_json(const bench::Peak& peak) {
  return {{"instruction", peak.instruction},
          {"ops_per_second", peak.ops_per_second},
          {"per_clock", peak.per_clock},
          {"deviation_from_ports", peak.deviation}};
}

static example::json to_json(const bench::Machine& machine) {
  example::json out = {{"cpu", bench::cpu_name()},
                       {"threads", machine.n_threads},
                       {"clock_hz", machine.clock_hz},
                       {"read_bytes_per_second", machine.read_bytes_per_second},
                       {"read_buffer_bytes", machine.read_buffer_bytes},
                       {"last_level_cache_bytes", machine.last_level_cache_bytes},
                       {"read_from_cache", machine.read_from_cache()}};
  for (const auto& reader : machine.readers)
    out["readers"].push_back({{"kernel", reader.name}, {"bytes_per_second", reader.bytes_per_second}});
  for (const auto& isa : machine.isas) {
    out["isas"].push_back(
        {{"isa", vitrine::isa_name(isa.isa)}, {"integer", to_json(isa.integer)}, {"float", to_json(isa.real)}});
    if (isa.matrix) out["isas"].back()["matrix"] = to_json(*isa.matrix);
  }
  return out;
}

static void print_machine(const bench::Machine& machine) {
  std::cout << bench::cpu_name() << ", " << machine.n_threads << " threads, clock " << scaled(machine.clock_hz, "Hz")
            << "\n\n";
  example::Table readers({"read bandwidth, " + scaled(double(machine.read_buffer_bytes), "B"), "rate"});
  for (const auto& reader : machine.readers) readers.row({reader.name, scaled(reader.bytes_per_second, "B/s")});
  readers.print();
  example::print_wrapped(machine.caution());
  std::cout << '\n';
  example::Table peaks({"peak", "instruction", "rate", "per clock", "off a whole number"}, 2);
  for (const auto& isa : machine.isas) {
    const auto add = [&](const char* kind, const bench::Peak& peak) {
      peaks.row({concat(vitrine::isa_name(isa.isa), kind), peak.instruction, scaled(peak.ops_per_second, "op/s"),
                 fixed(peak.per_clock, 2), percent(peak.deviation)});
    };
    add(" integer", isa.integer);
    add(" float", isa.real);
    if (isa.matrix) add(" tiles", *isa.matrix);
  }
  peaks.print();
}

static void run_test(const vitrine::Model& model, vitrine::Session& session, Test& test, int repetitions,
                     double kv_value_bytes) {
  using Clock = std::chrono::steady_clock;
  const auto before = example::any_tokens(model, test.depth), tokens = example::any_tokens(model, test.n_tokens);
  if (test.prefill) {
    test.cost = example::prefill_cost(model, test.n_tokens, session.options().chunk, kv_value_bytes, test.depth);
  } else {
    for (std::int64_t i = 0; i < test.n_tokens; ++i)
      test.cost += example::pass_cost(model, 1, test.depth + i, kv_value_bytes);
  }
  session.reset();
  if (test.depth > 0) session.prefill(before);
  for (int repetition = -1; repetition < repetitions; ++repetition) {
    session.truncate(test.depth);
    const auto start = Clock::now();
    if (test.prefill) {
      session.prefill(tokens);
    } else if (test.greedy) {
      auto token = tokens[0];
      for (std::int64_t i = 0; i < test.n_tokens; ++i)
        token = vitrine::Token(vitrine::find_peak(vitrine::kernels(), session.decode_top(token, 1)).id);
    } else {
      for (const auto token : tokens) session.decode(token);
    }
    if (repetition >= 0) test.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
}

static std::vector<Test> wanted_tests(const example::Arguments& args) {
  std::vector<Test> tests;
  const auto batches = args.whole_numbers("batch", 0, 1 << 24);
  for (const auto batch : batches) {
    for (const auto depth : args.whole_numbers("depth", 0, 1 << 24)) {
      const auto add = [&](const char* kind, const char* option, bool prefill) {
        for (const auto n : args.whole_numbers(option, 0, 1 << 24)) {
          if (n < 1 || (!prefill && batch != batches[0])) continue;  // decode takes one token at a time anyway
          auto name = depth > 0 ? concat(kind, n, " @ d", depth) : concat(kind, n);
          if (batches.size() > 1 && prefill) name += concat(" b", batch);
          tests.push_back({name, n, depth, batch, prefill, option == std::string("greedy")});
        }
      };
      add("pp", "pp", true);
      add("tg", "tg", false);
      add("greedy", "greedy", false);
    }
  }
  return tests;
}

static void print_csv(const example::json& tests) {
  const char* columns[] = {
      "test", "n_tokens",           "depth",        "batch", "tokens_per_second", "spread", "bytes",
      "ops",  "share_of_bandwidth", "share_of_peak"};
  for (const char* column : columns) std::cout << column << (column == columns[std::size(columns) - 1] ? '\n' : ',');
  for (const auto& test : tests)
    for (const char* column : columns)
      std::cout << test[column] << (column == columns[std::size(columns) - 1] ? '\n' : ',');
}

static void show(const example::Arguments& args) {
  const int threads = args.threads() > 0 ? args.threads() : vitrine::available_threads();
  const int repetitions = args.get<int>("repetitions", 1, 1000);
  const auto kv_type = example::kv_types("kv", args.get<std::string>("kv"));
  const auto buffer = std::size_t(args.get<int>("buffer", 0, 1 << 20)) << 20;
  for (const char* name :
       {"pp", "tg", "greedy", "depth", "batch", "kv", "head_in_planes", "repetitions", "csv", "model", "image_folder"})
    args.only(name, !args.get<bool>("machine_only"), "without --machine_only");
  args.only("head_in_planes", args.get<std::string>("greedy") != "0", "with --greedy");
  args.only("batch", args.get<std::string>("pp") != "0", "with --pp");
  auto tests = args.get<bool>("machine_only") ? std::vector<Test>{} : wanted_tests(args);
  const auto model =
      tests.empty() ? nullptr : example::load_model(args, {.head_in_planes = args.get<bool>("head_in_planes")});
  const auto machine = bench::measure_machine({threads, buffer, 5});
  example::json out = {{"machine", to_json(machine)}};
  const bool csv = args.get<bool>("csv");
  example::expect(!csv || !args.json(), "--csv and --json: expected one of them, got both");
  if (!args.json() && !csv) print_machine(machine);
  example::check_output();
  if (tests.empty()) {
    if (args.json()) example::print_json(out);
    return;
  }

  std::int64_t longest = 1;
  for (const auto& test : tests) longest = std::max(longest, test.depth + test.n_tokens);
  std::optional<vitrine::Session> session;
  std::int64_t batch = -1;
  for (auto& test : tests) {
    if (batch != test.batch)
      session.emplace(model, vitrine::SessionOptions{
                                 .n_context = longest, .n_threads = threads, .kv_type = kv_type, .chunk = test.batch});
    batch = test.batch;
    test.batch = session->options().chunk;
    run_test(*model, *session, test, repetitions, example::kv_value_bytes(*model, kv_type));
  }
  // The bandwidth once more: a machine whose neighbours woke up meanwhile shows here.
  double bandwidth_after = 0;
  for (const auto& reader : bench::measure_readers({threads, buffer, 5}))
    bandwidth_after = std::max(bandwidth_after, reader.bytes_per_second);
  const double bandwidth = std::max(machine.read_bytes_per_second, bandwidth_after);
  const auto& peaks = machine.of(vitrine::kernels().isa);

  const auto& config = model->config();
  example::Table table({"test", "tokens/s", "+-", "ms/token", "B/s", "of bandw.", "op/s", "of peak"});
  for (const auto& test : tests) {
    const double seconds = test.median(), n = double(test.n_tokens);
    const double of_bandwidth = test.cost.bytes() / seconds / bandwidth;
    const double of_peak = peaks.seconds(test.cost.integer_ops, test.cost.float_ops, test.cost.matrix_ops) / seconds;
    table.row({test.name, fixed(n / seconds, 1), percent(test.spread()), fixed(1000 * seconds / n, 3),
               scaled(test.cost.bytes() / seconds, ""), percent(of_bandwidth), scaled(test.cost.ops() / seconds, ""),
               percent(of_peak)});
    out["tests"].push_back({{"test", test.name},
                            {"n_tokens", test.n_tokens},
                            {"depth", test.depth},
                            {"batch", test.batch},
                            {"tokens_per_second", n / seconds},
                            {"spread", test.spread()},
                            {"seconds", test.seconds},
                            {"bytes", example::number(test.cost.bytes())},
                            {"ops", example::number(test.cost.ops())},
                            {"share_of_bandwidth", of_bandwidth},
                            {"share_of_peak", of_peak}});
  }
  out["model"] = {
      {"name", config.name}, {"architecture", config.architecture}, {"weight_bytes", model->weights().bytes()}};
  out["kv"] = kv_type.name();
  out["isa"] = vitrine::isa_name(vitrine::kernels().isa);
  out["read_bytes_per_second_after"] = bandwidth_after;
  if (args.json()) return example::print_json(out);
  if (csv) return print_csv(out["tests"]);
  std::cout << '\n' << config.name << ", KV cache in " << kv_type.name() << ", kernels " << session->isa() << '\n';
  table.print();
  std::cout << "\nRead bandwidth after the tests: " << scaled(bandwidth_after, "B/s") << '\n';
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    add("pp", "prompt lengths; 0: none", cxxopts::value<std::string>()->default_value("512"), "LIST");
    add("tg", "numbers of tokens to generate; 0: none", cxxopts::value<std::string>()->default_value("128"), "LIST");
    add("greedy", "numbers of tokens to generate greedily; 0: none", cxxopts::value<std::string>()->default_value("0"),
        "LIST");
    add("head_in_planes", "greedy steps may leave a part of the head unread",
        cxxopts::value<bool>()->default_value("false"));
    add("depth", "tokens in the cache before", cxxopts::value<std::string>()->default_value("0"), "LIST");
    add("batch", "prompt tokens that go through the model together; 0: the library's default",
        cxxopts::value<std::string>()->default_value("0"), "LIST");
    add("kv", "type of the KV cache: f32, f16, bf16, int8 or int4, or k/v",
        cxxopts::value<std::string>()->default_value("f16"), "TYPE");
    add("csv", "write comma-separated values instead of text", cxxopts::value<bool>()->default_value("false"));
    add("repetitions", "how often each test runs", cxxopts::value<int>()->default_value("5"), "N");
    add("buffer", "megabytes read to measure the bandwidth; 0: enough for it",
        cxxopts::value<int>()->default_value("0"), "MB");
    add("machine_only", "measure the machine, load no model", cxxopts::value<bool>()->default_value("false"));
  };
  return example::run(argc, argv, {"vitrine_bench", "Speed beside the machine's limits", options, show});
}
