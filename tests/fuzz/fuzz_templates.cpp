// Chat templates: source text | 0x00 | what the user says. Parsed and rendered within limits.
#include "fuzz.hpp"
#include "vitrine/text/jinja/template.hpp"

using namespace vitrine;

namespace {

constexpr jinja::Origin from_user = 1, from_program = 2;

std::tm noon() {
  std::tm time{};
  time.tm_year = 124;
  time.tm_mday = 29;
  time.tm_mon = 1;
  time.tm_hour = 12;
  return time;
}

// Half of what the user says in each of two turns, and all of it as data if it is JSON.
std::vector<std::pair<std::string, jinja::Value>> conversation(std::string_view said) {
  using jinja::Value;
  const auto user = [&](std::string_view text) {
    return Value::dict({{"role", "user"}, {"content", Value(text).marked(from_user)}});
  };
  static const Value system = Value::from_json(R"({"role": "system", "content": "Be brief.\n"})"),
                     tools =
                         Value::from_json(R"([{"type": "function", "function": {"name": "now", "parameters": {}}}])"),
                     result = Value::from_json(R"({"role": "tool", "name": "now", "content": "12"})"),
                     call =
                         Value::from_json(R"({"role": "assistant", "content": null, "tool_calls": [{"id": "abcdefghi",
      "type": "function", "function": {"name": "now", "arguments": {"city": "K", "days": 2}}}]})")
                             .marked(from_program);
  Value data;
  const bool is_json = fuzz::answers([&] { data = Value::from_json(said); });
  if (is_json) {
    const std::string written = data.to_json();
    fuzz::law(Value::from_json(written).to_json() == written, "JSON written and read again is the same");
  }
  return {{"messages", Value::list({system, user(said.substr(0, said.size() / 2)), call, result,
                                    user(said.substr(said.size() / 2))})},
          {"tools", tools},
          {"data", data.marked(from_user)},
          {"bos_token", "<s>"},
          {"eos_token", "</s>"},
          {"n", -3},
          {"x", 2.5},
          {"add_generation_prompt", true}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view input = fuzz::as_text(bytes, size);
  const std::size_t end = input.find('\0');
  const std::string_view said = end == std::string_view::npos ? "Hello" : input.substr(end + 1);
  fuzz::answers([&] {
    const jinja::Template parsed{std::string(input.substr(0, end))};
    const auto variables = conversation(said);
    const jinja::RenderOptions options = {.limits = {.steps = 5000, .bytes = 1 << 20}, .clock = noon};
    const auto once = parsed.render(variables, options).text, again = parsed.render(variables, options).text;
    fuzz::law(once.bytes() == again.bytes(), "a template gives the same text each time");
    std::size_t at = 0;
    for (const auto& run : once.runs()) {
      fuzz::law(run.begin == at && run.begin < run.end && run.origin <= from_program, "every byte has an origin");
      at = run.end;
    }
    fuzz::law(at == once.size(), "every byte has an origin");
  });
  return 0;
}
