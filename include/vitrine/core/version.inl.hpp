// Bodies of core/version.hpp.
#pragma once

#include "vitrine/core/version.hpp"

VITRINE_NAMESPACE_BEGIN

VITRINE_INLINE const char* version() { return VITRINE_VERSION_STRING; }

VITRINE_NAMESPACE_END
