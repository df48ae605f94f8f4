#include "vitrine/core/version.inl.hpp"
