// Loading a model with a progress bar, and what several examples ask of one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/program.hpp"
#include "vitrine/engine/model.hpp"
#include "vitrine/engine/session.hpp"

namespace example {

using vitrine::Token;

std::shared_ptr<const vitrine::Model> load_model(const Arguments& args, vitrine::LoadOptions options = {});

// A text that does not fit is refused, with what can be done about it.
void check_room(const vitrine::Session& session, std::size_t n_prompt, int n_answer, const std::string& way_out);

// A token's bytes on one line, in quotes.
std::string token_text(const vitrine::Model& model, Token token);

// As many tokens as asked for, for measurements where the text is of no interest. Another `first`, other tokens.
std::vector<Token> any_tokens(const vitrine::Model& model, std::int64_t n, std::int64_t first = 0);

}  // namespace example
