#pragma once

#include <algorithm>

#include "vitrine/core/error.hpp"
#include "vitrine/text/chat_template.hpp"

VITRINE_NAMESPACE_BEGIN

namespace chat_detail {

using jinja::Value;

// Some templates put a role's name into a marker, '<|' + role + '|>'. The usual names are therefore scaffold; any other
// is the caller's text.
inline bool is_usual_role(std::string_view role) {
  for (const std::string_view known :
       {"system", "developer", "user", "assistant", "tool", "function", "model", "ipython", "tool_call", "tool_result",
        "tool_results", "tool_response", "observation", "environment", "context", "document", "documents"})
    if (role == known) return true;
  return false;
}

// Marks what came without a mark, so that parts of a message may have their own.
inline Value mark(const Value& value, jinja::Origin origin) {
  if (const jinja::String* string = value.string()) {
    jinja::MarkedText marked;
    string->text.for_each_run(0, string->text.size(), [&](const jinja::MarkedText::Run& run) {
      marked.append(std::string_view(string->text.bytes()).substr(run.begin, run.end - run.begin),
                    run.origin == jinja::scaffold ? origin : run.origin);
    });
    return Value(std::move(marked));
  }
  if (const jinja::List* list = value.list()) {
    Value::Items items;
    for (const Value& item : list->items) items.push_back(mark(item, origin));
    return Value::list(std::move(items));
  }
  if (const jinja::Dict* dict = value.dict()) {
    auto copy = std::make_shared<jinja::Dict>();
    copy->depth = dict->depth;
    for (const auto& [key, item] : dict->pairs) copy->pairs.emplace_back(mark(key, origin), mark(item, origin));
    return Value(std::shared_ptr<const jinja::Dict>(std::move(copy)));
  }
  return value;
}

inline Value marked_message(const Value& message, std::size_t index) {
  check(message.dict() != nullptr, ErrorKind::bad_argument, "message ", index, ": expected an object with a role");
  const Value* role = message.find("role");
  check(role != nullptr && role->string() != nullptr, ErrorKind::bad_argument, "message ", index,
        ": expected a string as its role");
  const auto origin = origin_of({PromptSource::Kind::message, index});
  const Value marked = mark(message, origin);
  Value::Pairs pairs = marked.dict()->pairs;
  for (auto& [key, value] : pairs)
    if (key.string() && key.string()->text.bytes() == "role" && is_usual_role(role->string()->text.bytes()))
      value = Value(role->string()->text.bytes());
  auto dict = std::make_shared<jinja::Dict>(*marked.dict());
  dict->pairs = std::move(pairs);
  return Value(std::shared_ptr<const jinja::Dict>(std::move(dict)));
}

inline Value marked_each(const Value& list, PromptSource::Kind kind, const char* what) {
  if (list.is_none() || list.is_undefined()) return jinja::None{};
  check(list.list() != nullptr, ErrorKind::bad_argument, what, ": expected a list");
  Value::Items items;
  for (const Value& item : list.list()->items) items.push_back(mark(item, origin_of({kind, items.size()})));
  return Value::list(std::move(items));
}

inline ChatTemplate::SpecialTokens special_tokens(const Tokenizer& tokenizer) {
  ChatTemplate::SpecialTokens out;
  const auto add = [&](const char* name, std::optional<Token> token) {
    if (token) out.emplace_back(name, tokenizer.piece(*token));
  };
  add("bos_token", tokenizer.bos());
  add("eos_token", tokenizer.eos());
  add("unk_token", tokenizer.unknown());
  return out;
}

}  // namespace chat_detail

// Origins: 0 is the scaffold, then messages; the upper bits tell the other kinds apart.
VITRINE_INLINE jinja::Origin origin_of(const PromptSource& source) {
  if (source.kind == PromptSource::Kind::scaffold) return jinja::scaffold;
  constexpr std::size_t most = (std::size_t(1) << 28) - 2;
  return (jinja::Origin(source.kind) - 1) << 28 | jinja::Origin((std::min)(source.index, most) + 1);
}
VITRINE_INLINE PromptSource source_of(jinja::Origin origin) {
  if (origin == jinja::scaffold) return {};
  return {PromptSource::Kind((origin >> 28) + 1), std::size_t(origin & ((1u << 28) - 1)) - 1};
}

VITRINE_INLINE jinja::Value chat_messages(const std::vector<ChatMessage>& messages) {
  jinja::Value::Items items;
  for (const ChatMessage& message : messages)
    items.push_back(jinja::Value::dict({{"role", message.role}, {"content", message.content}}));
  return jinja::Value::list(std::move(items));
}

VITRINE_INLINE ChatTemplate::ChatTemplate(std::string source, SpecialTokens special_tokens)
    : special_tokens_(std::move(special_tokens)) {
  templates_.push_back({{}, std::make_shared<const jinja::Template>(std::move(source)), {}});
}
VITRINE_INLINE ChatTemplate::ChatTemplate(const Tokenizer& tokenizer, std::string source)
    : ChatTemplate(std::move(source), chat_detail::special_tokens(tokenizer)) {}

VITRINE_INLINE ChatTemplate::ChatTemplate(const Tokenizer& tokenizer)
    : special_tokens_(chat_detail::special_tokens(tokenizer)) {
  const auto& more = tokenizer.more_chat_templates();
  check(
      !tokenizer.chat_template().empty() || !more.empty(), ErrorKind::unsupported,
      "the model's file has no chat template, so it is not known how it was trained to chat; give it one of your own, "
      "or continue a plain text");
  if (!tokenizer.chat_template().empty())
    templates_.push_back({{}, std::make_shared<const jinja::Template>(tokenizer.chat_template()), {}});
  for (const auto& [name, source] : more) {
    Named named{name, {}, {}};
    try {
      named.parsed = std::make_shared<const jinja::Template>(source);
    } catch (const jinja::TemplateError&) {
      named.failure = std::current_exception();
    }
    templates_.push_back(std::move(named));
  }
}

VITRINE_INLINE const jinja::Template& ChatTemplate::find(std::string_view name) const {
  for (const Named& named : templates_)
    if (named.name == name) {
      if (named.failure) std::rethrow_exception(named.failure);
      return *named.parsed;
    }
  std::string known;
  for (const Named& named : templates_)
    known += concat(known.empty() ? "" : ", ", named.name.empty() ? "default" : named.name);
  throw Error(ErrorKind::bad_argument, concat("chat template: there is no ",
                                              name.empty() ? "default one" : concat("'", name, "'"), ", only ", known));
}

VITRINE_INLINE const std::string& ChatTemplate::source(std::string_view name) const { return find(name).source(); }
VITRINE_INLINE bool ChatTemplate::mentions(std::string_view variable) const { return find({}).mentions(variable); }
VITRINE_INLINE std::vector<std::string> ChatTemplate::names() const {
  std::vector<std::string> out;
  for (const Named& named : templates_)
    if (!named.name.empty()) out.push_back(named.name);
  return out;
}

VITRINE_INLINE ChatPrompt ChatTemplate::render(const Conversation& conversation,
                                               const jinja::RenderOptions& options) const {
  using namespace chat_detail;
  check(conversation.messages.list() != nullptr, ErrorKind::bad_argument, "messages: expected a list");
  Value::Items messages;
  for (const Value& message : conversation.messages.list()->items)
    messages.push_back(marked_message(message, messages.size()));
  const bool with_tools = conversation.tools.list() != nullptr;
  const bool for_tools =
      std::any_of(templates_.begin(), templates_.end(), [](const Named& n) { return n.name == "tool_use"; });
  std::string_view name = conversation.template_name;
  if (name.empty() && with_tools && for_tools) name = "tool_use";
  const jinja::Template& chosen = find(name == "default" ? std::string_view() : name);

  std::vector<std::pair<std::string, Value>> variables;
  for (const auto& [token, text] : special_tokens_) variables.emplace_back(token, text);
  variables.emplace_back("messages", Value::list(std::move(messages)));
  const Value tools = conversation.tools;
  variables.emplace_back(
      "tools", tools.is_undefined() ? Value(jinja::None{}) : mark(tools, origin_of({PromptSource::Kind::tools})));
  variables.emplace_back("documents", marked_each(conversation.documents, PromptSource::Kind::document, "documents"));
  variables.emplace_back("add_generation_prompt", conversation.add_generation_prompt);
  for (const auto& [key, value] : conversation.variables)
    variables.emplace_back(key, mark(value, origin_of({PromptSource::Kind::variable})));

  const jinja::Rendering rendering = chosen.render(variables, options);
  ChatPrompt prompt;
  prompt.text = rendering.text.bytes();
  prompt.uses_clock = rendering.used_clock;
  rendering.text.for_each_run(0, prompt.text.size(), [&](const jinja::MarkedText::Run& run) {
    prompt.segments.push_back({run.begin, run.end, source_of(run.origin)});
  });
  return prompt;
}

VITRINE_INLINE std::vector<Token> encode(const Tokenizer& tokenizer, const ChatPrompt& prompt) {
  std::vector<TextRange> scaffold;
  for (const ChatPrompt::Segment& segment : prompt.segments)
    if (segment.source.kind == PromptSource::Kind::scaffold) scaffold.push_back({segment.begin, segment.end});
  auto tokens = tokenizer.encode(prompt.text, {.add_special = false, .parse_special = true, .special_in = scaffold});
  const auto& prefix = tokenizer.prefix();
  const bool has_bos = tokenizer.bos() && !tokens.empty() && tokens.front() == *tokenizer.bos();
  const bool wants_bos = tokenizer.bos() && std::find(prefix.begin(), prefix.end(), *tokenizer.bos()) != prefix.end();
  if (wants_bos && !has_bos) tokens.insert(tokens.begin(), prefix.begin(), prefix.end());
  return tokens;
}

// Follows the text token by token. Where a tokenizer changed it (a space in front, normal forms, unknown characters)
// pieces differ from it a little; the next piece that is found shortly behind puts that right.
VITRINE_INLINE std::vector<PromptSource> token_sources(const Tokenizer& tokenizer, const ChatPrompt& prompt,
                                                       std::span<const Token> tokens) {
  std::vector<PromptSource> sources;
  sources.reserve(tokens.size());
  const std::string_view text = prompt.text;
  std::size_t at = 0, segment = 0;
  for (const Token token : tokens) {
    std::string_view piece = tokenizer.piece(token);
    if (!text.substr(at).starts_with(piece)) {
      if (piece.starts_with(' ') && text.substr(at).starts_with(piece.substr(1))) {
        piece.remove_prefix(1);
      } else if (const auto hit =
                     piece.empty() ? std::string_view::npos : text.substr(at, 64 + piece.size()).find(piece);
                 hit != std::string_view::npos) {
        at += hit;
      } else if (tokenizer.is_special(token) && sources.empty()) {
        piece = {};  // BOS that the tokenizer put there
      }
    }
    while (segment + 1 < prompt.segments.size() && at >= prompt.segments[segment].end) ++segment;
    sources.push_back(prompt.segments.empty() || (piece.empty() && at == 0) ? PromptSource{}
                                                                            : prompt.segments[segment].source);
    at = (std::min)(at + piece.size(), text.size());
  }
  return sources;
}

VITRINE_NAMESPACE_END
