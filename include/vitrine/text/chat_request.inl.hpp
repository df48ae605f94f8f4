#pragma once

#include <algorithm>
#include <array>

#include "vitrine/core/error.hpp"
#include "vitrine/text/chat_request.hpp"

VITRINE_NAMESPACE_BEGIN

namespace request_detail {

using jinja::Value;

// Which of the request's messages and documents are in, and what each one costs.
struct Draft {
  std::vector<std::size_t> turns, documents;  // indices into the request's lists
  std::vector<RequestPart> message_parts;     // of each message of the conversation
  BuiltRequest built;
  std::array<std::int64_t, 8> counts{};
  std::vector<std::int64_t> of_message, of_document;
};

inline Value question_message(const ChatRequest& request, const Draft& draft) {
  jinja::MarkedText content;
  if (!request.documents_by_template)
    for (std::size_t i = 0; i < draft.documents.size(); ++i) {
      const ChatDocument& document = request.documents[draft.documents[i]];
      const auto origin = origin_of({PromptSource::Kind::document, i});
      content.append(
          concat("[", i + 1, "] ", document.title, document.title.empty() ? "" : "\n", document.text, "\n\n"), origin);
    }
  content.append(request.question, jinja::scaffold);  // marked as its message's by the template
  return Value::dict({{"role", "user"}, {"content", Value(std::move(content))}});
}

inline const Value::Items& items_of(const Value& list, const char* what) {
  check(list.list() != nullptr, ErrorKind::bad_argument, what, ": expected a list of messages");
  return list.list()->items;
}

inline void build(const ChatTemplate& chat, const Tokenizer& tokenizer, const ChatRequest& request,
                  const jinja::RenderOptions& options, Draft& draft) {
  Value::Items messages;
  draft.message_parts.clear();
  const auto add = [&](Value message, RequestPart part) {
    messages.push_back(std::move(message));
    draft.message_parts.push_back(part);
  };
  if (!request.system.empty()) add(Value::dict({{"role", "system"}, {"content", request.system}}), RequestPart::system);
  for (const std::size_t turn : draft.turns) add(items_of(request.history, "history")[turn], RequestPart::history);
  add(question_message(request, draft), RequestPart::question);
  for (const Value& message : items_of(request.tool_results, "tool_results")) add(message, RequestPart::tool_results);

  auto& built = draft.built;
  built.conversation = {.messages = Value::list(std::move(messages)),
                        .tools = request.tools,
                        .add_generation_prompt = request.add_generation_prompt,
                        .variables = request.variables};
  if (request.documents_by_template && !draft.documents.empty()) {
    Value::Items documents;
    for (const std::size_t i : draft.documents)
      documents.push_back(Value::dict({{"title", request.documents[i].title}, {"text", request.documents[i].text}}));
    built.conversation.documents = Value::list(std::move(documents));
  }
  built.prompt = chat.render(built.conversation, options);
  built.tokens = encode(tokenizer, built.prompt);

  draft.counts.fill(0);
  draft.of_message.assign(draft.message_parts.size(), 0);
  draft.of_document.assign(draft.documents.size(), 0);
  for (const PromptSource& source : token_sources(tokenizer, built.prompt, built.tokens)) {
    RequestPart part = RequestPart::scaffold;
    switch (source.kind) {
      case PromptSource::Kind::scaffold: break;
      case PromptSource::Kind::message:
        part = draft.message_parts[source.index];
        ++draft.of_message[source.index];
        break;
      case PromptSource::Kind::tools: part = RequestPart::tools; break;
      case PromptSource::Kind::document:
        part = RequestPart::documents;
        ++draft.of_document[source.index];
        break;
      case PromptSource::Kind::variable: part = RequestPart::variables; break;
    }
    ++draft.counts[std::size_t(part)];
  }
}

inline std::int64_t budget_of(const TokenBudget& budget, RequestPart part) {
  switch (part) {
    case RequestPart::system: return budget.system;
    case RequestPart::history: return budget.history;
    case RequestPart::documents: return budget.documents;
    case RequestPart::tool_results: return budget.tool_results;
    case RequestPart::question: return budget.question;
    default: return 0;
  }
}
inline bool is_over(const Draft& draft, const TokenBudget& budget, RequestPart part) {
  const std::int64_t most = budget_of(budget, part);
  return most > 0 && draft.counts[std::size_t(part)] > most;
}
inline bool is_over_in_all(const Draft& draft, const TokenBudget& budget) {
  return budget.total > 0 && std::int64_t(draft.built.tokens.size()) > budget.total;
}

// Leaves the last document out.
inline bool drop_document(const ChatRequest& request, Draft& draft) {
  if (!request.drop_lowest_documents || draft.documents.empty()) return false;
  draft.built.dropped.push_back({RequestPart::documents, draft.documents.back(), draft.of_document.back()});
  draft.documents.pop_back();
  return true;
}

// Leaves the oldest turn out: a user's message and all up to the next one, so that turns still alternate.
inline bool drop_turn(const ChatRequest& request, Draft& draft) {
  if (!request.drop_oldest_turns || draft.turns.empty()) return false;
  const std::size_t first = request.system.empty() ? 0 : 1;
  const auto& history = request.history.list()->items;
  const auto is_user = [&](std::size_t turn) {
    const Value* role = history[turn].find("role");
    return role && role->string() && role->string()->text.bytes() == "user";
  };
  std::size_t n = 1;
  while (n < draft.turns.size() && !is_user(draft.turns[n])) ++n;
  for (std::size_t i = 0; i < n; ++i)
    draft.built.dropped.push_back({RequestPart::history, draft.turns[i], draft.of_message[first + i]});
  draft.turns.erase(draft.turns.begin(), draft.turns.begin() + std::ptrdiff_t(n));
  return true;
}

}  // namespace request_detail

VITRINE_INLINE const char* request_part_name(RequestPart part) {
  static constexpr const char* names[] = {"scaffold",     "system",   "history", "documents",
                                          "tool_results", "question", "tools",   "variables"};
  return names[std::size_t(part)];
}

VITRINE_INLINE BuiltRequest build_request(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                          const ChatRequest& request, const jinja::RenderOptions& options) {
  using namespace request_detail;
  check(!request.documents_by_template || request.documents.empty() || chat.mentions("documents"),
        ErrorKind::unsupported, "documents_by_template: the model's chat template shows no documents");
  Draft draft;
  for (std::size_t i = 0; i < items_of(request.history, "history").size(); ++i) draft.turns.push_back(i);
  for (std::size_t i = 0; i < request.documents.size(); ++i) draft.documents.push_back(i);
  for (;;) {
    build(chat, tokenizer, request, options, draft);
    const TokenBudget& budget = request.budget;
    if (is_over(draft, budget, RequestPart::documents) && drop_document(request, draft)) continue;
    if (is_over(draft, budget, RequestPart::history) && drop_turn(request, draft)) continue;
    if (is_over_in_all(draft, budget) && (drop_document(request, draft) || drop_turn(request, draft))) continue;
    break;
  }
  bool fits = !is_over_in_all(draft, request.budget);
  std::string numbers;
  auto& built = draft.built;
  for (std::size_t i = 0; i < draft.counts.size(); ++i) {
    const auto part = RequestPart(i);
    const std::int64_t most = budget_of(request.budget, part);
    built.parts.push_back({part, draft.counts[i], most});
    fits &= !is_over(draft, request.budget, part);
    if (draft.counts[i] == 0 && most == 0) continue;
    numbers +=
        concat(", ", request_part_name(part), " ", draft.counts[i], most > 0 ? concat(" of ", most) : std::string());
  }
  check(fits, ErrorKind::context_full, "the prompt has ", built.tokens.size(), " tokens",
        request.budget.total > 0 ? concat(", its budget is ", request.budget.total) : std::string(), numbers);
  return std::move(built);
}

VITRINE_NAMESPACE_END
