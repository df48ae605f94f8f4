// The steps of a chain as a textbook writes them: a dense vector of logits in double, -infinity for what is dropped.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "vitrine/core/token.hpp"

namespace naive {

using vitrine::Token;
using Logits = std::vector<double>;

inline constexpr double gone = -std::numeric_limits<double>::infinity();

inline std::vector<double> probabilities(const Logits& z) {
  const double largest = *std::max_element(z.begin(), z.end());
  std::vector<double> p;
  for (const double value : z) p.push_back(std::exp(value - largest));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& value : p) value /= total;
  return p;
}

inline double entropy(const Logits& z) {
  double sum = 0;
  for (const double p : probabilities(z)) sum -= p > 0 ? p * std::log(p) : 0;
  return sum;
}

// Ids of what is left, most probable first, ties by id.
inline std::vector<Token> order(const Logits& z) {
  std::vector<Token> ids;
  for (std::size_t i = 0; i < z.size(); ++i)
    if (z[i] != gone) ids.push_back(Token(i));
  std::stable_sort(ids.begin(), ids.end(), [&](Token a, Token b) { return z[std::size_t(a)] > z[std::size_t(b)]; });
  return ids;
}

template <class Condition>  // (id, probability); the most probable always stays
void keep_if(Logits& z, Condition condition) {
  const auto p = probabilities(z);
  const Token best = order(z)[0];
  for (std::size_t i = 0; i < z.size(); ++i)
    if (Token(i) != best && !condition(i, p[i])) z[i] = gone;
}

inline void temperature(Logits& z, double t) {
  for (double& value : z) value /= t;
}

inline void dynamic_temperature(Logits& z, double t, double range, double exponent) {
  const double low = std::max(0.0, t - range), share = entropy(z) / std::log(double(order(z).size()));
  temperature(z, low + (t + range - low) * std::pow(share, exponent));
}

inline void top_k(Logits& z, std::size_t k) {
  const auto ids = order(z);
  for (std::size_t i = k; i < ids.size(); ++i) z[std::size_t(ids[i])] = gone;
}

inline void top_p(Logits& z, double mass) {
  const auto p = probabilities(z);
  double before = 0;
  for (const Token id : order(z)) {
    if (before >= mass) z[std::size_t(id)] = gone;
    before += p[std::size_t(id)];
  }
}

inline void min_p(Logits& z, double share) {
  const auto all = probabilities(z);
  const double least = share * *std::max_element(all.begin(), all.end());
  keep_if(z, [&](std::size_t, double p) { return p >= least; });
}

inline void typical(Logits& z, double mass) {
  const auto p = probabilities(z);
  const double h = entropy(z);
  auto ids = order(z);
  const auto distance = [&](Token id) { return std::fabs(-std::log(p[std::size_t(id)]) - h); };
  std::stable_sort(ids.begin(), ids.end(), [&](Token a, Token b) { return distance(a) < distance(b); });
  double sum = 0, border = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0 && sum >= mass && distance(ids[i]) > border) z[std::size_t(ids[i])] = gone;
    if (i == 0 || sum < mass) border = distance(ids[i]);
    sum += p[std::size_t(ids[i])];
  }
}

inline void top_n_sigma(Logits& z, double n) {
  double sum = 0, squares = 0, count = 0, largest = gone;
  for (const double value : z) {
    if (value == gone) continue;
    sum += value;
    ++count;
    largest = std::max(largest, value);
  }
  for (const double value : z)
    if (value != gone) squares += (value - sum / count) * (value - sum / count);
  const double least = largest - n * std::sqrt(squares / count);
  for (double& value : z)
    if (value < least) value = gone;
}

inline void epsilon(Logits& z, double epsilon) {
  keep_if(z, [&](std::size_t, double p) { return p >= epsilon; });
}

inline void eta(Logits& z, double epsilon) {
  const double least = std::min(epsilon, std::sqrt(epsilon) * std::exp(-entropy(z)));
  keep_if(z, [&](std::size_t, double p) { return p >= least; });
}

inline void xtc(Logits& z, double threshold) {  // with probability 1
  const auto p = probabilities(z);
  std::vector<Token> likely;
  for (const Token id : order(z))
    if (p[std::size_t(id)] >= threshold) likely.push_back(id);
  for (std::size_t i = 0; i + 1 < likely.size(); ++i) z[std::size_t(likely[i])] = gone;
}

// As its author published it: each earlier place of the last token is walked back from.
inline void dry(Logits& z, std::span<const Token> ids, double multiplier, double base, std::int64_t allowed,
                const std::vector<Token>& breakers) {
  const auto breaks = [&](Token id) { return std::find(breakers.begin(), breakers.end(), id) != breakers.end(); };
  const auto n = std::int64_t(ids.size());
  if (n == 0 || breaks(ids.back())) return;
  std::map<Token, std::int64_t> match_lengths;
  for (std::int64_t i = 0; i + 1 < n; ++i) {
    if (ids[std::size_t(i)] != ids.back()) continue;
    const Token next = ids[std::size_t(i + 1)];
    if (breaks(next)) continue;
    std::int64_t length = 1;
    for (; i - length >= 0; ++length) {
      const Token previous = ids[std::size_t(n - 1 - length)];
      if (ids[std::size_t(i - length)] != previous || breaks(previous)) break;
    }
    match_lengths[next] = std::max(match_lengths[next], length);
  }
  for (const auto& [token, length] : match_lengths)
    if (length >= allowed) z[std::size_t(token)] -= multiplier * std::pow(base, double(length - allowed));
}

}  // namespace naive
