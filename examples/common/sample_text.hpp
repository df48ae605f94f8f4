// Texts for programs that compare how well something reads: a file of the user's, or a short story; a text to copy.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "common/model.hpp"

namespace example {

inline constexpr const char* short_story =
    "The keeper of the lighthouse wrote down the weather every evening, and because nobody ever asked for the books, "
    "he filled them with more than weather. On the fourth of March, for instance, the wind came from the north-west, "
    "the sea was rough, and a woman in a grey coat stood on the pier for an hour, looking at nothing in particular. On "
    "the fifth the wind had turned, the sea was calm, and she was there again. He did not wave; one does not wave at "
    "people who look at nothing. But he noted that her coat was now blue, and he noted, too, that he had noticed. All "
    "through April the entries grew longer. There was a dog that belonged to no one and followed the postman as far as "
    "the bridge. There was a ship that passed without a flag, slowly, as if it were reading the coast like a letter. "
    "There was the question of the bell, which had rung twice in the night although the rope had been taken down years "
    "ago to mend a fence. In May the woman did not come, and the keeper measured the rain with more care than usual. "
    "When the books were found, forty years later, the meteorologists were delighted with the wind. They had never "
    "seen such a complete record of that part of the sea, they said, and they copied the figures into long tables. "
    "The rest they put into a box, and the box went to a school, and there a teacher read to her class about a coat "
    "that was grey on one day and blue on the next.";

// An answer to it repeats what the prompt has said, so that it is easy to guess.
inline constexpr const char* copy_task =
    "Copy this text, word for word:\n\nThe old lighthouse keeper climbed the winding stairs every evening to light the "
    "great lamp. The great lamp sent its beam across the dark water, and the ships that passed in the night knew that "
    "the old lighthouse keeper had climbed the winding stairs once more.";

inline void add_text_option(cxxopts::OptionAdder& add) {
  add("text", "file with the text to read; a short story if none", cxxopts::value<std::string>()->default_value(""),
      "FILE");
}

// The first tokens of the text, n_most of them or fewer.
inline std::vector<Token> text_tokens(const Arguments& args, const vitrine::Model& model, std::int64_t n_most) {
  const auto path = args.get<std::string>("text");
  auto tokens = model.tokenizer().encode(path.empty() ? short_story : args.file("text"), {.add_special = true});
  tokens.resize(std::min(tokens.size(), std::size_t(n_most)));
  expect(tokens.size() >= 2, vitrine::concat("--text: expected at least 2 tokens, got ", tokens.size(), " in ", path));
  return tokens;
}

}  // namespace example
