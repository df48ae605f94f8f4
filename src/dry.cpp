#include "vitrine/sample/dry.inl.hpp"
