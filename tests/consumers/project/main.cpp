// consumer MODEL: generates four tokens with a model. Built in every way in which Vitrine can be used.
#include <iostream>
#include <string_view>

#include "vitrine/vitrine.hpp"

#ifdef VITRINE_HEADER_ONLY
const char* other_unit_isa();
#endif

int main(int, char** argv) try {
  if (std::string_view(vitrine::version()) != VITRINE_VERSION_STRING) return 1;
  const auto model = vitrine::Model::load(argv[1]);
  vitrine::Session session(model, {.n_threads = 2});
  auto generation = vitrine::generate(session, model->tokenizer().encode("hello"), {.max_new_tokens = 4});
  for (const auto& token : generation) std::cout << token.id << ' ';
  std::cout << "by Vitrine " VITRINE_VERSION_STRING " with " << session.isa() << " kernels\n";
#ifdef VITRINE_HEADER_ONLY
  if (std::string_view(other_unit_isa()) != session.isa()) return 1;
#endif
  return generation.result().tokens.empty();
} catch (const vitrine::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
