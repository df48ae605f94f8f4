#include "vitrine/engine/speculation.inl.hpp"
