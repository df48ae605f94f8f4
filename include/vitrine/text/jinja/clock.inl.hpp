// strftime in the C locale, the same on every machine. For bodies only.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "vitrine/text/jinja/budget.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja::clock {

inline constexpr std::string_view days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                            "Thursday", "Friday", "Saturday"};
inline constexpr std::string_view months[] = {"January", "February", "March",     "April",   "May",      "June",
                                              "July",    "August",   "September", "October", "November", "December"};

inline bool is_leap(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

// Week 1 of a year by ISO 8601 has its first Thursday. Gives the week and the year that it belongs to.
inline int iso_week(const std::tm& time, int& year) {
  year = time.tm_year + 1900;
  const int weekday = (time.tm_wday + 6) % 7;
  const int week = (time.tm_yday - weekday + 10) / 7;
  const auto weeks_in = [](int y) {
    const auto first = [](int x) { return (x + x / 4 - x / 100 + x / 400) % 7; };  // weekday of December 31st
    return first(y) == 4 || first(y - 1) == 3 ? 53 : 52;
  };
  if (week < 1) return weeks_in(--year);
  if (week > weeks_in(year)) return ++year, 1;
  return week;
}

inline std::string format(std::string_view pattern, const std::tm& time) {
  std::string out;
  const auto number = [&](int value, int width, char pad) {
    std::string digits = std::to_string(value);
    if (pad != '-' && int(digits.size()) < width) digits.insert(0, std::size_t(width) - digits.size(), pad);
    out += digits;
  };
  const int hour12 = time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12, year = time.tm_year + 1900;
  int iso_year = 0;
  const int week = iso_week(time, iso_year);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    char c = pattern[++i], flag = 0;
    if ((c == '-' || c == '_' || c == '0') && i + 1 < pattern.size()) flag = c, c = pattern[++i];
    const char zero = flag == '_' ? ' ' : flag == '-' ? '-' : '0', space = flag == '0' ? '0' : flag == '-' ? '-' : ' ';
    switch (c) {
      case 'a': out += days[time.tm_wday].substr(0, 3); break;
      case 'A': out += days[time.tm_wday]; break;
      case 'b':
      case 'h': out += months[time.tm_mon].substr(0, 3); break;
      case 'B': out += months[time.tm_mon]; break;
      case 'c': out += format("%a %b %e %H:%M:%S %Y", time); break;
      case 'C': number(year / 100, 2, zero); break;
      case 'd': number(time.tm_mday, 2, zero); break;
      case 'D':
      case 'x': out += format("%m/%d/%y", time); break;
      case 'e': number(time.tm_mday, 2, space); break;
      case 'f': out += "000000"; break;
      case 'F': out += format("%Y-%m-%d", time); break;
      case 'g': number(iso_year % 100, 2, zero); break;
      case 'G': number(iso_year, 4, zero); break;
      case 'H': number(time.tm_hour, 2, zero); break;
      case 'I': number(hour12, 2, zero); break;
      case 'j': number(time.tm_yday + 1, 3, zero); break;
      case 'k': number(time.tm_hour, 2, space); break;
      case 'l': number(hour12, 2, space); break;
      case 'm': number(time.tm_mon + 1, 2, zero); break;
      case 'M': number(time.tm_min, 2, zero); break;
      case 'n': out += '\n'; break;
      case 'p': out += time.tm_hour < 12 ? "AM" : "PM"; break;
      case 'P': out += time.tm_hour < 12 ? "am" : "pm"; break;
      case 'r': out += format("%I:%M:%S %p", time); break;
      case 'R': out += format("%H:%M", time); break;
      case 'S': number(time.tm_sec, 2, zero); break;
      case 't': out += '\t'; break;
      case 'T':
      case 'X': out += format("%H:%M:%S", time); break;
      case 'u': number((time.tm_wday + 6) % 7 + 1, 1, zero); break;
      case 'U': number((time.tm_yday + 7 - time.tm_wday) / 7, 2, zero); break;
      case 'V': number(week, 2, zero); break;
      case 'w': number(time.tm_wday, 1, zero); break;
      case 'W': number((time.tm_yday + 7 - (time.tm_wday + 6) % 7) / 7, 2, zero); break;
      case 'y': number(year % 100, 2, zero); break;
      case 'Y': number(year, 1, zero); break;
      case 'z':
      case 'Z': break;  // a time without zone, as datetime.now() gives it
      case '%': out += '%'; break;
      default: fail("strftime_now: '%", c, "' is not supported");
    }
  }
  return out;
}

// A caller's clock may give anything.
inline std::tm checked(std::tm time) {
  const auto in = [](int value, int least, int most) { return value >= least && value <= most; };
  const bool valid = in(time.tm_sec, 0, 61) && in(time.tm_min, 0, 59) && in(time.tm_hour, 0, 23) &&
                     in(time.tm_mday, 1, 31) && in(time.tm_mon, 0, 11) && in(time.tm_year, -1899, 8099);
  if (!valid) fail("strftime_now: the clock gives a time that does not exist");
  // Weekday and day of the year follow from the date.
  static constexpr int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  const int year = time.tm_year + 1900, last = year - 1;
  time.tm_yday = before[time.tm_mon] + time.tm_mday - 1 + (time.tm_mon > 1 && is_leap(year));
  time.tm_wday = (last + last / 4 - last / 100 + last / 400 + time.tm_yday + 1) % 7;
  return time;
}

}  // namespace jinja::clock

VITRINE_NAMESPACE_END
