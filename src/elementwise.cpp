#include "vitrine/ops/elementwise.inl.hpp"
