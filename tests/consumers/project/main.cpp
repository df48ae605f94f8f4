// consumer MODEL: opens a model and says what it found. Built in every way in which Vitrine can be used.
#include <iostream>

#include "vitrine/core/parallel.hpp"
#include "vitrine/model/gguf.hpp"
#include "vitrine/simd/dispatch.hpp"

#ifdef VITRINE_HEADER_ONLY
const char* other_unit_isa();
#endif

int main(int, char** argv) try {
  const auto file = vitrine::GgufFile::open(argv[1]);
  vitrine::Team team(2);
  team.run([](vitrine::Worker& worker) { worker.sync(); });
  std::cout << "Vitrine " VITRINE_VERSION_STRING ", " << vitrine::isa_name(vitrine::kernels().isa)
            << " kernels: " << file.text("general.architecture") << ", " << file.tensors().size() << " tensors\n";
#ifdef VITRINE_HEADER_ONLY
  if (std::string_view(other_unit_isa()) != vitrine::isa_name(vitrine::kernels().isa)) return 1;
#endif
  return file.tensors().empty();
} catch (const vitrine::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
