// Renders what it reads: one JSON object per line, {"template": "...", "variables": {...}}; answers {"text": "..."},
// {"refused": the template's words} or {"error": "..."}, one line each. For check_templates.py.
#include <iostream>
#include <nlohmann/json.hpp>

#include "support/fixed_clock.hpp"
#include "vitrine/text/jinja/template.hpp"

using namespace vitrine;
using json = nlohmann::ordered_json;

static json render(const json& request) {
  try {
    const jinja::Template parsed(request["template"].get<std::string>());
    std::vector<std::pair<std::string, jinja::Value>> variables;
    for (const auto& [name, value] : request["variables"].items())
      variables.emplace_back(name, jinja::Value::from_json(value.dump()).marked(1));
    return {{"text", parsed.render(variables, {.limits = {}, .clock = support::fixed_clock}).text.bytes()}};
  } catch (const jinja::TemplateError& error) {
    if (error.kind() == ErrorKind::refused) return {{"refused", error.message()}};
    return {{"error", error.what()}};
  }
}

int main() {
  for (std::string line; std::getline(std::cin, line);)
    std::cout << render(json::parse(line)).dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
}
