#pragma once

#include "vitrine/text/jinja/parser.inl.hpp"
#include "vitrine/text/jinja/statements.inl.hpp"
#include "vitrine/text/jinja/template.hpp"
#include "vitrine/text/jinja/value.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

struct Template::Parsed {
  std::string source;
  Names names;
  NodePtr root;
};

namespace template_detail {

// Jinja reads templates with \n as line end and without the last one.
inline std::string with_plain_line_ends(std::string source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    out += source[i] == '\r' ? '\n' : source[i];
    i += source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n';
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

inline std::uint64_t weight(const Value& value) {
  std::uint64_t n = 8;
  if (const String* text = value.string()) n += text->text.size();
  if (const List* list = value.list())
    for (const Value& item : list->items) n += weight(item);
  if (const Dict* dict = value.dict())
    for (const auto& [key, item] : dict->pairs) n += weight(key) + weight(item);
  return n;
}

}  // namespace template_detail

VITRINE_INLINE std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm out{};
#ifdef _WIN32
  localtime_s(&out, &now);
#else
  localtime_r(&now, &out);
#endif
  return out;
}

VITRINE_INLINE Template::Template(std::string source) {
  constexpr std::size_t longest = std::size_t(1) << 20;
  auto parsed = std::make_shared<Parsed>();
  parsed->source = template_detail::with_plain_line_ends(std::move(source));
  if (parsed->source.size() > longest)
    throw TemplateError(ErrorKind::limit_exceeded,
                        concat(parsed->source.size(), " bytes are too many, expected at most ", longest), 1, 1);
  naming_memory([&] { parsed->root = Parser(parsed->source, parsed->names).run(); }, "chat template");
  parsed_ = std::move(parsed);
}

VITRINE_INLINE Rendering Template::render(const std::vector<std::pair<std::string, Value>>& variables,
                                          const RenderOptions& options) const {
  const Parsed& parsed = *parsed_;
  auto globals = std::make_shared<Scope>();
  Budget unlimited;
  std::vector<std::unique_ptr<Builtin>> functions;
  for (const auto& entry : functions::table) {
    const int id = parsed.names.find(entry.name);
    if (id < 0 || (entry.call == functions::strftime_now && !options.clock)) continue;
    functions.push_back(std::make_unique<Builtin>(entry.name, entry.call));
    globals->set(id, functions.back().get(), unlimited);
  }
  std::uint64_t weight = 0;
  for (const auto& [name, value] : variables) {
    if (const int id = parsed.names.find(name); id >= 0) globals->set(id, value, unlimited);
    weight += template_detail::weight(value);
  }
  Interpreter interpreter(parsed.names, std::move(globals));
  interpreter.budget.steps = options.limits.steps + 16 * weight;
  interpreter.budget.bytes = options.limits.bytes + 64 * weight;
  interpreter.clock = options.clock;
  const auto fail_here = [&](ErrorKind kind, const std::string& message) {
    return error_at(kind, message, parsed.source, interpreter.at());
  };
  return naming_memory(
      [&]() -> Rendering {
        try {
          auto text = interpreter.run(*parsed.root);
          return {std::move(text), interpreter.used_clock};
        } catch (const Fault& fault) {
          throw fail_here(fault.kind, fault.message);
        } catch (const Error& error) {  // of a value that nests too deeply
          throw fail_here(error.kind(), error.what());
        }
      },
      "chat template");
}

VITRINE_INLINE const std::string& Template::source() const { return parsed_->source; }
VITRINE_INLINE bool Template::mentions(std::string_view variable) const { return parsed_->names.find(variable) >= 0; }

}  // namespace jinja

VITRINE_NAMESPACE_END
