// Which version of the library a program runs with, as against the headers that it was compiled with.
//
//   if (std::string_view(vitrine::version()) != VITRINE_VERSION_STRING) ...   // an older or newer library was loaded
//
// core/config.hpp has the version of the headers, as numbers and as text. Header-only programs have one version.
#pragma once

#include <cstdint>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

// The version of the arithmetic: the same model, cache type and input give the same bits wherever it is the same. It is
// written into saved sessions and keys of prefixes. Since 2 the peaks of a quantised layer's input are multiplied as
// they are (simd/linear_kernels.hpp).
inline constexpr std::uint32_t arithmetic_version = 2;

// "major.minor.patch" of the compiled library.
const char* version();

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/core/version.inl.hpp"
#endif
