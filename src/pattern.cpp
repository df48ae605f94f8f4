#include "vitrine/text/pattern.inl.hpp"
