#include "vitrine/core/block_decode.inl.hpp"
