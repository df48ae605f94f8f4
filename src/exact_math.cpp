#include "vitrine/core/exact_math.inl.hpp"
