#include "vitrine/engine/session.inl.hpp"
