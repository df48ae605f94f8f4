// Why reading a prompt is limited by arithmetic and writing an answer by memory.
//
// Both run the same code over the same weights. Prefill takes many tokens through a layer at a time, so each weight
// that is read serves all of them; decode takes one token, so each weight is read for a single multiply-add. What
// limits which follows from two numbers of this machine, measured here in the same process: how many operations per
// second, and how many bytes per second (Williams, Waterman, Patterson: "Roofline", 2009).
//
//   prefill_vs_decode --lengths 16,128,512
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "common/cost.hpp"
#include "common/model.hpp"
#include "common/plot.hpp"
#include "common/table.hpp"
#include "machine/machine.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/engine/session.hpp"

using example::fixed, example::percent, example::rounded, example::scaled, vitrine::concat;

struct Row {
  std::string phase;
  std::int64_t length = 0, n_tokens = 0;
  double seconds = 0;
  example::Cost cost{};
  double of_peak = 0, of_bandwidth = 0;
};

static double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The best of a few runs: prefill of `length` tokens, then n_decoded more, one at a time.
static void measure(const vitrine::Model& model, vitrine::Session& session, std::int64_t length, std::int64_t n_decoded,
                    int repetitions, double kv_value_bytes, std::vector<Row>& rows) {
  const auto prompt = example::any_tokens(model, length);
  Row prefill{"prefill", length, length, 1e30,
              example::prefill_cost(model, length, session.options().chunk, kv_value_bytes)};
  Row decode{"decode", length, n_decoded, 1e30};
  for (std::int64_t i = 0; i < n_decoded; ++i) decode.cost += example::pass_cost(model, 1, length + i, kv_value_bytes);
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    session.reset();
    auto start = std::chrono::steady_clock::now();
    session.prefill(prompt);
    prefill.seconds = std::min(prefill.seconds, seconds_since(start));
    start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < n_decoded; ++i) session.decode(prompt[0]);
    decode.seconds = std::min(decode.seconds, seconds_since(start));
  }
  rows.push_back(prefill);
  rows.push_back(decode);
}

static void show(const example::Arguments& args) {
  const auto lengths = args.whole_numbers("lengths", 1, 1 << 20);
  const auto n_decoded = args.get<std::int64_t>("steps", 1, 4096);
  const int repetitions = args.get<int>("repetitions", 1, 1000);
  const int threads = args.threads() > 0 ? args.threads() : vitrine::available_threads();
  const auto model = example::load_model(args);
  const auto longest = *std::max_element(lengths.begin(), lengths.end());
  vitrine::Session session(model, {.n_context = longest + n_decoded, .n_threads = threads});

  const auto machine = bench::measure_machine({threads, std::size_t(args.get<int>("buffer", 0, 1 << 20)) << 20, 3});
  const auto& peaks = machine.of(vitrine::kernels().isa);
  std::vector<Row> rows;
  for (const auto length : lengths) measure(*model, session, length, n_decoded, repetitions, 2, rows);
  for (auto& row : rows) {
    row.of_peak = peaks.seconds(row.cost.integer_ops, row.cost.float_ops, row.cost.matrix_ops) / row.seconds;
    row.of_bandwidth = row.cost.bytes() / machine.read_bytes_per_second / row.seconds;
  }

  if (args.json()) {
    example::json out = {
        {"threads", threads},
        {"read_bytes_per_second", machine.read_bytes_per_second},
        {"read_from_cache", machine.read_from_cache()},
        {"integer_ops_per_second", peaks.integer.ops_per_second},
        {"float_ops_per_second", peaks.real.ops_per_second},
        {"tile_ops_per_second", peaks.matrix ? example::json(peaks.matrix->ops_per_second) : example::json()}};
    for (const auto& row : rows) {
      const auto n = double(row.n_tokens);
      out["rows"].push_back({{"phase", row.phase},
                             {"prompt_tokens", row.length},
                             {"tokens", row.n_tokens},
                             {"seconds", row.seconds},
                             {"tokens_per_second", n / row.seconds},
                             {"ops_per_token", row.cost.ops() / n},
                             {"bytes_per_token", row.cost.bytes() / n},
                             {"share_of_peak", row.of_peak},
                             {"share_of_bandwidth", row.of_bandwidth}});
    }
    return example::print_json(out);
  }

  example::print_wrapped(concat("This machine, ", threads, " threads: ", scaled(peaks.integer.ops_per_second, "op/s"),
                                " integer (", peaks.integer.instruction, "), ",
                                scaled(peaks.real.ops_per_second, "op/s"), " float, ",
                                peaks.matrix ? scaled(peaks.matrix->ops_per_second, "op/s") + " in tiles, " : "",
                                scaled(machine.read_bytes_per_second, "B/s"), " read"));
  example::print_wrapped(machine.caution());
  std::cout << '\n';
  example::Table table({"", "prompt", "ms/token", "token/s", "FLOP/token", "B/token", "FLOP/B", "peak", "bandw."});
  for (const auto& row : rows) {
    const auto n = double(row.n_tokens);
    table.row({row.phase, std::to_string(row.length), fixed(1000 * row.seconds / n, 2), rounded(n / row.seconds),
               scaled(row.cost.ops() / n, ""), scaled(row.cost.bytes() / n, ""),
               rounded(row.cost.ops() / row.cost.bytes()), percent(row.of_peak), percent(row.of_bandwidth)});
  }
  table.print();

  const auto longest_row =
      std::find_if(rows.begin(), rows.end(), [longest](const Row& row) { return row.length == longest; });
  const Row &prefill = longest_row[0], &decode = longest_row[1];
  // What the processor could do of this mixture of integer and float operations.
  const double peak = prefill.cost.ops() / (prefill.of_peak * prefill.seconds);
  const double balance = peak / machine.read_bytes_per_second;
  example::what_to_notice(
      concat("A prompt of ", vitrine::counted(prefill.length, "token"), " does ",
             rounded(prefill.cost.ops() / prefill.cost.bytes()), " operations for each byte it reads, decoding does ",
             rounded(decode.cost.ops() / decode.cost.bytes()), ". This machine can do ", rounded(balance),
             " such operations in the time of reading one byte: above that arithmetic is the limit, "
             "below it memory. Here prefill came to ",
             percent(prefill.of_peak), " of the arithmetic peak and ", percent(prefill.of_bandwidth),
             " of the bandwidth, decoding to ", percent(decode.of_peak), " and ", percent(decode.of_bandwidth), "."));
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    add("lengths", "prompt lengths", cxxopts::value<std::string>()->default_value("1,16,64,256,512"), "LIST");
    add("steps", "tokens decoded after each prompt", cxxopts::value<std::int64_t>()->default_value("16"), "N");
    add("repetitions", "the best of so many runs counts", cxxopts::value<int>()->default_value("3"), "N");
    add("buffer", "megabytes read to measure the bandwidth; 0: enough for it",
        cxxopts::value<int>()->default_value("0"), "MB");
  };
  return example::run(argc, argv, {"prefill_vs_decode", "What limits prefill and what limits decoding", options, show});
}
