// Models and reference outputs that several test folders use.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

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

// Every model is loaded once per process.
inline std::shared_ptr<const Model> model(const fs::path& path) {
  static std::map<std::string, std::shared_ptr<const Model>> loaded;
  auto& entry = loaded[path.string()];
  if (!entry) entry = Model::load(path);
  return entry;
}

// The two real models: in the folder VITRINE_MODELS, else in the cache folder that cmake/models.sh fills.
inline constexpr const char* smollm2_file = "SmolLM2-135M-Instruct.Q4_1.gguf";
inline constexpr const char* gemma3_file = "gemma-3-270m-q4_k_m.gguf";

inline std::shared_ptr<const Model> real_model(const std::string& file) {
  fs::path folder;
  if (const char* named = std::getenv("VITRINE_MODELS")) {
    folder = named;
  } else {
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    folder = (cache && *cache ? fs::path(cache) : fs::path(home ? home : ".") / ".cache") / "vitrine" / "models";
  }
  if (!fs::exists(folder / file) && std::getenv("VITRINE_ALLOW_MISSING_MODELS")) {
    WARN("skipped: " << folder / file << " is not there; cmake/models.sh fetches it");
    return nullptr;
  }
  return model(folder / file);
}

}  // namespace support
