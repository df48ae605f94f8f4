// The version is written once as numbers and once as text; library and headers of one build agree.
#include <catch2/catch.hpp>
#include <string>

#include "vitrine/core/version.hpp"

TEST_CASE("the library says the version that its headers have") {
  const auto numbers = std::to_string(VITRINE_VERSION_MAJOR) + "." + std::to_string(VITRINE_VERSION_MINOR) + "." +
                       std::to_string(VITRINE_VERSION_PATCH);
  CHECK(vitrine::version() == numbers);
  CHECK(VITRINE_VERSION_STRING == numbers);
}
