// The day that templates see in tests.
#pragma once

#include <ctime>

namespace support {

// 2024-07-26 09:05:03, a Friday, as in tests/templates/reference.py
inline std::tm fixed_clock() {
  std::tm time{};
  time.tm_year = 124;
  time.tm_mon = 6;
  time.tm_mday = 26;
  time.tm_hour = 9;
  time.tm_min = 5;
  time.tm_sec = 3;
  return time;
}

}  // namespace support
