// What counted_allocations.hpp counts and refuses, for the other units of a test program.
#pragma once

#include <atomic>
#include <cstdint>

namespace support {

inline std::atomic<std::int64_t> n_allocations{0};
inline std::atomic<std::int64_t> n_bytes_wanted{0};  // in all, whether given back or not
// Counts down at each allocation of this thread; the one that finds it at zero is refused. Negative: none is.
inline thread_local std::int64_t allocations_until_refused = -1;

}  // namespace support
