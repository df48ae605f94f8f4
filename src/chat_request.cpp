#include "vitrine/text/chat_request.inl.hpp"
