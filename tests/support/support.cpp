// Bodies of bits.hpp, json.hpp and models.hpp.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include "support/bits.hpp"
#include "support/json.hpp"
#include "support/models.hpp"

namespace support {

fs::path data(const std::string& relative) { return fs::path(VITRINE_TEST_DATA) / relative; }

nlohmann::json read_json(const fs::path& path) {
  std::ifstream file(path);
  INFO("reading " << path);
  REQUIRE(file.good());
  return nlohmann::json::parse(file);
}

std::vector<float> floats(const nlohmann::json& values) {
  std::vector<float> result;
  for (const auto& value : values) result.push_back(float(value.get<double>()));
  return result;
}
std::vector<Token> tokens(const nlohmann::json& values) { return values.get<std::vector<Token>>(); }

std::shared_ptr<const Model> model(const fs::path& path) {
  static std::map<std::string, std::shared_ptr<const Model>> loaded;
  auto& entry = loaded[path.string()];
  if (!entry) entry = Model::load(path);
  return entry;
}

std::shared_ptr<const Model> tiny() { return model(data("tiny/llama_gqa/model-f32.gguf")); }

std::vector<Token> some_tokens(std::int64_t n, std::int64_t first) {
  std::vector<Token> result;
  for (std::int64_t i = 0; i < n; ++i) result.push_back(Token((i * 31 + first) % 256));
  return result;
}

std::vector<Token> spread_tokens(const Model& model, std::int64_t n) {
  std::vector<Token> tokens;
  for (std::int64_t i = 0; i < n; ++i) tokens.push_back(Token((i * 7919 + 13) % model.config().n_vocab));
  return tokens;
}

std::vector<std::string> tiny_folders() {
  std::vector<std::string> result;
  for (const auto& entry : fs::directory_iterator(data("tiny"))) result.push_back(entry.path().filename().string());
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<std::string> tiny_folders_not_in(const std::vector<std::string>& paths) {
  auto folders = tiny_folders();
  std::erase_if(folders, [&](const std::string& folder) {
    return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
      return path == "tiny/" + folder || path.starts_with("tiny/" + folder + "/");
    });
  });
  return folders;
}

bool is_wanted(const std::string& path) {
  const char* const only = std::getenv("VITRINE_TINY_MODEL");
  return only == nullptr || path == only;
}

std::shared_ptr<const Model> real_model(const std::string& file) {
  const auto path = testing::real_model(file);
  return path ? model(*path) : nullptr;
}

std::vector<float> copy(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

Token best(std::span<const float> logits) {
  return Token(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

Run run(const std::shared_ptr<const Model>& model, const std::vector<Token>& prompt, std::int64_t n_steps,
        SessionOptions options, const std::vector<std::int64_t>& pieces) {
  options.crowding = Crowding::ignore;  // as many threads as the test says, however busy the machine is
  options.n_context = std::int64_t(prompt.size()) + n_steps + 1;
  Session session(model, std::move(options));
  Run result;
  std::span<const float> logits;
  std::size_t at = 0;
  for (const auto n : pieces.empty() ? std::vector<std::int64_t>{std::int64_t(prompt.size())} : pieces) {
    logits = session.prefill(std::span(prompt).subspan(at, std::size_t(n)));
    at += std::size_t(n);
  }
  REQUIRE(at == prompt.size());
  result.logits.push_back(copy(logits));
  for (std::int64_t step = 0; step < n_steps; ++step) {
    result.tokens.push_back(best(logits));
    logits = session.decode(result.tokens.back());
    result.logits.push_back(copy(logits));
  }
  result.isa = session.isa();
  result.n_threads = session.options().n_threads;
  result.n_passes = session.n_passes();
  result.n_pass_tokens = session.n_pass_tokens();
  return result;
}

int first_difference(const Run& a, const Run& b) {
  for (std::size_t i = 0; i < a.logits.size(); ++i)
    if (i >= b.logits.size() || !same_bits(a.logits[i], b.logits[i])) return int(i);
  return a.logits.size() == b.logits.size() ? -1 : int(a.logits.size());
}

std::uint64_t hash(const Run& run) {
  std::uint64_t value = 14695981039346656037ull;
  for (const auto& logits : run.logits)
    for (const float logit : logits) {
      std::uint32_t bits;
      std::memcpy(&bits, &logit, sizeof bits);
      for (int byte = 0; byte < 4; ++byte) value = (value ^ (bits >> (8 * byte) & 255u)) * 1099511628211ull;
    }
  return value;
}

}  // namespace support
