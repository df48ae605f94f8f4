#include "vitrine/model/transformer.inl.hpp"
