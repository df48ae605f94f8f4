// A question with all that goes with it, as a prompt that fits: system message, history, retrieved documents, tool
// results -> messages -> text -> ids. Every stage is there to look at, with the tokens of every part.
//
//   ChatRequest request{.system = "Answer from the documents.", .question = "Why?", .documents = ranked};
//   request.budget = {.total = 2000, .documents = 1500};
//   const BuiltRequest built = build_request(chat, tokenizer, request);   // built.tokens, built.parts, built.changes
//
// What does not fit is refused with all the numbers. Only who asks for it gets a prompt from which the oldest turns or
// the documents of the lowest rank are left out, and a list of what was. The list also names what the model's template
// itself does not show: a system message that it knows no place for, thoughts of earlier answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/text/chat_template.hpp"

VITRINE_NAMESPACE_BEGIN

struct ChatDocument {
  std::string title, text;
};

// At most so many tokens; 0: no limit of its own.
struct TokenBudget {
  std::int64_t total = 0;  // of the whole prompt: the context less the room for the answer
  std::int64_t system = 0, history = 0, documents = 0, tool_results = 0, question = 0;
};

struct ChatRequest {
  std::string system{};                           // empty: none
  jinja::Value history = jinja::Value::list({});  // earlier messages, oldest first
  std::string question{};
  std::vector<ChatDocument> documents{};               // best first
  jinja::Value tool_results = jinja::Value::list({});  // messages behind the question: calls and their results
  jinja::Value tools = jinja::None{};
  // Documents stand in the question's message, numbered, before the question; or where a template shows `documents`.
  bool documents_by_template = false;
  TokenBudget budget{};
  // What may go where it does not fit: documents from the last on; then turns (a user's message and the answer to it)
  // from the first on. No more than must.
  bool drop_lowest_documents = false, drop_oldest_turns = false;
  std::vector<std::pair<std::string, jinja::Value>> variables{};  // what else the template reads
  bool add_generation_prompt = true;
};

enum class RequestPart : std::uint8_t {
  scaffold,  // the template's own words
  system,
  history,
  documents,
  tool_results,
  question,
  tools,
  variables
};
inline constexpr std::size_t n_request_parts = 8;
const char* request_part_name(RequestPart part);

struct PartTokens {
  RequestPart part;
  std::int64_t tokens = 0, budget = 0;  // 0: no budget
};

struct RequestChange {
  enum class Kind : std::uint8_t {
    dropped,   // to fit the budget, as the request allows
    not_shown  // by the template, in whole or in part
  } kind;
  RequestPart part;
  std::size_t index = 0;    // in the request's list
  std::int64_t tokens = 0;  // dropped: that it had
  std::int64_t bytes = 0;   // not_shown: that are missing, apart from white space; 0 for tools, of which all are
};

struct BuiltRequest {
  Conversation conversation;
  ChatPrompt prompt;
  std::vector<Token> tokens;
  std::vector<PartTokens> parts;       // each once; together they are all tokens
  std::vector<RequestChange> changes;  // all there are between the request and the prompt
};

// Throws Error::context_full with the tokens and budgets of all parts if they do not fit; Error::unsupported for
// documents_by_template with a template that shows none; what ChatTemplate::render throws.
BuiltRequest build_request(const ChatTemplate& chat, const Tokenizer& tokenizer, const ChatRequest& request,
                           const jinja::RenderOptions& options = {});

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/text/chat_request.inl.hpp"
#endif
