#include "vitrine/sample/sampling_options.inl.hpp"
