// Counts what operator new is asked for in this program, and refuses it; include it in one unit of a test program. All
// forms are here, since sanitizers bring forms of their own that do not go with others' delete.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#include "support/allocation_counts.hpp"
#include "vitrine/core/rounding.hpp"

namespace support {

inline void* counted_allocation(std::size_t size, std::size_t alignment = 1) {
  ++n_allocations;
  n_bytes_wanted += std::int64_t(size);
  if (allocations_until_refused >= 0 && allocations_until_refused-- == 0) throw std::bad_alloc();
  void* memory = alignment > alignof(std::max_align_t)
                     ? std::aligned_alloc(alignment, vitrine::round_up(size, alignment))
                     : std::malloc(size ? size : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}
inline void* counted_allocation_or_null(std::size_t size, std::size_t alignment = 1) noexcept try {
  return counted_allocation(size, alignment);
} catch (const std::bad_alloc&) {
  return nullptr;
}

// Not inlined: the compiler would see memory of `new` in the hands of free(), and warn.
[[gnu::noinline]] inline void give_back(void* memory) noexcept { std::free(memory); }

}  // namespace support

void* operator new(std::size_t size) { return support::counted_allocation(size); }
void* operator new[](std::size_t size) { return support::counted_allocation(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return support::counted_allocation(size, std::size_t(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return support::counted_allocation(size, std::size_t(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return support::counted_allocation_or_null(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return support::counted_allocation_or_null(size);
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return support::counted_allocation_or_null(size, std::size_t(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return support::counted_allocation_or_null(size, std::size_t(alignment));
}
void operator delete(void* memory) noexcept { support::give_back(memory); }
void operator delete[](void* memory) noexcept { support::give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { support::give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { support::give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { support::give_back(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { support::give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { support::give_back(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { support::give_back(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { support::give_back(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { support::give_back(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept { support::give_back(memory); }
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept { support::give_back(memory); }
