// STEP 1/9 tokenize, for chats: a conversation becomes a prompt by the model's own chat template.
//
//   const ChatTemplate chat(model->tokenizer());
//   const ChatPrompt prompt = chat.render({.messages = chat_messages({{"system", "Be brief."}, {"user", "Hi"}})});
//   std::vector<Token> ids = encode(model->tokenizer(), prompt);
//
// The prompt knows which of its text is scaffold, written by the template, and which came from the conversation.
// Special tokens are recognised in the scaffold only: no turn begins or ends but by the template. For ordinary messages
// the ids are those of the whole text. A model without a template is an error, never a guess.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/text/jinja/template.hpp"
#include "vitrine/text/tokenizer.hpp"

VITRINE_NAMESPACE_BEGIN

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

// A list of messages as templates see them. What has more than role and content comes from jinja::Value::from_json:
// content that is null or a list of parts, tool_calls, tool_call_id, reasoning_content ...
jinja::Value chat_messages(const std::vector<ChatMessage>& messages);

struct Conversation {
  jinja::Value messages;                   // a list of dicts
  jinja::Value tools = jinja::None{};      // a list of functions, as in OpenAI's interface
  jinja::Value documents = jinja::None{};  // a list of dicts with title and text, for templates that show some
  bool add_generation_prompt = true;       // end with the start of the assistant's turn
  std::vector<std::pair<std::string, jinja::Value>> variables{};  // what else the template reads: enable_thinking ...
  std::string template_name{};  // which of several; empty: tool_use with tools, if there is one
};

// Where a stretch of a prompt came from.
struct PromptSource {
  enum class Kind : std::uint8_t { scaffold, message, tools, document, variable } kind = Kind::scaffold;
  std::size_t index = 0;  // of the message or document
  bool operator==(const PromptSource&) const = default;
};
jinja::Origin origin_of(const PromptSource& source);  // as values are marked with it
PromptSource source_of(jinja::Origin origin);

struct ChatPrompt {
  struct Segment {
    std::size_t begin, end;  // bytes of the text
    PromptSource source;
  };
  std::string text;
  std::vector<Segment> segments;  // in order; together they are the text
  bool uses_clock = false;        // the template wrote the time: another day gives another prompt
};

class ChatTemplate {
 public:
  // Names of special tokens as templates know them, and their texts: {"bos_token", "<s>"}.
  using SpecialTokens = std::vector<std::pair<std::string, std::string>>;

  // The templates of the model's file. Throws Error::unsupported if it has none, TemplateError for one that is not
  // understood (a template for another purpose only when it is asked for).
  explicit ChatTemplate(const Tokenizer& tokenizer);
  // One of the caller's own.
  ChatTemplate(const Tokenizer& tokenizer, std::string source);
  ChatTemplate(std::string source, SpecialTokens special_tokens);

  // Throws TemplateError, as jinja::Template::render does: refused, if the template refuses such a conversation.
  // Error::bad_argument for messages that are none, or the name of a template that there is not.
  ChatPrompt render(const Conversation& conversation, const jinja::RenderOptions& options = {}) const;

  const std::string& source(std::string_view name = {}) const;  // of the default one, or by name
  std::vector<std::string> names() const;                       // of those for other purposes
  bool mentions(std::string_view variable) const;               // the default one reads it: "tools", "documents"

 private:
  struct Named {
    std::string name;
    std::shared_ptr<const jinja::Template> parsed;  // or what was wrong with it
    std::exception_ptr failure;
  };
  const jinja::Template& find(std::string_view name) const;

  SpecialTokens special_tokens_;
  std::vector<Named> templates_;  // the default one has no name
};

// The prompt's ids, with exactly one BOS where the model wants one: the template's, or else the tokenizer's.
std::vector<Token> encode(const Tokenizer& tokenizer, const ChatPrompt& prompt);

// For each of the ids that encode() gave: the source of its first byte.
std::vector<PromptSource> token_sources(const Tokenizer& tokenizer, const ChatPrompt& prompt,
                                        std::span<const Token> tokens);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/text/chat_template.inl.hpp"
#endif
