#include "vitrine/sample/logit_edits.inl.hpp"
