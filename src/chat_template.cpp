#include "vitrine/text/chat_template.inl.hpp"
