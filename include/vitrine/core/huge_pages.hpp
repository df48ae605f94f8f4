// Asks the system to back large memory with large pages, where it does so on request only.
//
// Weights and caches are read in long strides; with 4 KB pages every other piece of a KV cache costs a walk through the
// page tables, and in a virtual machine through two sets of them; bench/README.md, "Decode", says what that costs. Only
// advice: nothing depends on its being taken.
#pragma once

#include <cstddef>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

inline constexpr std::size_t huge_page_bytes = std::size_t(2) << 20;

// For the whole large pages within [data, data + n_bytes). Call it before the first touch.
void advise_huge_pages(void* data, std::size_t n_bytes) noexcept;

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/core/huge_pages.inl.hpp"
#endif
