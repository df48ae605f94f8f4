// Kernel entries: attention.
#pragma once

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

struct AttentionKernels {};

VITRINE_NAMESPACE_END
