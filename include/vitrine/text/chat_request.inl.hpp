#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "vitrine/core/error.hpp"
#include "vitrine/text/chat_request.hpp"

VITRINE_NAMESPACE_BEGIN

namespace request_detail {

using jinja::Value;

inline const Value::Items& items_of(const Value& list, const char* what) {
  check(list.list() != nullptr, ErrorKind::bad_argument, what, ": expected a list of messages");
  return list.list()->items;
}

// Bytes that are no white space.
inline std::int64_t n_visible(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return c != ' ' && (c < '\t' || c > '\r'); });
}
// Those of a message's content: a text, or the texts among its parts.
inline std::int64_t n_visible_in(const Value& message) {
  const Value* content = message.find("content");
  if (content == nullptr) return 0;
  if (const auto* text = content->string()) return n_visible(text->text.bytes());
  std::int64_t n = 0;
  if (const auto* parts = content->list())
    for (const Value& part : parts->items)
      if (const Value* text = part.dict() ? part.find("text") : nullptr; text != nullptr && text->string() != nullptr)
        n += n_visible(text->string()->text.bytes());
  return n;
}

// Where turns begin: each is a user's message and all up to the next one, so that turns still alternate when the first
// ones are left out.
inline std::vector<std::size_t> turns_of(const Value::Items& history) {
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const Value* role = history[i].dict() ? history[i].find("role") : nullptr;
    if (i == 0 || (role && role->string() && role->string()->text.bytes() == "user")) begins.push_back(i);
  }
  begins.push_back(history.size());
  return begins;
}

// A prompt without some of the last documents and the first messages of the history, and what each part of it costs.
class Draft {
 public:
  Draft(const ChatTemplate& chat, const Tokenizer& tokenizer, const ChatRequest& request,
        const jinja::RenderOptions& options, std::size_t n_documents, std::size_t first_message)
      : request_(request), n_documents_(n_documents), first_message_(first_message) {
    build_messages();
    built.prompt = chat.render(built.conversation, options);
    built.tokens = encode(tokenizer, built.prompt);
    of_document.assign(n_documents, 0);
    of_message.assign(sources_.size(), 0);
    for (const PromptSource& source : token_sources(tokenizer, built.prompt, built.tokens)) {
      ++of_part[std::size_t(part_of(source))];
      if (source.kind == PromptSource::Kind::document) ++of_document[source.index];
      if (source.kind == PromptSource::Kind::message) ++of_message[source.index];
    }
  }

  std::int64_t budget(RequestPart part) const {
    switch (part) {
      case RequestPart::system: return request_.budget.system;
      case RequestPart::history: return request_.budget.history;
      case RequestPart::documents: return request_.budget.documents;
      case RequestPart::tool_results: return request_.budget.tool_results;
      case RequestPart::question: return request_.budget.question;
      default: return 0;
    }
  }
  bool fits(RequestPart part) const { return budget(part) <= 0 || of_part[std::size_t(part)] <= budget(part); }
  bool fits_in_all() const {
    return request_.budget.total <= 0 || std::int64_t(built.tokens.size()) <= request_.budget.total;
  }

  // The tokens of a message of the history.
  std::int64_t of_history(std::size_t index) const {
    return of_message[(request_.system.empty() ? 0 : 1) + index - first_message_];
  }

  // What the template did not show, by the bytes that came out of it.
  void add_not_shown(std::vector<RequestChange>& changes) const {
    std::vector<std::int64_t> of_documents(n_documents_, 0), of_messages(sources_.size(), 0);
    bool shows_tools = request_.tools.list() == nullptr || request_.tools.list()->items.empty();
    for (const auto& segment : built.prompt.segments) {
      const std::string_view text(built.prompt.text);
      const auto n = n_visible(text.substr(segment.begin, segment.end - segment.begin));
      if (segment.source.kind == PromptSource::Kind::document) of_documents[segment.source.index] += n;
      if (segment.source.kind == PromptSource::Kind::message) of_messages[segment.source.index] += n;
      shows_tools |= segment.source.kind == PromptSource::Kind::tools;
    }
    const auto add = [&](RequestPart part, std::size_t index, std::int64_t missing) {
      if (missing > 0) changes.push_back({RequestChange::Kind::not_shown, part, index, 0, missing});
    };
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const auto& [part, index] = sources_[i];
      const auto given = part == RequestPart::question ? n_visible(request_.question)
                                                       : n_visible_in(built.conversation.messages.list()->items[i]);
      add(part, index, given - of_messages[i]);
    }
    for (std::size_t i = 0; i < n_documents_; ++i)
      add(RequestPart::documents, i, n_visible(request_.documents[i].text) - of_documents[i]);
    if (!shows_tools) changes.push_back({RequestChange::Kind::not_shown, RequestPart::tools});
  }

  BuiltRequest built;
  std::array<std::int64_t, n_request_parts> of_part{};
  std::vector<std::int64_t> of_document, of_message;

 private:
  void build_messages() {
    Value::Items messages;
    const auto add = [&](Value message, RequestPart part, std::size_t index) {
      messages.push_back(std::move(message));
      sources_.emplace_back(part, index);
    };
    if (!request_.system.empty())
      add(Value::dict({{"role", "system"}, {"content", request_.system}}), RequestPart::system, 0);
    const auto& history = items_of(request_.history, "history");
    for (std::size_t i = first_message_; i < history.size(); ++i) add(history[i], RequestPart::history, i);
    add(question(), RequestPart::question, 0);
    const auto& results = items_of(request_.tool_results, "tool_results");
    for (std::size_t i = 0; i < results.size(); ++i) add(results[i], RequestPart::tool_results, i);

    built.conversation = {.messages = Value::list(std::move(messages)),
                          .tools = request_.tools,
                          .add_generation_prompt = request_.add_generation_prompt,
                          .variables = request_.variables};
    if (!request_.documents_by_template || n_documents_ == 0) return;
    Value::Items documents;
    for (std::size_t i = 0; i < n_documents_; ++i)
      documents.push_back(Value::dict({{"title", request_.documents[i].title}, {"text", request_.documents[i].text}}));
    built.conversation.documents = Value::list(std::move(documents));
  }

  Value question() const {
    jinja::MarkedText content;
    for (std::size_t i = 0; !request_.documents_by_template && i < n_documents_; ++i) {
      const ChatDocument& document = request_.documents[i];
      content.append(
          concat("[", i + 1, "] ", document.title, document.title.empty() ? "" : "\n", document.text, "\n\n"),
          origin_of({PromptSource::Kind::document, i}));
    }
    content.append(request_.question, jinja::scaffold);  // render() marks it as its message's
    return Value::dict({{"role", "user"}, {"content", Value(std::move(content))}});
  }

  RequestPart part_of(const PromptSource& source) const {
    switch (source.kind) {
      case PromptSource::Kind::message: return sources_[source.index].first;
      case PromptSource::Kind::tools: return RequestPart::tools;
      case PromptSource::Kind::document: return RequestPart::documents;
      case PromptSource::Kind::variable: return RequestPart::variables;
      case PromptSource::Kind::scaffold: break;
    }
    return RequestPart::scaffold;
  }

  const ChatRequest& request_;
  std::size_t n_documents_, first_message_;
  std::vector<std::pair<RequestPart, std::size_t>> sources_;  // of each message: its place in the request
};

[[noreturn]] inline void refuse(const Draft& draft, const TokenBudget& budget) {
  std::string numbers;
  for (std::size_t i = 0; i < n_request_parts; ++i) {
    const auto part = RequestPart(i);
    const auto most = draft.budget(part);
    if (draft.of_part[i] == 0 && most == 0) continue;
    numbers += concat(", ", request_part_name(part), " ", draft.of_part[i]);
    if (most > 0) numbers += concat(" of ", most);
  }
  throw Error(ErrorKind::context_full,
              concat("the prompt has ", draft.built.tokens.size(), " tokens",
                     budget.total > 0 ? concat(", its budget is ", budget.total) : std::string(), numbers));
}

}  // namespace request_detail

VITRINE_INLINE const char* request_part_name(RequestPart part) {
  static constexpr const char* names[n_request_parts] = {"scaffold",     "system",   "history", "documents",
                                                         "tool_results", "question", "tools",   "variables"};
  return names[std::size_t(part)];
}

VITRINE_INLINE BuiltRequest build_request(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                          const ChatRequest& request, const jinja::RenderOptions& options) {
  using namespace request_detail;
  check(!request.documents_by_template || request.documents.empty() || chat.mentions("documents"),
        ErrorKind::unsupported, "documents_by_template: the model's chat template shows no documents");
  const TokenBudget& budget = request.budget;
  for (const auto most :
       {budget.total, budget.system, budget.history, budget.documents, budget.tool_results, budget.question})
    check(most >= 0, ErrorKind::bad_argument, "budget: expected at least 0 tokens, got ", most);
  const auto turns = turns_of(items_of(request.history, "history"));
  const std::size_t all_documents = request.documents.size(), all_turns = turns.size() - 1;
  std::size_t documents = 0, oldest = 0;  // so many documents and turns are left out
  const auto draft = [&] {
    return std::make_unique<Draft>(chat, tokenizer, request, options, all_documents - documents, turns[oldest]);
  };
  const auto whole = draft();
  std::unique_ptr<Draft> fitted;
  const auto current = [&]() -> Draft& { return fitted ? *fitted : *whole; };

  // Leaves out the fewest that make it fit; each try costs a rendering, so their number is searched by halves.
  const auto drop = [&](bool may, std::size_t& dropped, std::size_t all, const auto& fits) {
    if (!may || fits(current())) return;
    std::size_t low = dropped, high = all;  // low does not fit, high does as well as it can
    while (high - low > 1) {
      dropped = low + (high - low) / 2;
      (fits(*draft()) ? high : low) = dropped;
    }
    dropped = high;
    fitted = draft();
  };
  const auto documents_fit = [](const Draft& d) { return d.fits(RequestPart::documents); };
  const auto history_fits = [](const Draft& d) { return d.fits(RequestPart::history); };
  const auto all_fits = [](const Draft& d) { return d.fits_in_all(); };
  drop(request.drop_lowest_documents, documents, all_documents, documents_fit);
  drop(request.drop_oldest_turns, oldest, all_turns, history_fits);
  drop(request.drop_lowest_documents, documents, all_documents, all_fits);
  drop(request.drop_oldest_turns, oldest, all_turns, all_fits);

  Draft& last = current();
  bool fits = last.fits_in_all();
  for (std::size_t i = 0; i < n_request_parts; ++i) {
    const auto part = RequestPart(i);
    last.built.parts.push_back({part, last.of_part[i], last.budget(part)});
    fits &= last.fits(part);
  }
  if (!fits) refuse(last, budget);
  auto& changes = last.built.changes;
  for (std::size_t i = all_documents; i > all_documents - documents; --i)
    changes.push_back({RequestChange::Kind::dropped, RequestPart::documents, i - 1, whole->of_document[i - 1]});
  for (std::size_t i = 0; i < turns[oldest]; ++i)
    changes.push_back({RequestChange::Kind::dropped, RequestPart::history, i, whole->of_history(i)});
  last.add_not_shown(changes);
  return std::move(last.built);
}

VITRINE_NAMESPACE_END
