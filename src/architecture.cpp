#include "vitrine/model/architecture.inl.hpp"
