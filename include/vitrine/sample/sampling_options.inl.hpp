// Bodies of sample/sampling_options.hpp.
#pragma once

#include <algorithm>
#include <utility>

#include "vitrine/core/error.hpp"
#include "vitrine/sample/sampling_check.hpp"
#include "vitrine/sample/sampling_options.hpp"

VITRINE_NAMESPACE_BEGIN

namespace sampling_detail {

// What is never to be chosen cannot be forced. (generate() of Hugging Face suppresses after it has forced, and is then
// left without any token.)
inline void check_forced(const SamplingOptions& o) {
  const auto is_in = [](const std::vector<Token>& tokens, Token id) {
    return std::find(tokens.begin(), tokens.end(), id) != tokens.end();
  };
  for (const auto& [index, id] : o.forced_tokens) {
    check(!o.ignore_end || !is_in(o.end_tokens, id), ErrorKind::bad_argument,
          "forced: expected no end token, since ignore_end bans them, got token ", id, " for index ", index);
    check(!is_in(o.suppress_tokens, id), ErrorKind::bad_argument,
          "forced: expected no token of suppress_tokens, got token ", id, " for index ", index);
  }
}

}  // namespace sampling_detail

VITRINE_INLINE const char* sampling_order_name(SamplingOrder order) {
  switch (order) {
    case SamplingOrder::huggingface: return "huggingface";
    case SamplingOrder::llama_cpp: return "llama.cpp";
    case SamplingOrder::openai: return "openai";
  }
  return "unknown";
}

VITRINE_INLINE SamplingOptions sampling_preset(std::string_view name) {
  if (name == "huggingface") return {.top_k = 50};
  if (name == "openai") return {.order = SamplingOrder::openai};
  check(name == "llama.cpp", ErrorKind::bad_argument, "preset: expected huggingface, llama.cpp or openai, got '", name,
        "'");
  return {.temperature = 0.8,
          .top_k = 40,
          .top_p = 0.95,
          .min_p = 0.05,
          .repetition_window = 64,
          .order = SamplingOrder::llama_cpp};
}

VITRINE_INLINE SamplingChain sampling_chain(const SamplingOptions& o, std::int64_t n_vocab) {
  const bool llama_cpp = o.order == SamplingOrder::llama_cpp, openai = o.order == SamplingOrder::openai;
  check(llama_cpp || openai || o.order == SamplingOrder::huggingface, ErrorKind::bad_argument,
        "order: expected huggingface, llama_cpp or openai, got SamplingOrder(", int(o.order), ")");
  SamplingChain chain;
  // Checked whether it is on or not, so that no value outside its range passes unseen.
  const auto add = [&](bool on, auto step) {
    step.check(n_vocab);
    if (on) chain.push_back(std::move(step));
  };
  const auto add_temperature = [&] {
    const bool dynamic = o.dynatemp_range != 0;
    add(dynamic, DynamicTemperature{o.temperature, o.dynatemp_range, o.dynatemp_exponent});
    add(!dynamic && o.temperature != 1, Temperature{o.temperature});
  };
  const auto add_presence_frequency = [&] {
    add(o.presence_penalty != 0 || o.frequency_penalty != 0,
        PresenceFrequency{o.presence_penalty, o.frequency_penalty});
  };

  add(!o.logit_bias.empty(), LogitBias{o.logit_bias});
  if (openai) add_presence_frequency();
  add(o.repetition_penalty != 1, RepetitionPenalty{o.repetition_penalty, o.repetition_window});
  if (!openai) add_presence_frequency();
  add(o.dry_multiplier != 0, Dry{o.dry_multiplier, o.dry_base, o.dry_allowed_length, o.dry_window, o.dry_breakers});
  add(o.no_repeat_ngram_size != 0, NoRepeatNgram{o.no_repeat_ngram_size});
  sampling_detail::check_sequences("bad_words", o.bad_words, n_vocab);
  sampling_detail::check_tokens("suppress_tokens", o.suppress_tokens, n_vocab);
  auto banned = o.bad_words;
  for (const Token token : o.suppress_tokens) banned.push_back({token});
  const bool any_banned = !banned.empty();
  add(any_banned, BannedTokens{std::move(banned)});
  add(o.min_new_tokens != 0, MinTokens{o.min_new_tokens, o.end_tokens});
  add(o.ignore_end && !o.end_tokens.empty(), NoEndTokens{o.end_tokens});
  sampling_detail::check_forced(o);
  add(!o.forced_tokens.empty(), ForcedTokens{o.forced_tokens});

  if (!llama_cpp) add_temperature();
  if (llama_cpp) add(o.top_n_sigma != 0, TopNSigma{o.top_n_sigma});
  add(o.top_h != 0, TopH{o.top_h});
  add(o.top_k > 0, TopK{o.top_k});
  if (llama_cpp) add(o.typical_p != 1, Typical{o.typical_p});
  add(o.top_p != 1, TopP{o.top_p});
  add(o.min_p != 0, MinP{o.min_p});
  if (!llama_cpp) add(o.typical_p != 1, Typical{o.typical_p});
  add(o.epsilon_cutoff != 0, EpsilonCutoff{o.epsilon_cutoff});
  add(o.eta_cutoff != 0, EtaCutoff{o.eta_cutoff});
  if (!llama_cpp) add(o.top_n_sigma != 0, TopNSigma{o.top_n_sigma});
  add(o.xtc_probability != 0, Xtc{o.xtc_probability, o.xtc_threshold});
  if (llama_cpp) add_temperature();
  add(o.mirostat_tau != 0, Mirostat{o.mirostat_tau, o.mirostat_eta});
  return chain;
}

VITRINE_INLINE void check_sampling(const SamplingOptions& options, std::int64_t n_vocab) {
  sampling_chain(options, n_vocab);
}

VITRINE_NAMESPACE_END
