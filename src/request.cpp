#include "vitrine/engine/request.inl.hpp"
