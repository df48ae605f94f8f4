#include "vitrine/text/pretokenizer.inl.hpp"
