#include "vitrine/engine/stop_rules.inl.hpp"
