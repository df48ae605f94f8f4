// A target with a fault, for run.py: what finds nothing here would find nothing elsewhere.
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view input = fuzz::as_text(bytes, size);
  fuzz::law(!input.starts_with("{%"), "no input begins with a tag");
  return 0;
}
