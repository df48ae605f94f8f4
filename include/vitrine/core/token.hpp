// A token: the number of a row of the embedding, 0 to n_vocab - 1.
//
// What text it stands for is the tokenizer's business (text/tokenizer.hpp); below that layer a sequence of tokens is
// just a span of these numbers. 32 bits with a sign, so that -1 can mean "none" inside the library. A number outside of
// the vocabulary is refused with Error::bad_argument where it enters the library.
#pragma once

#include <cstdint>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

using Token = std::int32_t;

VITRINE_NAMESPACE_END
