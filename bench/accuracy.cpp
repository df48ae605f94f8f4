// How near a quantised model's logits come to those that its weights stand for. The reference has the same weights
// decoded to F32 and a KV cache in F32, so that nothing is rounded to 8 or 16 bits on the way; on the real models it
// agrees with Hugging Face transformers to 1e-3 (tests/real_reference). What is left is what 8-bit activations and the
// type of the cache do.
//
//   accuracy --text book.txt --kv f16,f32,int8
//
// The text is cut into pieces, each read from an empty cache. At every position
//
//   logits          |z_i - z_i of the reference| of the reference's 20 largest: mean, 99.9th percentile, largest
//   log p           difference of the next token's log-probability: root mean square
//   divergence      sum_i p_i (log p_i - log q_i), p of the reference, q ours: mean, in nats
//   perplexity      relative to the reference's; the standard error comes from the spread of the pieces
//
// A piece or two show little: the largest difference and the perplexity are down to chance, the mean of the logits and
// the root mean square much less.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "common/averages.hpp"
#include "common/decoded_weights.hpp"
#include "common/kv_types.hpp"
#include "common/logit_measures.hpp"
#include "common/progress_bar.hpp"
#include "common/sample_text.hpp"
#include "common/table.hpp"

using example::fixed, vitrine::concat, vitrine::DType, vitrine::KvTypes, vitrine::Session, vitrine::Token;

static constexpr std::size_t n_top = 20;

// The reference at one position.
struct Position {
  std::vector<float> logits;
  std::vector<Token> top;  // ids of the n_top largest logits, descending
  double log_sum_exp;

  explicit Position(std::span<const float> row)
      : logits(row.begin(), row.end()), top(example::largest(row, n_top)), log_sum_exp(example::log_sum_exp(row)) {}
};

struct Candidate {
  KvTypes types;
  Session session;
  std::vector<double> logits{};    // |difference| of each logit looked at
  std::vector<double> squares{};   // of the next tokens' log-probabilities' differences
  std::vector<double> surprise{};  // how much less probable than with the reference each next token is, in nats
  std::vector<double> divergence{};
  std::int64_t n_same_top = 0;

  void compare(const Position& reference, std::span<const float> ours, Token next) {
    for (const auto id : reference.top)
      logits.push_back(std::fabs(double(ours[std::size_t(id)]) - double(reference.logits[std::size_t(id)])));
    const double normaliser = example::log_sum_exp(ours), shift = normaliser - reference.log_sum_exp;
    double sum = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const double z = reference.logits[i];
      sum += std::exp(z - reference.log_sum_exp) * (z - double(ours[i]));
    }
    divergence.push_back(sum + shift);
    surprise.push_back(double(reference.logits[std::size_t(next)]) - double(ours[std::size_t(next)]) + shift);
    squares.push_back(surprise.back() * surprise.back());
    n_same_top += Token(example::top_of(ours)) == reference.top[0];
  }

  // Of the perplexity's logarithm: from the means of the pieces, which are independent, as neighbours are not.
  std::optional<double> standard_error(std::size_t per_piece) const {
    const std::size_t n = surprise.size() / per_piece;
    if (n < 2) return std::nullopt;
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto begin = surprise.begin() + std::ptrdiff_t(i * per_piece);
      const double of_piece = example::mean({begin, begin + std::ptrdiff_t(per_piece)}) - example::mean(surprise);
      sum += of_piece * of_piece;
    }
    return std::sqrt(sum / double((n - 1) * n));
  }
};

// Both go through a piece in steps, so that only a step's logits of the reference are kept.
static void read_piece(Session& reference, std::vector<Candidate>& candidates, std::span<const Token> piece) {
  constexpr std::size_t step = 64;
  reference.reset();
  for (auto& candidate : candidates) candidate.session.reset();
  for (std::size_t begin = 0; begin + 1 < piece.size(); begin += step) {
    const auto tokens = piece.subspan(begin, std::min(step, piece.size() - 1 - begin));
    std::vector<Position> positions;
    reference.prefill_logits(tokens, [&](auto, std::span<const float> row) { positions.emplace_back(row); });
    for (auto& candidate : candidates)
      candidate.session.prefill_logits(tokens, [&](std::int64_t position, std::span<const float> row) {
        const auto at = std::size_t(position);
        candidate.compare(positions[at - begin], row, piece[at + 1]);
      });
  }
}

// The text in pieces of n tokens, each of which begins as a text does; what is left at the end makes one only if there
// is no other.
static std::vector<std::vector<Token>> cut(std::span<const Token> text, std::span<const Token> start, std::size_t n) {
  example::expect(n > start.size(), concat("--piece: expected more than ", start.size(), ", what a text begins with"));
  std::vector<std::vector<Token>> pieces;
  text = text.subspan(start.size());
  do {
    const auto part = text.first(std::min(text.size(), n - start.size()));
    pieces.emplace_back(start.begin(), start.end()).insert(pieces.back().end(), part.begin(), part.end());
    text = text.subspan(part.size());
  } while (text.size() >= n - start.size());
  return pieces;
}

static std::vector<KvTypes> types_of(const std::string& list) {
  std::vector<KvTypes> types;
  std::istringstream parts(list + ',');
  for (std::string part; std::getline(parts, part, ',');) types.push_back(example::kv_types("kv", part));
  return types;
}

static void measure(const example::Arguments& args) {
  const auto n_tokens = args.get<std::int64_t>("tokens", 2, 1 << 24);
  const auto n_piece = args.get<std::int64_t>("piece", 2, 1 << 16);
  const auto types = types_of(args.get<std::string>("kv"));
  const auto model = example::load_model(args);
  const auto text = example::text_tokens(args, *model, n_tokens);
  const auto pieces = cut(text, model->tokenizer().encode("", {.add_special = true}), std::size_t(n_piece));
  const auto in_decoded = example::load_decoded(args.model(), *model);
  const auto session = [&](const auto& of, KvTypes type) {
    return Session(of, {.n_context = n_piece, .n_threads = args.threads(), .kv_type = type});
  };
  Session reference = session(in_decoded, DType::f32);
  std::vector<Candidate> candidates;
  for (const auto& type : types) candidates.push_back({type, session(model, type)});
  const auto n_pieces = std::int64_t(pieces.size());
  const example::ProgressBar bar;
  const auto show = bar.callback();
  for (std::int64_t i = 0; i < n_pieces; ++i) {
    read_piece(reference, candidates, pieces[std::size_t(i)]);
    if (show) show({"compare", i + 1, n_pieces, "pieces"});
  }
  const std::size_t per_piece = pieces[0].size() - 1;

  example::json out = {{"pieces", n_pieces}, {"tokens_per_piece", per_piece + 1}};
  example::Table table({"K/V", "logits", "99.9 %", "largest", "log p", "divergence", "same top", "perplexity"});
  for (auto& candidate : candidates) {
    auto& logits = candidate.logits;
    std::sort(logits.begin(), logits.end());
    const double n = double(candidate.surprise.size()), same_top = double(candidate.n_same_top) / n;
    const double rms = std::sqrt(example::mean(candidate.squares)), divergence = example::mean(candidate.divergence);
    const double perplexity = std::exp(example::mean(candidate.surprise)) - 1;
    const double high = logits[logits.size() * 999 / 1000];
    const auto error = candidate.standard_error(per_piece);
    const auto spread = error ? concat(" +- ", fixed(100 * *error, 2)) : "";
    table.row({candidate.types.name(), fixed(example::mean(logits), 4), fixed(high, 2), fixed(logits.back(), 2),
               fixed(rms, 4), fixed(divergence, 5), fixed(100 * same_top, 1) + " %",
               concat(perplexity < 0 ? "" : "+", fixed(100 * perplexity, 2), spread, " %")});
    out["types"].push_back({{"types", candidate.types.name()},
                            {"mean_logit_difference", example::mean(logits)},
                            {"logit_difference_999", high},
                            {"largest_logit_difference", logits.back()},
                            {"rms_log_probability_difference", rms},
                            {"divergence", divergence},
                            {"same_top", same_top},
                            {"perplexity_error", perplexity},
                            {"perplexity_standard_error", error ? example::json(*error) : example::json()}});
  }
  if (args.json()) return example::print_json(out);
  example::print_wrapped(concat(model->config().name, " against its weights decoded to F32, ",
                                vitrine::counted(n_pieces, "piece"), " of ", per_piece + 1, " tokens"));
  std::cout << '\n';
  table.print();
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    example::add_text_option(add);
    add("tokens", "of the text at most", cxxopts::value<std::int64_t>()->default_value("16384"), "N");
    add("piece", "tokens read from an empty cache", cxxopts::value<std::int64_t>()->default_value("512"), "N");
    add("kv", "types of the KV cache: f32, f16, bf16, int8 or int4, or k/v",
        cxxopts::value<std::string>()->default_value("f16,f32"), "LIST");
  };
  return example::run(argc, argv, {"accuracy", "How near to the same weights in F32", options, measure});
}
