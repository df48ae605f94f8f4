#include "vitrine/engine/generate.inl.hpp"
