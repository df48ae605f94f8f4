#include "vitrine/engine/prefix_cache.inl.hpp"
