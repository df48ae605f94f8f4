// config.json and its neighbours, as Hugging Face transformers writes them: values by key.
//
//   const HfConfig file = HfConfig::open("config.json");
//   file.integer("hidden_size")   file.find_real("rope_theta")   file.find_section("rope_scaling")
//
// A key whose value is null counts as absent, as it does there. Of an absent key a find_ function and integers() give
// nothing, the others throw; of a value of another type all do: Error::bad_file with the file, the key, what was
// expected and what was found.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

class HfConfig {
 public:
  // Throws Error::io or Error::bad_file.
  static HfConfig open(const std::filesystem::path& file);
  static HfConfig parse(std::string_view text, std::string name);
  // Moving copies, too: what was moved from stays of use.
  HfConfig(const HfConfig&) = default;
  HfConfig& operator=(const HfConfig&) = default;

  const std::string& name() const { return name_; }  // the file, for messages
  std::string full_key(std::string_view key) const;  // "rope_parameters.factor"
  std::vector<std::string> keys() const;             // those that are not null

  bool has(std::string_view key) const;
  bool states(std::string_view key) const;  // has it, or says that it is null
  bool is_off(std::string_view key) const;  // absent, null, false or zero
  // Integers may be written with a fraction of zero (8192.0); reals may be written as integers.
  std::int64_t integer(std::string_view key) const;
  double real(std::string_view key) const;
  std::string text(std::string_view key) const;
  std::optional<std::int64_t> find_integer(std::string_view key) const;
  std::optional<double> find_real(std::string_view key) const;
  std::optional<bool> find_boolean(std::string_view key) const;
  std::optional<std::string> find_text(std::string_view key) const;
  std::optional<HfConfig> find_section(std::string_view key) const;  // an object within
  std::optional<std::vector<std::string>> find_texts(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key) const;  // a list, one integer, or none if absent

 private:
  HfConfig() = default;
  struct Node;
  std::shared_ptr<const Node> node_;
  std::string name_, prefix_;
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/model/hf_config.inl.hpp"
#endif
