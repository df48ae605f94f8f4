// The options of a sampler on the command line, named as in Hugging Face's generate() where that has them.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "common/program.hpp"
#include "vitrine/sample/log_probabilities.hpp"
#include "vitrine/sample/sampling_options.hpp"
#include "vitrine/text/token_search.hpp"

namespace example {

struct SamplingArgument {
  const char *name, *help;
  double vitrine::SamplingOptions::*number;
};

// Those that are plain numbers and matter only where something is drawn.
inline constexpr SamplingArgument drawing_arguments[] = {
    {"temperature", "logits are divided by it", &vitrine::SamplingOptions::temperature},
    {"dynatemp_range", "temperature -+ this, by the entropy", &vitrine::SamplingOptions::dynatemp_range},
    {"top_p", "draw from the most probable of this mass", &vitrine::SamplingOptions::top_p},
    {"min_p", "drop what is less than this part of the best", &vitrine::SamplingOptions::min_p},
    {"typical_p", "draw from the most typical of this mass", &vitrine::SamplingOptions::typical_p},
    {"top_n_sigma", "drop logits so many deviations below the best", &vitrine::SamplingOptions::top_n_sigma},
    {"epsilon_cutoff", "drop what is less probable", &vitrine::SamplingOptions::epsilon_cutoff},
    {"eta_cutoff", "the same, less where the entropy is high", &vitrine::SamplingOptions::eta_cutoff},
    {"top_h", "draw from the most probable of this part of the entropy", &vitrine::SamplingOptions::top_h},
    {"xtc_probability", "how often the likely ones but the last are dropped",
     &vitrine::SamplingOptions::xtc_probability},
    {"xtc_threshold", "likely: at least so probable", &vitrine::SamplingOptions::xtc_threshold},
    {"mirostat_tau", "keep the surprise at so many bits per token", &vitrine::SamplingOptions::mirostat_tau},
    {"mirostat_eta", "how fast Mirostat learns", &vitrine::SamplingOptions::mirostat_eta}};
// And those that change logits, so that greedy decoding heeds them, too.
inline constexpr SamplingArgument penalty_arguments[] = {
    {"repetition_penalty", "makes seen tokens less likely; 1: off", &vitrine::SamplingOptions::repetition_penalty},
    {"presence_penalty", "off the logits of generated tokens, once", &vitrine::SamplingOptions::presence_penalty},
    {"frequency_penalty", "and for each time they came", &vitrine::SamplingOptions::frequency_penalty},
    {"dry_multiplier", "penalty on going on with a repetition; 0: off", &vitrine::SamplingOptions::dry_multiplier},
    {"dry_base", "its growth per repeated token", &vitrine::SamplingOptions::dry_base}};

inline void add_sampling_options(cxxopts::OptionAdder& add) {
  add("preset", "order and defaults of huggingface, llama.cpp or openai",
      cxxopts::value<std::string>()->default_value("huggingface"), "NAME");
  for (const auto& argument : drawing_arguments) add(argument.name, argument.help, cxxopts::value<double>(), "X");
  add("top_k", "draw from the k most probable; 0: all", cxxopts::value<std::int32_t>(), "K");
  for (const auto& argument : penalty_arguments) add(argument.name, argument.help, cxxopts::value<double>(), "X");
  add("no_repeat_ngram_size", "no such sequence of tokens comes twice; 0: off", cxxopts::value<std::int64_t>(), "N");
  add("suppress_tokens", "ids that are never chosen", cxxopts::value<std::string>(), "LIST");
  add("logit_bias", "added to logits, as in 11:-2.5,7:-inf", cxxopts::value<std::string>(), "ID:BIAS,...");
  add("seed", "of the random numbers; none: a fresh one, reported", cxxopts::value<std::uint64_t>(), "S");
}

// "11:-2.5,7:-inf"
inline std::vector<vitrine::TokenBias> logit_biases(const std::string& text) {
  std::vector<vitrine::TokenBias> biases;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t colon = std::min(part.find(':'), part.size());
    const auto bias = colon < part.size() ? as_number(part.substr(colon + 1)) : std::nullopt;
    const double id = as_number(part.substr(0, colon)).value_or(0.5);
    expect(bias.has_value() && id == std::floor(id) && std::fabs(id) < 2147483648.0,
           "--logit_bias: expected ID:BIAS, separated by commas, got '" + part + "'");
    biases.push_back({vitrine::Token(id), float(bias.value_or(0))});
    begin = end + 1;
  }
  return biases;
}

// Those that change nothing without another one.
inline constexpr std::pair<const char*, const char*> companions[] = {
    {"xtc_threshold", "xtc_probability"}, {"mirostat_eta", "mirostat_tau"}, {"dry_base", "dry_multiplier"}};

// What was given, over the preset's values. Checks all but ids.
inline vitrine::SamplingOptions sampling_options(const Arguments& args) {
  auto options = vitrine::sampling_preset(args.get<std::string>("preset"));
  for (const auto& argument : drawing_arguments)
    if (args.has(argument.name)) options.*argument.number = args.get<double>(argument.name);
  for (const auto& argument : penalty_arguments)
    if (args.has(argument.name)) options.*argument.number = args.get<double>(argument.name);
  if (args.has("top_k")) options.top_k = args.get<std::int32_t>("top_k");
  if (args.has("no_repeat_ngram_size")) options.no_repeat_ngram_size = args.get<std::int64_t>("no_repeat_ngram_size");
  if (args.has("suppress_tokens"))
    for (const auto id : args.whole_numbers("suppress_tokens", 0, 2147483647))
      options.suppress_tokens.push_back(vitrine::Token(id));
  if (args.has("logit_bias")) options.logit_bias = logit_biases(args.get<std::string>("logit_bias"));
  if (args.has("seed")) options.seed = args.get<std::uint64_t>("seed");
  vitrine::check_sampling(options);
  for (const auto& [name, other] : companions)
    args.only(name, args.has(other) && args.get<double>(other) > 0, vitrine::concat("with --", other, " above 0"));
  return options;
}

// Refuses what bears on a draw, but for the temperature, where it has no effect.
inline void only_draws(const Arguments& args, bool has_effect, const std::string& expected) {
  for (const auto& argument : drawing_arguments)
    if (argument.number != &vitrine::SamplingOptions::temperature) args.only(argument.name, has_effect, expected);
  for (const char* name : {"preset", "top_k", "seed"}) args.only(name, has_effect, expected);
}

inline bool is_drawn(const vitrine::SamplingOptions& sampling) {
  return sampling.temperature > 0 || sampling.dynatemp_range > 0;
}

// As JSON, ["END","\nUser:"], or one as it stands.
inline std::vector<std::string> stop_strings(const std::string& text) {
  if (!text.starts_with('[')) return {text};
  try {
    return json::parse(text).get<std::vector<std::string>>();
  } catch (const json::exception&) {
    throw UsageError("--stop_strings: expected a text, or a list of them in JSON, got " + text);
  }
}

inline json to_json(const std::vector<vitrine::TokenLogProbabilities>& all, const vitrine::Tokenizer& tokenizer) {
  json list = json::array();
  for (const auto& [raw, processed] : all) {
    json top = json::array();
    for (const auto& entry : raw.top)
      top.push_back({{"id", entry.id}, {"text", tokenizer.piece(entry.id)}, {"raw", entry.log_probability}});
    list.push_back({{"raw", raw.of_token}, {"processed", processed.of_token}, {"rank", raw.rank}, {"top", top}});
  }
  return list;
}

// The places where DRY lets text come again.
inline std::vector<vitrine::Token> dry_breakers(const vitrine::Tokenizer& tokenizer) {
  return vitrine::tokens_containing(tokenizer, {"\n", ":", "\"", "*"});
}

}  // namespace example
