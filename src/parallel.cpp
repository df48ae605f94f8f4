#include "vitrine/core/parallel.inl.hpp"
