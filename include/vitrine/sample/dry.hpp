// DRY ("don't repeat yourself"): a penalty on what would go on with a repetition, growing with its length.
//
//   L(t)  the longest match of the end of the history with an earlier place that t follows
//   z_t -= multiplier * base ^ (L(t) - allowed_length)      where L(t) >= allowed_length
//
// A match does not reach over a breaker, and a breaker is not penalised: names and punctuation may come again. By
// p-e-w, text-generation-webui pull request 5677. All lengths together by the Z function of the history read backwards
// (Gusfield 1997, 1.4): one pass, however repetitive the text is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/sample/logit_edits.hpp"

VITRINE_NAMESPACE_BEGIN

struct Dry {
  static constexpr const char* name = "dry";
  double multiplier;                 // 0: off; 0.8 is usual
  double base = 1.75;                // at least 1
  std::int64_t allowed_length = 2;   // at least 1
  std::int64_t window = 0;           // how many of the last tokens are looked at; 0: all
  std::vector<Token> breakers = {};  // ascending

  void check(std::int64_t n_vocab) const;
  std::string describe() const;
  void apply(LogitEdit& edit) const;
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/sample/dry.inl.hpp"
#endif
