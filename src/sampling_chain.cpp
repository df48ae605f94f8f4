#include "vitrine/sample/sampling_chain.inl.hpp"
