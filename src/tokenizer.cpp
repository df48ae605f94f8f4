#include "vitrine/text/tokenizer.inl.hpp"
