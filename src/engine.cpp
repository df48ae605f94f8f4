#include "vitrine/engine/engine.inl.hpp"
