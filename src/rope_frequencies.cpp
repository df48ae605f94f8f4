#include "vitrine/model/rope_frequencies.inl.hpp"
