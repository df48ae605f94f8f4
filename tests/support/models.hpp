// Models and reference outputs that several test folders use.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/real_models.hpp"
#include "vitrine/engine/generate.hpp"
#include "vitrine/engine/model.hpp"
#include "vitrine/engine/session.hpp"

namespace support {

using namespace vitrine;
namespace fs = std::filesystem;

inline fs::path data(const std::string& relative) { return fs::path(VITRINE_TEST_DATA) / relative; }

inline nlohmann::json read_json(const fs::path& path) {
  std::ifstream file(path);
  INFO("reading " << path);
  REQUIRE(file.good());
  return nlohmann::json::parse(file);
}

// Numbers in the reference files are the shortest decimals of floats; "inf" and the like do not occur in logits.
inline std::vector<float> floats(const nlohmann::json& values) {
  std::vector<float> result;
  for (const auto& value : values) result.push_back(float(value.get<double>()));
  return result;
}
inline std::vector<Token> tokens(const nlohmann::json& values) { return values.get<std::vector<Token>>(); }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;  // all takes many times as long
#else
inline constexpr bool is_sanitized = false;
#endif

template <class Action>
Error error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  FAIL("expected an Error, got none");
  throw;
}

// Every model is loaded once per process.
inline std::shared_ptr<const Model> model(const fs::path& path) {
  static std::map<std::string, std::shared_ptr<const Model>> loaded;
  auto& entry = loaded[path.string()];
  if (!entry) entry = Model::load(path);
  return entry;
}

inline std::shared_ptr<const Model> tiny() { return model(data("tiny/llama_gqa/model-f32.gguf")); }

// n ids that every tiny model has, others for another `first`.
inline std::vector<Token> some_tokens(std::int64_t n, std::int64_t first = 5) {
  std::vector<Token> result;
  for (std::int64_t i = 0; i < n; ++i) result.push_back(Token((i * 31 + first) % 256));
  return result;
}

// The folders of tests/data/tiny, one for each model with random weights.
inline std::vector<std::string> tiny_folders() {
  std::vector<std::string> result;
  for (const auto& entry : fs::directory_iterator(data("tiny"))) result.push_back(entry.path().filename().string());
  std::sort(result.begin(), result.end());
  return result;
}

// Those that none of the paths "tiny/<folder>..." names: for tests that go by a list.
inline std::vector<std::string> tiny_folders_not_in(const std::vector<std::string>& paths) {
  auto folders = tiny_folders();
  std::erase_if(folders, [&](const std::string& folder) {
    return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
      return path == "tiny/" + folder || path.starts_with("tiny/" + folder + "/");
    });
  });
  return folders;
}

// One of the two real models, or null where tests may do without (see real_models.hpp).
inline constexpr const char* smollm2_file = testing::smollm2;
inline constexpr const char* gemma3_file = testing::gemma3;

inline std::shared_ptr<const Model> real_model(const std::string& file) {
  const auto path = testing::real_model(file);
  return path ? model(*path) : nullptr;
}

}  // namespace support
