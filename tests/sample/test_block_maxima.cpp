// Logits with the maxima of their blocks, as the head gives them, against the same without: every choice, sum and error
// is the same.
#include <algorithm>
#include <cmath>
#include <map>

#include "sampling_tools.hpp"
#include "vitrine/simd/dispatch.hpp"

using namespace sampling_tools;

namespace {

// As ops/logits.hpp defines them.
std::vector<float> maxima_of(const std::vector<float>& row) {
  std::vector<float> maxima;
  for (std::size_t begin = 0; begin < row.size(); begin += 64) {
    const auto first = row.begin() + std::ptrdiff_t(begin);
    const auto last = first + std::ptrdiff_t(std::min(std::size_t(64), row.size() - begin));
    const bool finite = std::all_of(first, last, [](float z) { return std::isfinite(z); });
    maxima.push_back(finite ? *std::max_element(first, last) : nan_);
  }
  return maxima;
}

const std::vector<std::int64_t> lengths = {1, 2, 15, 63, 64, 65, 128, 1000, 5000, 40000};

std::map<std::string, std::vector<float>> rows(std::int64_t n) {
  std::map<std::string, std::vector<float>> all;
  all["random"] = wavy_logits(n);
  for (const float z : wavy_logits(n, 5)) all["tied"].push_back(std::floor(z));
  all["equal"] = std::vector<float>(std::size_t(n), -2.5f);
  all["peaked"] = wavy_logits(n, 8);
  all["peaked"][std::size_t(2 * n / 3)] = 40;
  all["zeros"] = std::vector<float>(std::size_t(n), 0.0f);
  for (std::size_t i = 0; i < all["zeros"].size(); i += 3) all["zeros"][i] = -0.0f;
  all["huge"] = std::vector<float>(std::size_t(n), -3e38f);
  all["huge"].back() = 3e38f;
  return all;
}

// Steps of every kind.
std::vector<SamplingOptions> chains(std::int64_t n) {
  std::vector<SamplingOptions> all = {
      {.temperature = 0},
      {.seed = 1},
      {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .seed = 2},
      {.top_k = 1},
      {.top_p = 0.9, .seed = 3},
      {.min_p = 0.05, .seed = 4},
      {.top_n_sigma = 1, .seed = 5},
      {.typical_p = 0.7, .seed = 6},
      {.xtc_probability = 1, .xtc_threshold = 0.05, .seed = 7},
      {.mirostat_tau = 4, .seed = 8},
      {.temperature = 0, .repetition_penalty = 1.3},
      {.top_k = 5, .repetition_penalty = 1.2, .presence_penalty = 0.5, .frequency_penalty = 0.3, .seed = 9},
      {.temperature = 0, .no_repeat_ngram_size = 2, .dry_multiplier = 0.8},
  };
  if (n > 2) {
    all.push_back(
        {.temperature = 0, .logit_bias = {{0, 3.5f}, {Token(n - 1), -100}}, .suppress_tokens = {Token(n / 2)}});
    all.push_back({.forced_tokens = {{2, Token(1)}}, .min_new_tokens = 100, .end_tokens = {Token(n / 2)}, .seed = 10});
  }
  return all;
}

}  // namespace

TEST_CASE("what is chosen with the maxima of blocks is what is chosen without") {
  for (const std::int64_t n : lengths)
    for (const auto& [name, row] : rows(n)) {
      const auto maxima = maxima_of(row);
      const Logits with(row, maxima);
      for (const auto& options : chains(n)) {
        if (options.dry_multiplier > 0 && n == 1) continue;  // it bans the only token
        Sampler a(options, n), b(options, n);
        INFO(n << " " << name << " " << describe(a.chain()));
        std::vector<Token> history = {0, Token(n / 2), 0};
        a.begin(std::int64_t(history.size()));
        b.begin(std::int64_t(history.size()));
        for (std::int64_t position = 0; position < 4; ++position) {
          std::string error;
          Token token = -1;
          try {
            token = a.sample(row, history, position);
          } catch (const Error& thrown) {
            error = thrown.what();
          }
          if (!error.empty()) {
            check_error(ErrorKind::numeric_failure, error, [&] { b.sample(with, history, position); });
            break;
          }
          REQUIRE(b.sample(with, history, position) == token);
          // explain() looks at all logits after each step that changes some.
          if (options.mirostat_tau == 0) REQUIRE(b.explain(with, history, position).token == token);
          const auto one = a.log_probabilities(row, token, 7), other = b.log_probabilities(with, token, 7);
          for (const auto& [x, y] : {std::pair(one.raw, other.raw), std::pair(one.processed, other.processed)}) {
            REQUIRE(x.of_token == y.of_token);
            REQUIRE(x.rank == y.rank);
            REQUIRE(x.top.size() == y.top.size());
            for (std::size_t i = 0; i < x.top.size(); ++i) {
              REQUIRE(x.top[i].id == y.top[i].id);
              REQUIRE(x.top[i].log_probability == y.top[i].log_probability);
            }
          }
          history.push_back(token);
        }
      }
    }
}

TEST_CASE("the order of the candidates and their sums are the same with maxima, on every instruction set") {
  for (const Isa isa : available_isas())
    for (const std::int64_t n : lengths)
      for (const auto& [name, row] : rows(n)) {
        INFO(isa_name(isa) << " " << n << " " << name);
        const auto maxima = maxima_of(row);
        Candidates a(n, kernels(isa)), b(n, kernels(isa));
        for (const std::int64_t step : {std::int64_t(1), std::int64_t(90)}) {
          a.reset(row);
          b.reset({row, maxima});
          REQUIRE(a.size() == b.size());
          REQUIRE(a.best() == b.best());
          REQUIRE(a.total() == b.total());
          REQUIRE(a.entropy() == b.entropy());
          REQUIRE(a.deviation() == b.deviation());
          for (std::int64_t i = step - 1; i < (std::min)(n, std::int64_t(3000)); i += step) REQUIRE(a.id(i) == b.id(i));
        }
      }
}

TEST_CASE("the maxima are what is read: a wrong one leads to a wrong token", "[control]") {
  const auto row = wavy_logits(1000);
  auto maxima = maxima_of(row);
  Sampler greedy({.temperature = 0}, 1000);
  const Token best = greedy.sample(Logits(row, maxima), {}, 0);
  CHECK(best == greedy.sample(row, {}, 0));
  const std::size_t other = best / 64 == 3 ? 4 : 3;
  maxima[other] = row[std::size_t(best)] + 1;
  CHECK(greedy.sample(Logits(row, maxima), {}, 0) != best);
}

TEST_CASE("where a block is not finite, all logits are looked at, with the same result or error") {
  for (const std::int64_t n : lengths)
    for (const float bad : {nan_, inf, -inf})
      for (const std::int64_t place : {std::int64_t(0), n / 2, n - 1}) {
        for (const bool twice : {false, true}) {
          auto row = wavy_logits(n);
          row[std::size_t(place)] = bad;
          if (twice) row[std::size_t(n / 3)] = bad;
          INFO(n << " logits, " << bad << " at " << place << (twice ? ", twice" : ""));
          const auto maxima = maxima_of(row);
          const Logits with(row, maxima);
          CHECK_FALSE(all_finite(kernels(), with));
          CHECK_FALSE(all_finite(kernels(), row));
          Sampler sampler({.temperature = 0}, n);
          std::string error;
          Token expected = -1;
          try {
            expected = sampler.sample(row, {}, 0);
          } catch (const Error& thrown) {
            error = thrown.what();
          }
          if (error.empty())
            CHECK(sampler.sample(with, {}, 0) == expected);
          else
            check_error(ErrorKind::numeric_failure, error, [&] { sampler.sample(with, {}, 0); });
        }
      }
}

TEST_CASE("after edits, looking at changed blocks gives what looking at all logits gives") {
  for (const std::int64_t n : lengths)
    for (const bool with_maxima : {false, true})
      for (std::uint64_t round = 0; round < 12; ++round) {
        const auto row = wavy_logits(n, round);
        const auto maxima = maxima_of(row);
        Candidates edited(n), fresh(n);
        edited.reset(with_maxima ? Logits(row, maxima) : Logits(row));
        edited.begin_edit();
        auto changed = row;
        const auto n_edits = std::int64_t(round * round * round / 4);  // none, a few, most blocks
        for (std::int64_t k = 0; k < n_edits; ++k) {
          const auto u = [&](std::uint64_t stream) { return random_uniform(77 + round, std::uint64_t(k), stream); };
          const auto id = std::size_t(u(0) * double(n));
          const float value = u(1) < 0.4 ? -inf : u(1) < 0.5 ? row[id] : float(u(2) * 20 - 10);
          changed[id] = edited.edited()[id] = value;
          edited.changed_blocks()[id / 64] = 1;
        }
        INFO(n << " logits, " << n_edits << " edits, " << (with_maxima ? "with" : "without") << " maxima");
        if (std::all_of(changed.begin(), changed.end(), [](float z) { return z == -inf; })) {
          check_error(ErrorKind::numeric_failure, "no admissible token", [&] { edited.end_edit(); });
          continue;
        }
        edited.end_edit();
        fresh.reset(changed);
        REQUIRE(edited.size() == fresh.size());
        REQUIRE(edited.best() == fresh.best());
        REQUIRE(edited.total() == fresh.total());
        for (std::int64_t i = 0; i < (std::min)(fresh.size(), std::int64_t(1000)); ++i)
          REQUIRE(edited.id(i) == fresh.id(i));
      }
}

TEST_CASE("as many maxima as there are blocks, or none") {
  const std::vector<float> row(130), maxima(2);
  check_error(ErrorKind::bad_argument, "3 blocks", [&] { Logits(row, maxima); });
  CHECK(Logits(row).block_max().empty());
  CHECK(Logits(row).size() == 130);
}
