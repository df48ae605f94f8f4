// The real models that some tests load: in the folder VITRINE_MODELS, else
// ${XDG_CACHE_HOME:-$HOME/.cache}/vitrine/models.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace testing {

// The path of a model file. If it is not there: nothing, and the test fails, unless VITRINE_ALLOW_MISSING_MODELS=1.
inline std::optional<std::filesystem::path> real_model(const std::string& name) {
  const auto variable = [](const char* key) {
    const char* const value = std::getenv(key);
    return std::string(value == nullptr ? "" : value);
  };
  std::filesystem::path folder = variable("VITRINE_MODELS");
  if (folder.empty()) {
    const std::string cache = variable("XDG_CACHE_HOME");
    folder = (cache.empty() ? std::filesystem::path(variable("HOME")) / ".cache" : std::filesystem::path(cache)) /
             "vitrine" / "models";
  }
  if (std::filesystem::exists(folder / name)) return folder / name;
  const std::string message = (folder / name).string() + " is missing: cmake/models.sh fetches it";
  if (variable("VITRINE_ALLOW_MISSING_MODELS") != "1") FAIL(message);
  WARN(message);
  return std::nullopt;
}

inline constexpr const char* smollm2 = "SmolLM2-135M-Instruct.Q4_1.gguf";
inline constexpr const char* gemma3 = "gemma-3-270m-q4_k_m.gguf";

}  // namespace testing
