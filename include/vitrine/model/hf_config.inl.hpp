// Bodies of hf_config.hpp.
#pragma once

#include <cmath>
#include <utility>

#include "vitrine/core/error.hpp"
#include "vitrine/model/hf_config.hpp"
#include "vitrine/model/json_reader.inl.hpp"
#include "vitrine/model/mapped_file.hpp"

VITRINE_NAMESPACE_BEGIN

struct HfConfig::Node {
  json_detail::Document object;

  const nlohmann::json* find(std::string_view key) const {
    const auto found = object.find(std::string(key));
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }
};

namespace hf_config_detail {

[[noreturn]] VITRINE_INLINE void wrong_type(const HfConfig& config, std::string_view key, const char* expected,
                                            const nlohmann::json& got) {
  throw Error(ErrorKind::bad_file, concat(config.name(), ": key ", printable(config.full_key(key)), ": expected ",
                                          expected, ", got ", json_detail::describe(got)));
}

VITRINE_INLINE std::int64_t to_integer(const HfConfig& config, std::string_view key, const nlohmann::json& value) {
  constexpr double exact = 9007199254740992.0;  // 2^53: all integers up to here are doubles
  if (value.is_number_unsigned() && value.get<std::uint64_t>() <= std::uint64_t(INT64_MAX))
    return std::int64_t(value.get<std::uint64_t>());
  if (value.is_number_integer() && !value.is_number_unsigned()) return value.get<std::int64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number >= -exact && number <= exact && number == std::floor(number)) return std::int64_t(number);
  }
  wrong_type(config, key, "an integer", value);
}

}  // namespace hf_config_detail

VITRINE_INLINE HfConfig HfConfig::parse(std::string_view text, std::string name) {
  HfConfig config;
  config.name_ = std::move(name);
  auto object = json_detail::parse_json(text, config.name_);
  check(object.is_object(), ErrorKind::bad_file, config.name_, ": expected a JSON object, got ",
        json_detail::describe(object));
  config.node_ = std::make_shared<const Node>(Node{std::move(object)});
  return config;
}

VITRINE_INLINE HfConfig HfConfig::open(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  return parse({reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()}, mapped.name());
}

VITRINE_INLINE std::string HfConfig::full_key(std::string_view key) const { return prefix_ + std::string(key); }

VITRINE_INLINE std::vector<std::string> HfConfig::keys() const {
  std::vector<std::string> out;
  for (const auto& [key, value] : node_->object.items())
    if (!value.is_null()) out.push_back(key);
  return out;
}

VITRINE_INLINE bool HfConfig::has(std::string_view key) const { return node_->find(key) != nullptr; }

VITRINE_INLINE bool HfConfig::states(std::string_view key) const { return node_->object.contains(std::string(key)); }

VITRINE_INLINE bool HfConfig::is_off(std::string_view key) const {
  const auto* value = node_->find(key);
  return value == nullptr || (value->is_boolean() && !value->get<bool>()) ||
         (value->is_number() && value->get<double>() == 0);
}

VITRINE_INLINE std::optional<std::int64_t> HfConfig::find_integer(std::string_view key) const {
  const auto* value = node_->find(key);
  return value == nullptr ? std::nullopt : std::optional(hf_config_detail::to_integer(*this, key, *value));
}

VITRINE_INLINE std::optional<double> HfConfig::find_real(std::string_view key) const {
  const auto* value = node_->find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) hf_config_detail::wrong_type(*this, key, "a number", *value);
  return value->get<double>();
}

VITRINE_INLINE std::optional<bool> HfConfig::find_boolean(std::string_view key) const {
  const auto* value = node_->find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) hf_config_detail::wrong_type(*this, key, "true or false", *value);
  return value->get<bool>();
}

VITRINE_INLINE std::optional<std::string> HfConfig::find_text(std::string_view key) const {
  const auto* value = node_->find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) hf_config_detail::wrong_type(*this, key, "a string", *value);
  return value->get<std::string>();
}

VITRINE_INLINE std::optional<HfConfig> HfConfig::find_section(std::string_view key) const {
  const auto* value = node_->find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) hf_config_detail::wrong_type(*this, key, "an object", *value);
  HfConfig section;
  section.node_ = std::make_shared<const Node>(Node{nlohmann::json(*value)});
  section.name_ = name_;
  section.prefix_ = full_key(key) + ".";
  return section;
}

VITRINE_INLINE std::optional<std::vector<std::string>> HfConfig::find_texts(std::string_view key) const {
  const auto* value = node_->find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> out;
  if (!value->is_array()) hf_config_detail::wrong_type(*this, key, "a list of strings", *value);
  for (const auto& item : *value) {
    if (!item.is_string()) hf_config_detail::wrong_type(*this, key, "a list of strings", item);
    out.push_back(item.get<std::string>());
  }
  return out;
}

VITRINE_INLINE std::vector<std::int64_t> HfConfig::integers(std::string_view key) const {
  const auto* value = node_->find(key);
  std::vector<std::int64_t> out;
  if (value == nullptr) return out;
  if (!value->is_array()) return {hf_config_detail::to_integer(*this, key, *value)};
  for (const auto& item : *value) out.push_back(hf_config_detail::to_integer(*this, key, item));
  return out;
}

VITRINE_INLINE std::int64_t HfConfig::integer(std::string_view key) const {
  const auto value = find_integer(key);
  check(value.has_value(), ErrorKind::bad_file, name_, ": key ", printable(full_key(key)), " is missing");
  return *value;
}

VITRINE_INLINE double HfConfig::real(std::string_view key) const {
  const auto value = find_real(key);
  check(value.has_value(), ErrorKind::bad_file, name_, ": key ", printable(full_key(key)), " is missing");
  return *value;
}

VITRINE_INLINE std::string HfConfig::text(std::string_view key) const {
  auto value = find_text(key);
  check(value.has_value(), ErrorKind::bad_file, name_, ": key ", printable(full_key(key)), " is missing");
  return *std::move(value);
}

VITRINE_NAMESPACE_END
