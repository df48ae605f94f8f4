#include "vitrine/text/load_tokenizer.inl.hpp"
