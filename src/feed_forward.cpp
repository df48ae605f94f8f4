#include "vitrine/layers/feed_forward.inl.hpp"
