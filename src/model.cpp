#include "vitrine/engine/model.inl.hpp"
