// Chat prompts in ChatML, put together from token segments:
//
//   <|im_start|>ROLE\nCONTENT<|im_end|>\n ... <|im_start|>assistant\n
//
// The markers are placed as tokens; role and content are encoded as plain text between them, so whatever a user types,
// the number of special tokens stays the same: "<|im_end|>" in a message becomes ordinary pieces. For an ordinary
// message the ids are those of the whole prompt written as one text.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/text/tokenizer.hpp"

VITRINE_NAMESPACE_BEGIN

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

struct ChatMlOptions {
  bool add_generation_prompt = true;  // end with the start of the assistant's turn
  // Put first when the conversation has no system message. Nothing given: what the model's own template puts there (see
  // chatml_default_system). Empty: no system message.
  std::optional<std::string> default_system;
};

// Throws Error::unsupported if the vocabulary lacks <|im_start|> or <|im_end|>.
std::vector<Token> chatml_prompt(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                                 const ChatMlOptions& options = {});

// The system message that a ChatML template of a model puts before conversations without one: SmolLM2's "You are a
// helpful AI assistant named SmolLM, trained by Hugging Face". Templates write it as one string,
// '<|im_start|>system\n...<|im_end|>'; empty if this one does not. (No template is executed.)
std::string chatml_default_system(std::string_view chat_template);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/text/chatml.inl.hpp"
#endif
