#include "vitrine/text/stop_strings.inl.hpp"
