// What the fuzz targets share: a law that must hold for every input, and bytes taken off the front of one.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string_view>

#include "vitrine/core/error.hpp"

namespace fuzz {

inline void law(bool holds, std::string_view words) {
  if (holds) return;
  std::cerr << "broken: " << words << std::endl;
  std::abort();
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// The first byte, which chooses what is done with the rest; 0 if there is none.
inline unsigned take_byte(std::string_view& text) {
  if (text.empty()) return 0;
  const auto byte = static_cast<unsigned char>(text.front());
  text.remove_prefix(1);
  return byte;
}

// An Error is an answer as good as any other. Another exception, a signal or a broken law is not.
template <class Call>
bool answers(Call&& call) {
  try {
    call();
    return true;
  } catch (const vitrine::Error& error) {
    law(error.what()[0] != '\0', "an error says what is wrong");
    return false;
  }
}

}  // namespace fuzz
