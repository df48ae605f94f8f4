#include "vitrine/model/mapped_file.inl.hpp"
