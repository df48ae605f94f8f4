#include "vitrine/ops/reference.inl.hpp"
