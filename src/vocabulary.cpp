#include "vitrine/text/vocabulary.inl.hpp"
