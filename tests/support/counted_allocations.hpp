// Counts what operator new is asked for in this program; include it in one unit of a test program. Sanitizers bring
// allocators of their own: under them nothing is counted, and is_counting says so.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#include "support/allocation_counts.hpp"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace support {

inline void* counted_allocation(std::size_t size, std::size_t alignment) {
  ++n_allocations;
  n_bytes_wanted += std::int64_t(size);
  if (allocations_until_refused >= 0 && allocations_until_refused-- == 0) throw std::bad_alloc();
  void* memory = alignment > alignof(std::max_align_t)
                     ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                     : std::malloc(size ? size : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace support

void* operator new(std::size_t size) { return support::counted_allocation(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return support::counted_allocation(size, std::size_t(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif
