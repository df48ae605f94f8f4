#include "vitrine/ops/linear.inl.hpp"
