#include "vitrine/model/safetensors.inl.hpp"
