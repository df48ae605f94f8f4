#include "vitrine/ops/packed_matrix.inl.hpp"
