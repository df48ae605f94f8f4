#include "vitrine/sample/sampler.inl.hpp"
