// Strict JSON for model files: no duplicate keys, bounded nesting, failures as Error with the byte where it went wrong.
// For bodies only; no public header includes it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrine/core/error.hpp"
#include "vitrine/model/byte_reader.hpp"

VITRINE_NAMESPACE_BEGIN

namespace json_detail {

inline constexpr int deepest_json = 64;

// The library's destructor asks for memory to take nested values apart, and the program ends if that is refused. So
// they are taken apart here from the innermost on, which asks for none.
struct Document : nlohmann::json {
  Document(nlohmann::json&& root) : nlohmann::json(std::move(root)) {}
  Document(Document&&) = default;
  ~Document() { take_apart(*this); }

 private:
  static void take_apart(nlohmann::json& value) {
    if (!value.is_structured()) return;
    for (auto& inner : value) take_apart(inner);
    value.clear();
  }
};

// Parses `text`. `file` is the name for messages.
inline Document parse_json(std::string_view text, std::string_view file) {
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto on_event = [&](int depth, Event event, nlohmann::json& parsed) {
    check(depth <= deepest_json, ErrorKind::bad_file, file, ": JSON nests deeper than ", deepest_json);
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      check(keys.back().insert(key).second, ErrorKind::bad_file, file, ": duplicate key ", printable(key));
    }
    return true;
  };
  try {
    return nlohmann::json::parse(text.begin(), text.end(), on_event);
  } catch (const nlohmann::json::parse_error& error) {
    const bool blank = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
    check(!blank, ErrorKind::bad_file, file, ": expected JSON, got an empty file");
    check(error.byte <= text.size(), ErrorKind::bad_file, file, ": the JSON is cut off after ", text.size(),
          " bytes (is the download complete?)");
    const bool goes_on = std::string_view(error.what()).ends_with("expected end of input");
    throw Error(
        ErrorKind::bad_file,
        concat(file, goes_on ? ": expected nothing after the JSON, got more at byte " : ": no valid JSON at byte ",
               error.byte, " of ", text.size()));
  } catch (const nlohmann::json::exception&) {  // a number that no type holds
    throw Error(ErrorKind::bad_file, concat(file, ": JSON holds a number that is out of range"));
  }
}

// "string", "number", "object" ... and the value itself where it is short.
inline std::string describe(const nlohmann::json& value) {
  if (value.is_string()) return "the string " + printable(value.get_ref<const std::string&>());
  if (value.is_number() || value.is_boolean()) return value.dump();
  return value.type_name();
}

}  // namespace json_detail

VITRINE_NAMESPACE_END
