// Bodies of model.hpp.
#include "common/model.hpp"

#include <iostream>

#include "common/progress_bar.hpp"

namespace example {

std::shared_ptr<const vitrine::Model> load_model(const Arguments& args, vitrine::LoadOptions options) {
  const ProgressBar bar;
  options.n_threads = args.threads();
  options.image_folder = args.image_folder();
  options.progress = bar.callback();
  auto model = vitrine::Model::load(args.model(), options);
  for (const auto& notice : model->notices()) std::cerr << notice << '\n';
  return model;
}

void check_room(const vitrine::Session& session, std::size_t n_prompt, int n_answer, const std::string& way_out) {
  const auto needed = std::int64_t(n_prompt) + n_answer;
  vitrine::check(needed <= session.context(), vitrine::ErrorKind::context_full, "the prompt of ",
                 vitrine::counted(std::int64_t(n_prompt), "token"), " needs a context of ", needed, " or more, it has ",
                 session.context(), "; ", way_out);
}

std::string token_text(const vitrine::Model& model, Token token) { return visible(model.tokenizer().piece(token)); }

std::vector<Token> any_tokens(const vitrine::Model& model, std::int64_t n, std::int64_t first) {
  std::vector<Token> tokens;
  for (auto i = first; i < first + n; ++i) tokens.push_back(Token((i * 7919 + 101) % model.config().n_vocab));
  return tokens;
}

}  // namespace example
