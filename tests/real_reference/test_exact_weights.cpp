// The two real models with their weights decoded to F32, so that nothing is rounded to 8 bits: what is left against
// Hugging Face transformers is the order of sums. That makes them a reference for any text, and every logit of one can
// be compared: 13,000 instead of the 80 that the reference files hold, so that chance has little say.
#include <algorithm>
#include <cmath>

#include "common/decoded_weights.hpp"
#include "common/logit_measures.hpp"
#include "llama_cpp.hpp"
#include "support/json.hpp"
#include "support/models.hpp"

using namespace support;
using llama_cpp::allowance;
using llama_cpp::reals;

namespace {

std::shared_ptr<const Model> decoded_model(const std::string& file) {
  return example::load_decoded(*testing::real_model(file), *real_model(file));  // anew: it is large
}

std::vector<Token> long_text(const nlohmann::json& reference) {
  for (const auto& prompt : reference["prompts"])
    if (prompt.contains("nll")) return tokens(prompt["input_ids"]);
  return {};
}

}  // namespace

TEST_CASE("real models: with weights decoded to F32 the logits are the reference's") {
  const auto& real = GENERATE(from_range(reals));
  INFO(real.file);
  if (!real_model(real.file)) return;
  std::int64_t n = 0;
  double largest = 0;
  const auto decoded = decoded_model(real.file);
  const auto reference = read_json(data(std::string("real/") + real.fixture));
  for (const auto& prompt : reference["prompts"]) {
    const auto ids = tokens(prompt["input_ids"]);
    Session session(decoded, {.kv_type = DType::f32});
    session.prefill_logits(ids, [&](std::int64_t position, std::span<const float> logits) {
      const auto at = std::size_t(position), next = at + 1;
      const auto compare = [&](double ours, const nlohmann::json& expected) {
        largest = std::max(largest, std::abs(ours - expected.get<double>()));
        ++n;
      };
      if (next < ids.size()) {
        if (prompt.contains("nll"))
          compare(logits[std::size_t(ids[next])] - example::log_sum_exp(logits), prompt["nll"]["token_logprobs"][at]);
        return;
      }
      for (std::size_t i = 0; i < 20; ++i)
        compare(logits[prompt["top20_ids"][i].get<std::size_t>()], prompt["top20_logits"][i]);
    });
  }
  CHECK(n > 80 + 600);
  CHECK(largest < 1e-3);
}

TEST_CASE("real models: logits all along a text are as near to exact ones as other engines' are") {
  const auto& real = GENERATE(from_range(reals));
  INFO(real.file);
  const auto model = real_model(real.file);
  if (!model) return;
  struct Entry {
    std::size_t id;
    double logit;
  };
  constexpr std::size_t n_top = 20;
  std::vector<Entry> exact;  // the largest at each position
  const auto ids = long_text(read_json(data(std::string("real/") + real.fixture)));
  Session reference(decoded_model(real.file), {.kv_type = DType::f32});
  reference.prefill_logits(ids, [&](std::int64_t, std::span<const float> logits) {
    for (const auto id : example::largest(logits, n_top)) exact.push_back({std::size_t(id), logits[std::size_t(id)]});
  });
  for (const auto kv_type : {DType::f16, DType::f32}) {
    double sum = 0;
    Session session(model, {.kv_type = kv_type});
    session.prefill_logits(ids, [&](std::int64_t position, std::span<const float> logits) {
      for (const auto& entry : std::span(exact).subspan(std::size_t(position) * n_top, n_top))
        sum += std::abs(logits[entry.id] - entry.logit);
    });
    const double mean = sum / double(exact.size());
    CAPTURE(dtype_info(kv_type).name, mean);
    CHECK(mean <= allowance * (kv_type == DType::f16 ? real.mean_f16 : real.mean_f32));
    CHECK(mean > 0.01);  // else nothing was quantised
  }
}
