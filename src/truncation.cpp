#include "vitrine/sample/truncation.inl.hpp"
