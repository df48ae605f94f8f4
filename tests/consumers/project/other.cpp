// The second unit of the header-only program; it includes single headers, in another order than the first.
// clang-format off
#include "vitrine/text/tokenizer.hpp"
#include "vitrine/simd/dispatch.hpp"
#include "vitrine/model/gguf.hpp"
#include "vitrine/engine/session.hpp"
#include "vitrine/core/parallel.hpp"
// clang-format on

const char* other_unit_isa() { return vitrine::isa_name(vitrine::kernels().isa); }
