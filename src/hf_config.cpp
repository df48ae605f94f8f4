#include "vitrine/model/hf_config.inl.hpp"
