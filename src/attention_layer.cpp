#include "vitrine/layers/attention_layer.inl.hpp"
