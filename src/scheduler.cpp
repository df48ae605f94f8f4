#include "vitrine/engine/scheduler.inl.hpp"
