// What a smaller type of value in the KV cache costs and saves: bytes, time of a step, and quality on a text.
//
//   F32, F16, BF16   every value rounded by itself
//   INT8             whole numbers from -127 to 127 with one scale for each token and head
//   INT4             from -8 to 7 with a scale for every 32 values
//
// All caches go through the same text side by side; at every position the logits are compared with those of the F32
// cache. Then each is filled to a depth, where memory is what decoding waits for.
//
//   quantized_cache --text book.txt --depth 4096
#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "common/logit_measures.hpp"
#include "common/sample_text.hpp"
#include "common/table.hpp"

using example::fixed, example::percent, vitrine::concat, vitrine::DType, vitrine::KvTypes, vitrine::Token;

static const KvTypes all_types[] = {DType::f32, DType::f16, DType::bf16, DType::int8, {DType::int8, DType::int4},
                                    DType::int4};

struct Candidate {
  KvTypes types;
  vitrine::Session session;
  double largest_difference = 0, nll = 0, milliseconds = 0, bytes_per_token = 0;
  std::int64_t n_agree = 0;
};

// All candidates see the text in the same pieces; the first one's logits are what the others are compared with.
static void compare_quality(std::vector<Candidate>& candidates, const std::vector<Token>& text) {
  constexpr std::size_t piece = 16;
  for (std::size_t begin = 0; begin < text.size(); begin += piece) {
    const std::span<const Token> tokens(text.data() + begin, std::min(piece, text.size() - begin));
    std::vector<std::vector<float>> expected;
    for (auto& c : candidates) {
      std::size_t i = 0;  // of the piece
      c.session.prefill_logits(tokens, [&](std::int64_t position, std::span<const float> logits) {
        if (expected.size() <= i) expected.emplace_back(logits.begin(), logits.end());
        const auto& want = expected[i++];
        for (std::size_t token = 0; token < want.size(); ++token)
          c.largest_difference = std::max(c.largest_difference, std::fabs(double(logits[token]) - double(want[token])));
        c.n_agree += example::top_of(logits) == example::top_of(want);
        const auto next = std::size_t(position) + 1;
        if (next < text.size()) c.nll += example::surprise(logits, text[next]);
      });
    }
  }
}

// One step of each in turn, so that what else the machine does hits all alike; the median of a candidate counts.
static void compare_speed(std::vector<Candidate>& candidates, const std::vector<Token>& before, std::int64_t n_steps) {
  std::vector<std::vector<double>> times(candidates.size());
  for (auto& c : candidates) c.session.reset(), c.session.prefill(before);
  for (std::int64_t step = 0; step < n_steps; ++step) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      candidates[i].session.decode(before.back());
      times[i].push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    candidates[i].milliseconds = times[i][times[i].size() / 2];
  }
}

static void compare(const example::Arguments& args) {
  const auto depth = args.get<std::int64_t>("depth", 1, 1 << 20), n_steps = args.get<std::int64_t>("steps", 1, 1 << 16);
  const auto model = example::load_model(args);
  const auto text = example::text_tokens(args, *model, args.get<std::int64_t>("tokens", 2, 1 << 20));
  const auto n_text = std::int64_t(text.size()), n_context = std::max(n_text, depth + n_steps);
  std::vector<Candidate> candidates;
  for (const auto& types : all_types) {
    candidates.push_back(
        {types, vitrine::Session(model, {.n_context = n_context, .n_threads = args.threads(), .kv_type = types})});
    candidates.back().bytes_per_token = double(model->transformer().kv_layout(types).block_bytes()) / 64;
  }
  compare_quality(candidates, text);
  compare_speed(candidates, example::any_tokens(*model, depth), n_steps);

  example::Table table(
      {"K/V", "bytes/token", "of F16", concat("step at ", depth), "logits move", "same top", "perplexity"});
  example::json out = {{"text_tokens", n_text}, {"depth", depth}};
  const auto perplexity = [&](const Candidate& c) { return std::exp(c.nll / double(n_text - 1)); };
  const auto& f16 = candidates[1];
  for (const auto& c : candidates) {
    const double agree = double(c.n_agree) / double(n_text), share = c.bytes_per_token / f16.bytes_per_token;
    table.row({c.types.name(), example::grouped(c.bytes_per_token), percent(share), fixed(c.milliseconds, 2) + " ms",
               fixed(c.largest_difference, 3), percent(agree), fixed(perplexity(c), 3)});
    out["types"].push_back({{"types", c.types.name()}, {"bytes_per_token", c.bytes_per_token}});
    auto& row = out["types"].back();
    row.update({{"step_ms", c.milliseconds}, {"top_1_agreement", agree}, {"perplexity", perplexity(c)}});
    row["largest_logit_difference"] = c.largest_difference;
  }
  if (args.json()) return example::print_json(out);
  table.print();
  const auto &int8 = candidates[3], &int4 = candidates.back();
  const auto change = [&](const auto& c) { return fixed(100 * perplexity(c) / perplexity(candidates[0]) - 100, 2); };
  example::what_to_notice(concat("INT8 takes ", percent(int8.bytes_per_token / f16.bytes_per_token),
                                 " of F16's memory, moves the perplexity by ", change(int8), " % against F32 (INT4 by ",
                                 change(int4), " %, F16 by ", change(f16), " %), and a step at depth ", depth,
                                 " takes ", fixed(int8.milliseconds / f16.milliseconds, 2), " times F16's."));
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    example::add_text_option(add);
    add("tokens", "of the text at most", cxxopts::value<std::int64_t>()->default_value("1024"), "N");
    add("depth", "tokens in the cache when steps are timed", cxxopts::value<std::int64_t>()->default_value("512"), "N");
    add("steps", "steps timed", cxxopts::value<std::int64_t>()->default_value("16"), "N");
  };
  return example::run(argc, argv,
                      {"quantized_cache", "Types of the KV cache: memory, speed, quality", options, compare});
}
