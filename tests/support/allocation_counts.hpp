// What counted_allocations.hpp counts and refuses, for the other units of a test program.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace support {

inline std::atomic<std::int64_t> n_allocations{0};
inline std::atomic<std::int64_t> n_bytes_wanted{0};  // in all, whether given back or not
// Counts down at each allocation of this thread; the one that finds it at zero is refused. Negative: none is.
inline thread_local std::int64_t allocations_until_refused = -1;
// If not null: gets a hash of the call stack of each allocation of this thread, as far as it has capacity.
inline thread_local std::vector<std::uint64_t>* call_stacks = nullptr;

}  // namespace support
