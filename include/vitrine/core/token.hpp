// A token's id in the vocabulary: 0 .. n_vocab - 1.
#pragma once

#include <cstdint>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

using Token = std::int32_t;

VITRINE_NAMESPACE_END
