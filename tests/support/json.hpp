// JSON files of tests/data. Apart from models.hpp, since the JSON library costs every unit that includes it seconds.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "support/models.hpp"

namespace support {

nlohmann::json read_json(const fs::path& path);

// Numbers in the reference files are the shortest decimals of floats; "inf" and the like do not occur in logits.
std::vector<float> floats(const nlohmann::json& values);
std::vector<Token> tokens(const nlohmann::json& values);

}  // namespace support
