#include "vitrine/simd/dispatch.inl.hpp"
