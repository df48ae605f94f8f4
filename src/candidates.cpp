#include "vitrine/sample/candidates.inl.hpp"
