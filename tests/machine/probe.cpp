// probe: which kernels are chosen here, and which there are.
#include <cstdio>

#include "vitrine/core/error.hpp"
#include "vitrine/simd/dispatch.hpp"

int main() try {
  std::printf("chosen: %s\navailable:", vitrine::kernels().name);
  for (const auto isa : vitrine::available_isas()) std::printf(" %s", vitrine::isa_name(isa));
  std::printf(".\n");
} catch (const vitrine::Error& error) {
  std::printf("%s\n", error.what());
  return 1;
}
