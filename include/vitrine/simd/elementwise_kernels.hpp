// Kernel entries: elementwise.
#pragma once

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

struct ElementwiseKernels {};

VITRINE_NAMESPACE_END
