#include "vitrine/model/weight_image.inl.hpp"
