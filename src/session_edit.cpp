#include "vitrine/engine/session_edit.inl.hpp"
