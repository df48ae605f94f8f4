#include "vitrine/model/loader.inl.hpp"
