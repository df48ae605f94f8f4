#include "vitrine/model/gguf.inl.hpp"
