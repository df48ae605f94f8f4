#include "vitrine/text/jinja/template.inl.hpp"
