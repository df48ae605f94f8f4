#include "vitrine/core/huge_pages.inl.hpp"
