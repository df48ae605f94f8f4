// JSON files of tests/data. Apart from text_tools.hpp, since the JSON library costs every unit that includes it two
// seconds.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "text/text_tools.hpp"

namespace text_tools {

inline nlohmann::json read_json(const std::string& name) {
  std::ifstream file(data(name));
  REQUIRE(file);
  return nlohmann::json::parse(file);
}

}  // namespace text_tools
