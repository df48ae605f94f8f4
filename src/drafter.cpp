#include "vitrine/engine/drafter.inl.hpp"
