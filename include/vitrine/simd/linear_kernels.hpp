// Kernel entries: linear.
#pragma once

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

struct LinearKernels {};

VITRINE_NAMESPACE_END
