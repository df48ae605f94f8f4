#pragma once

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstdint>

#include "vitrine/core/huge_pages.hpp"
#include "vitrine/core/rounding.hpp"

VITRINE_NAMESPACE_BEGIN

VITRINE_INLINE void advise_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t n_bytes) noexcept {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t page = huge_page_bytes;
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t first = round_up(begin, page), last = (begin + n_bytes) / page * page;
  if (first < last) static_cast<void>(::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE));
#endif
}

VITRINE_NAMESPACE_END
