#include "vitrine/ops/attention.inl.hpp"
