// Models and reference outputs that several test folders use. Bodies are in support.cpp, compiled once.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/real_models.hpp"
#include "vitrine/engine/generate.hpp"
#include "vitrine/engine/model.hpp"
#include "vitrine/engine/session.hpp"

namespace support {

using namespace vitrine;
namespace fs = std::filesystem;

fs::path data(const std::string& relative);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;  // all takes many times as long
#else
inline constexpr bool is_sanitized = false;
#endif

inline constexpr auto all_cache_kinds = {CacheKind::contiguous, CacheKind::paged, CacheKind::ring};
inline const auto go_on = [](const GeneratedToken&) { return true; };  // a callback that never stops generation

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
std::shared_ptr<const Model> model(const fs::path& path);
std::shared_ptr<const Model> tiny();

// n ids that every tiny model has, others for another `first`.
std::vector<Token> some_tokens(std::int64_t n, std::int64_t first = 5);

// n ids spread over the model's vocabulary.
std::vector<Token> spread_tokens(const Model& model, std::int64_t n);

// The folders of tests/data/tiny, one for each model with random weights.
std::vector<std::string> tiny_folders();

// Those that none of the paths "tiny/<folder>..." names: for tests that go by a list.
std::vector<std::string> tiny_folders_not_in(const std::vector<std::string>& paths);

// False for all models but one where VITRINE_TINY_MODEL names it, by its path in tests/data: for machines on which the
// whole list would take too long (tests/machine).
bool is_wanted(const std::string& path);

// One of the two real models, or null where tests may do without (see real_models.hpp).
inline constexpr const char* smollm2_file = testing::smollm2;
inline constexpr const char* gemma3_file = testing::gemma3;

std::shared_ptr<const Model> real_model(const std::string& file);

}  // namespace support
