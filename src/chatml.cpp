#include "vitrine/text/chatml.inl.hpp"
