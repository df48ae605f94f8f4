#include "vitrine/ops/top_logits.inl.hpp"
