#include "vitrine/engine/memory_plan.inl.hpp"
