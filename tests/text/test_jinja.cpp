// The template language where its exact text or failure matters. Whole templates of many models, and a thousand made at
// random, are compared with Python's jinja2 in tests/templates.
#include <array>
#include <functional>

#include "support/fixed_clock.hpp"
#include "text_tools.hpp"
#include "vitrine/text/jinja/template.hpp"

using namespace vitrine;
using jinja::Template;
using jinja::TemplateError;
using jinja::Value;
using text_tools::data;
using text_tools::on_little_stack;
using text_tools::repeated;

namespace {

const Value variables = Value::from_json(R"json({
  "x": {"b": 1, "a": "é<&'/—"}, "items": ["a", "b", "c"], "n": 1, "s": "Hello ", "none_": null, "f": 2.5,
  "nested": {"t": true, "n": null, "l": [1.0, 1e16, 1e-5]},
  "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"}]})json");

std::vector<std::pair<std::string, Value>> as_variables(const Value& values) {
  std::vector<std::pair<std::string, Value>> out;
  for (const auto& [name, value] : values.dict()->pairs) out.emplace_back(name.string()->text.bytes(), value);
  return out;
}

jinja::Rendering render_marked(const std::string& source, const Value& values = variables) {
  return Template(source).render(as_variables(values), {.limits = {}, .clock = support::fixed_clock});
}
std::string render(const std::string& source, const Value& values = variables) {
  return render_marked(source, values).text.bytes();
}

struct Failure {
  ErrorKind kind;
  std::string message;
  std::size_t line, column;
};
Failure failure_of(const std::string& source, const Value& values = variables) {
  INFO(source.substr(0, 200));
  try {
    render(source, values);
  } catch (const TemplateError& error) {
    return {error.kind(), error.message(), error.line(), error.column()};
  }
  FAIL("no error was thrown");
  return {};
}

}  // namespace

TEST_CASE("white space around blocks goes as trim_blocks and lstrip_blocks say") {
  CHECK(render("{% if true %}\nX\n    {% endif %}\nY") == "X\nY");
  CHECK(render("a\n  {%+ if n %}b{% endif +%}\nc") == "a\n  b\nc");
  CHECK(render("a \n {%- if n -%} \n b {%- endif %} c") == "ab c");
  CHECK(render("  {{ n }}\n") == "  1");  // the last line end is not part of a template
  CHECK(render("{{ n }}\n\n") == "1\n");
  CHECK(render("a\r\nb\rc") == "a\nb\nc");
  CHECK(render("x {# a #}\n {#- b -#} y") == "x y");
  CHECK(render("{% raw %}{{ n }} {% if %}{% endraw %}") == "{{ n }} {% if %}");
}

TEST_CASE("tojson writes what json.dumps writes") {
  CHECK(render("{{ x|tojson }}") == "{\"b\": 1, \"a\": \"é<&'/—\"}");
  CHECK(render("{{ x|tojson(indent=2) }}") == "{\n  \"b\": 1,\n  \"a\": \"é<&'/—\"\n}");
  CHECK(render("{{ x|tojson(sort_keys=True) }}") == "{\"a\": \"é<&'/—\", \"b\": 1}");
  CHECK(render("{{ x|tojson(ensure_ascii=True) }}") == R"({"b": 1, "a": "\u00e9<&'/\u2014"})");
  CHECK(render("{{ x|tojson(separators=(',', ':')) }}") == "{\"b\":1,\"a\":\"é<&'/—\"}");
  CHECK(render("{{ nested|tojson }}") == R"({"t": true, "n": null, "l": [1.0, 1e+16, 1e-05]})");
  CHECK(render("{{ ['\\x01\\n\\\\\"\\x7f']|tojson }}") == "[\"\\u0001\\n\\\\\\\"\x7f\"]");
  CHECK(render("{{ '😀'|tojson(ensure_ascii=true) }}") == R"("\ud83d\ude00")");
  CHECK(Value::from_json("[18446744073709551615, -0.0, 1E5]").to_json() == "[18446744073709551615, -0.0, 100000.0]");
  CHECK(Value::from_json(R"({"a": 1, "b": 2, "a": 3})").to_json() == R"({"a": 3, "b": 2})");
}

TEST_CASE("slices with steps and computed bounds") {
  CHECK(render("{{ items[:-n]|string }} {{ items[::-1] }} {{ items[-n:] }} {{ 'ab  '[:-n] }}|") ==
        "['a', 'b'] ['c', 'b', 'a'] ['c'] ab |");
  CHECK(render("{{ 'wörld'[1:3] }}{{ 'wörld'[::-2] }}{{ 'wörld'[-9:9] }}{{ range(9)[1:8:3]|list }}") ==
        "ördrwwörld[1, 4, 7]");
}

TEST_CASE("values are printed as Python prints them") {
  CHECK(render("{{ none }} {{ true }} {{ [none, 'it\\'s', 'q\"', 1.0, (1,), {'a': 0.1}] }}") ==
        "None True [None, \"it's\", 'q\"', 1.0, (1,), {'a': 0.1}]");
  CHECK(render("{{ ['\\x00\\u200b\\t', 'é', 1e22, 123456789012345680.0, 5e-324, 0.0001, 1e-5] }}") ==
        "['\\x00\\u200b\\t', 'é', 1e+22, 1.2345678901234568e+17, 5e-324, 0.0001, 1e-05]");
  CHECK(render("{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 100 }} {{ -7.5 % 2 }} {{ 0.1 + 0.2 }}") ==
        "3 -4 2 3.5 1267650600228229401496703205376 0.5 0.30000000000000004");
}

TEST_CASE("undefined prints nothing, and anything else with it fails") {
  CHECK(render("[{{ q }}{{ x.q }}{{ q|default('d') }}{{ q is defined }}{{ q ~ 1 }}]") == "[dFalse1]");
  CHECK(failure_of("a\n  {{ q.r }}").message == "'q' is undefined");
  CHECK(failure_of("a\n  {{ q.r }}").line == 2);
  CHECK(failure_of("a\n  é{{ q.r }}").column == 9);  // characters, not bytes: of the attribute
  CHECK(failure_of("{{ x.q + 1 }}").message == "'dict object' has no attribute 'q'");
  CHECK(failure_of("{{ q() }}").kind == ErrorKind::bad_argument);
  CHECK(failure_of("{{ 'a' + none }}").message == "'+' is not supported between 'str' and 'None'");
}

TEST_CASE("the clock of strftime_now is the caller's") {
  const auto now = render_marked("{{ strftime_now(\"%d %b %Y\") }}|{{ strftime_now(\"%H:%M:%S\") }}");
  CHECK(now.text.bytes() == "26 Jul 2024|09:05:03");
  CHECK(now.used_clock);
  CHECK(render("{{ strftime_now('%A %a %B %j %U %W %V %G %u %w %y %I %p %-d %e %F %%') }}") ==
        "Friday Fri July 208 29 30 30 2024 5 5 24 09 AM 26 26 2024-07-26 %");
  CHECK_FALSE(render_marked("{% if n == 2 %}{{ strftime_now('%d') }}{% endif %}").used_clock);
  const Template guarded("{{ strftime_now('%d') if strftime_now is defined else 'no clock' }}");
  CHECK(guarded.render({}, {.limits = {}, .clock = nullptr}).text.bytes() == "no clock");
}

TEST_CASE("a template's refusal is its own words") {
  const std::string source =
      "{% if messages[0].role == 'system' %}\n  {{ raise_exception('No system here: ' ~ n) }}{% endif %}";
  const auto failure = failure_of(source);
  CHECK(failure.kind == ErrorKind::refused);
  CHECK(failure.message == "No system here: 1");
  CHECK(failure.line == 2);
  CHECK(render(source, Value::from_json(R"({"messages": [{"role": "user"}]})")) == "");
  const std::string alternate =
      "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns') }}"
      "{% endif %}{% else %}{{ raise_exception('empty') }}{% endfor %}";
  for (const auto& [messages, words] :
       std::vector<std::pair<const char*, const char*>>{{R"([{"role": "user"}, {"role": "user"}])", "turns"},
                                                        {R"([{"role": "assistant"}])", "turns"},
                                                        {"[]", "empty"}}) {
    const auto refusal = failure_of(alternate, Value::dict({{"messages", Value::from_json(messages)}}));
    CHECK(refusal.kind == ErrorKind::refused);
    CHECK(refusal.message == words);
  }
}

TEST_CASE("what never ends, ends soon") {
  using K = ErrorKind;
  for (const std::string& source : std::vector<std::string>{
           "{% for i in range(1000000000) %}{% endfor %}",
           "{% for i in range(999) %}{% for j in range(999) %}{% for k in range(999) %}{% endfor %}{% endfor %}{% "
           "endfor %}",
           "{{ 'a' * 10**9 }}",
           "{{ [0] * 10**12 }}",
           "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
           "{{ '%999999999d' % 1 }}",
           "{{ '{:>999999999}'.format(1) }}",
           "{{ 'a'|center(10**9) }}",
           "{{ 'a'|indent(10**9, true) }}",
           "{{ 'a'.ljust(10**9) }}",
           "{{ [1]|batch(10**9, 0)|list }}",
           "{{ [1]|slice(10**9)|list }}",
           "{{ 2 ** (10**9) }}",
           "{% set ns = namespace(a='ab') %}{% for i in range(99) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}",
           "{% set ns = namespace(a=[1]) %}{% for i in range(99) %}{% set ns.a = ns.a + ns.a %}{% endfor %}",
           "{% set ns = namespace(a=[1]) %}{% for i in range(999) %}{% set ns.a = [ns.a] %}{% endfor %}",
           "{% set a = 'a' * 10**6 %}{% for i in range(99999) %}{{ (a ~ 'b') in a }}{% endfor %}",
           "{% set a = 'a' * 10**6 %}{% set b = 'a' * 10**5 ~ 'b' %}{% for i in range(99999) %}{{ a.find(b) }}{% "
           "endfor %}",
           "{% set a = 'a' * 10**6 %}{% for i in range(99999) %}{% if a.rfind('a' * 999 ~ 'b') %}{% endif %}{% endfor "
           "%}",
           "{% set a = range(99999)|list %}{% for i in range(99999) %}{% if -1 in a %}{% endif %}{% endfor %}",
           "{% set a = range(99999)|list %}{% for i in range(999) %}{% if a == a[:] %}{% endif %}{% endfor %}",
           "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
           "{{ 'a'.replace('', 'b' * 10**6).replace('', 'b' * 10**6) }}",
           "{{ (range(99999)|list)|map('string')|join('x' * 10**6) }}",
           "{{ range(99999)|unique|list }}",
           "{{ dict(range(99999)|map('string')|map('center', 2)|list) }}"}) {
    INFO(source);
    CHECK(failure_of(source).kind == K::limit_exceeded);  // without limits the suite would wait or run out of memory
  }
  const std::size_t many = 100000;
  for (const std::string& source : std::vector<std::string>{
           "{{ " + repeated("(", many) + "1" + repeated(")", many) + " }}",
           "{{ " + repeated("[", many) + repeated("]", many) + " }}", "{{ " + repeated("not ", many) + "1 }}",
           "{{ " + repeated("-", many) + "1 }}", "{{ a" + repeated(".a", many) + " }}",
           "{{ a" + repeated("|upper", many) + " }}", "{{ a" + repeated("[0", many) + repeated("]", many) + " }}",
           "{{ 1" + repeated(" if 1 else 2", many) + " }}",
           repeated("{% if 1 %}", many) + repeated("{% endif %}", many),
           repeated("{% for i in j %}", many / 2) + repeated("{% endfor %}", many / 2),
           "{{ f" + repeated("(f", many) + repeated(")", many) + " }}"})
    CHECK(failure_of(source).kind == K::limit_exceeded);
  // Long, but not deep.
  CHECK(render("{{ 0" + repeated(" + 1", many) + " }}") == "100000");
  CHECK(render("{{ ''" + repeated(" ~ 'a'", 1000) + " }}").size() == 1000);
  CHECK(failure_of(std::string(2 << 20, 'a')).kind == K::limit_exceeded);
}

TEST_CASE("work grows with the length of a template, not with its square") {
  const auto many = [](int n, const std::function<std::string(std::string)>& part) {
    std::string out;
    for (int i = 0; i < n; ++i) out += part(concat("a", i));
    return out;
  };
  CHECK(render(many(60000, [](auto name) { return concat("{{ ", name, " }}"); })) ==
        "");  // at once, not in half a minute
  CHECK(render("{% macro m(" + many(60000, [](auto name) { return concat(name, ","); }) + "b) %}{% endmacro %}") == "");
  using K = ErrorKind;
  CHECK(failure_of(many(40000, [](auto name) { return concat("{% set ", name, "=1%}"); })).kind == K::limit_exceeded);
  CHECK(failure_of("{{ dict(" + many(1000, [](auto name) { return concat(name, "=1,"); }) + "b=1) }}").kind ==
        K::limit_exceeded);
  // What is looked for among many is work, too.
  const std::string keys = many(4000, [](auto name) { return concat("\"", name, "\": 1, "); });
  const Value large = Value::from_json("{\"d\": {" + keys + "\"z\": 1}}");
  const std::string loop = "{% for i in range(20000) %}", end = "{% endfor %}";
  CHECK(failure_of(loop + "{% if d.z %}{% endif %}" + end, large).kind == K::limit_exceeded);
  CHECK(failure_of(loop + "{% if d['z'] %}{% endif %}" + end, large).kind == K::limit_exceeded);
  CHECK(failure_of("{% set ns = namespace(**d) %}" + loop + "{% set ns.z = 2 %}" + end, large).kind ==
        K::limit_exceeded);
  CHECK(failure_of("{% macro m() %}{{ kwargs.z }}{% endmacro %}{% for i in range(99) %}{{ m(**d) }}{% endfor %}", large)
            .kind == K::limit_exceeded);
  CHECK(render("{{ d.z }}{{ namespace(**d).z }}{{ '{z}'.format(**d) }}", large) == "111");
}

TEST_CASE("a long conversation is no endless one") {
  std::string conversation = "{\"messages\": [";
  for (int i = 0; i < 4000; ++i) conversation += "{\"role\": \"user\", \"content\": \"some words of a message\"},";
  const Value long_one = Value::from_json(conversation + "{\"role\": \"user\", \"content\": \"\"}]}");
  const std::string source =
      "{% for m in messages %}{% if m.role == 'user' and not m.tool_calls %}{{ '<|im_start|>' + m['role'] + '\n' + "
      "m['content']|trim + '<|im_end|>' }}{% elif m.role == 'x' %}{% endif %}{% endfor %}";
  CHECK(render(source, long_one).size() > 4000 * 40);
}

TEST_CASE("a stack of 512 KiB is enough, whatever nests") {
  const auto answer = [](const std::string& source) {
    std::string text;
    on_little_stack(512 << 10, [&] {
      try {
        text = Template(source).render({}).text.bytes();
      } catch (const TemplateError& error) {
        text = error.kind() == ErrorKind::limit_exceeded ? "too deep" : error.message();
      }
    });
    return text;
  };
  const std::vector<std::vector<std::string>> nesting = {{"{{ ", "(", "1", ")", " }}"},
                                                         {"{{ ", "[", "", "]", " }}"},
                                                         {"{{ ", "{'a': ", "1", "}", " }}"},
                                                         {"{{ ", "-", "1", "", " }}"},
                                                         {"{{ ", "not ", "1", "", " }}"},
                                                         {"{{ ", "1 + (", "1", ")", " }}"},
                                                         {"{{ ", "1 == (", "1", ")", " }}"},
                                                         {"{{ 'a'", "|replace('a', 'a'", "", ")", " }}"},
                                                         {"{{ 1", " if 1 else 2", "", "", " }}"},
                                                         {"{% macro m(a) %}{% endmacro %}{{ ", "m(", "1", ")", " }}"},
                                                         {"", "{% if 1 %}", "x", "{% endif %}", ""},
                                                         {"", "{% for i in [1] %}", "x", "{% endfor %}", ""},
                                                         {"", "{% set x %}", "x", "{% endset %}", ""},
                                                         {"", "{% filter upper %}", "x", "{% endfilter %}", ""},
                                                         {"", "{% generation %}", "x", "{% endgeneration %}", ""},
                                                         {"", "{% macro m() %}", "x", "{% endmacro %}", "{{ m() }}"},
                                                         {"", "{% call m() %}", "x", "{% endcall %}", ""}};
  for (const auto& parts : nesting)
    for (const std::size_t depth : {40, 95, 150, 199, 100000}) {
      const auto source = parts[0] + repeated(parts[1], depth) + parts[2] + repeated(parts[3], depth) + parts[4];
      INFO(source.substr(0, 200));
      const auto text = answer(source);
      if (depth == 40) CHECK(text != "too deep");
      if (depth == 100000 && source.size() < 1 << 20) CHECK(text == "too deep");
    }
  for (const char* source :
       {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro m(n) %}{{ [n, m(n + 1)]|join }}{% endmacro %}{{ m(0) }}",
        "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
        "{% macro m(x) %}{% filter upper %}{% set y %}{{ m(1) }}{% endset %}{% endfilter %}{% endmacro %}{{ m(1) }}",
        "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}"}) {
    INFO(source);
    CHECK(answer(source) == "too deep");
  }
  for (const auto& [first, next, uses] : std::vector<std::array<std::string, 3>>{
           {"[1]", "[ns.v]", "{{ ns.v }}{{ ns.v|tojson(indent=1) }}{{ ns.v == ns.v }}"},
           {"{}", "{'a': ns.v}", "{{ ns.v }}{{ ns.v|tojson }}{{ ns.v == ns.v }}"},
           {"(1,)", "(ns.v,)", "{{ {ns.v: 1} }}{{ [ns.v]|unique|list }}{{ [ns.v, ns.v]|sort }}"}}) {
    const auto text = answer("{% set ns = namespace(v=" + first + ") %}{% for i in range(96) %}{% set ns.v = " + next +
                             " %}{% endfor %}" + uses + "done");
    INFO(text);
    CHECK(text.ends_with("done"));
  }
  on_little_stack(512 << 10, [] { CHECK_THROWS_AS(Value::from_json(std::string(100000, '[')), Error); });
}

TEST_CASE("templates reach nothing of the host") {
  for (const char* source :
       {"{{ lipsum.__globals__ }}", "{{ ''.__class__.__mro__ }}", "{{ cycler.__init__ }}", "{{ x['__class__'] }}",
        "{{ x|attr('__class__') }}", "{{ items|map(attribute='__class__')|list }}", "{{ '{0.__class__}'.format(n) }}",
        "{{ x.update({}) }}", "{{ items.append(1) }}", "{{ items.pop() }}", "{{ messages[0].clear() }}"})
    CHECK(failure_of(source).kind == ErrorKind::bad_argument);
  for (const char* source :
       {"{% include '/etc/passwd' %}", "{% import 'x' %}", "{% from 'x' import y %}", "{% extends 'x' %}",
        "{% block b %}{% endblock %}", "{% autoescape true %}{% endautoescape %}", "{% do x %}"})
    CHECK(failure_of(source).kind == ErrorKind::unsupported);
  CHECK(render("{{ x.append is defined }}{{ x.keys()|list }}{{ x._a is defined }}") == "False['b', 'a']False");
}

TEST_CASE("what is unknown or malformed is said when the template is loaded, with its place") {
  const auto load_failure = [](const std::string& source) -> Failure {
    try {
      Template ignored(source);
    } catch (const TemplateError& error) {
      CHECK(std::string(error.what()).find(concat("line ", error.line(), ", column ", error.column())) !=
            std::string::npos);
      return {error.kind(), error.message(), error.line(), error.column()};
    }
    FAIL("loaded: " + source);
    return {};
  };
  const auto filter = load_failure("x\n{% if false %}{{ n|frobnicate }}{% endif %}");
  CHECK(filter.kind == ErrorKind::unsupported);
  CHECK(filter.message == "there is no filter 'frobnicate'");
  CHECK(filter.line == 2);
  CHECK(filter.column == 20);
  CHECK(load_failure("{{ n is frob }}").kind == ErrorKind::unsupported);
  CHECK(load_failure("{% frob %}").message == "unknown tag 'frob'");
  CHECK(load_failure("{% if x %}").message == "expected '{% endif %}', got the end of the template");
  CHECK(load_failure("{% endif %}").kind == ErrorKind::bad_file);
  for (const char* source : {"{{ 1 + }}",
                             "{{ (1 }}",
                             "{{ 1) }}",
                             "{{ 'a }}",
                             "{{ a b }}",
                             "{% for x y in z %}{% endfor %}",
                             "{# a",
                             "{% raw %} x",
                             "{{ }}",
                             "{% set 1 = 2 %}",
                             "{% set x.y.z = 1 %}",
                             "{{ a ? b }}",
                             "{% break %}",
                             "{{ f(a=1, 2) }}",
                             "{{ f(a=1, a=2) }}",
                             "{% macro m(a=1, b) %}{% endmacro %}",
                             "{% call x %}{% endcall %}",
                             "{{ '\\x1' }}",
                             "{% for loop in x %}{% endfor %}",
                             "{% if %}{% endif %}",
                             "{{ a[1:2:3:4] }}",
                             "{{ 1 is odd is even }}",
                             "{% %}",
                             "{{ {'a' 1} }}",
                             "{{ a.",
                             "{% if x %}{% else %}"})
    CHECK(load_failure(source).kind == ErrorKind::bad_file);
}

TEST_CASE("every byte knows where it came from") {
  const std::vector<std::pair<std::string, Value>> given = {{"a", Value("ONE two").marked(1)},
                                                            {"b", Value("xyz").marked(2)},
                                                            {"d", Value::from_json(R"({"k": "v\n"})").marked(3)},
                                                            {"l", Value::from_json(R"(["p", "q"])").marked(4)}};
  const auto marks = [&](const std::string& source) {
    const auto text = Template(source).render(given).text;
    std::string out;
    for (const auto& run : text.runs())
      out += concat(run.origin, ":", text.bytes().substr(run.begin, run.end - run.begin), ";");
    return out;
  };
  CHECK(marks("<{{ a }}>") == "0:<;1:ONE two;0:>;");
  CHECK(marks("{{ '<' + a[1:3] ~ b|upper + '>' }}") == "0:<;1:NE;2:XYZ;0:>;");
  CHECK(marks("{{ a|replace('two', '|')|lower }}") == "1:one ;0:|;");
  CHECK(marks("{{ a.split(' ')[1]|capitalize ~ '.' }}") == "1:Two;0:.;");
  CHECK(marks("{{ d|tojson }}") == "3:{\"k\": \"v\\n\"};");
  CHECK(marks("{{ {'x': b}|tojson }}") == "2:{;0:\"x\";2:: \"xyz\"};");
  CHECK(marks("{{ l|join('-') }}{{ l }}") == "4:p;0:-;4:q['p', 'q'];");
  CHECK(marks("{% set t %}[{{ b }}]{% endset %}{{ t|trim('[')|indent }}") == "2:xyz;0:];");
  CHECK(marks("{{ '%s/%s' % (a[0], b) }}{{ '{}!'.format(b[::-1]) }}") == "1:O;0:/;2:xyzzyx;0:!;");
  CHECK(marks("{% for c in b %}{{ c }},{% endfor %}{{ b * 2 }}{{ b|title|center(5) }}") ==
        "2:x;0:,;2:y;0:,;2:z;0:,;2:xyzxyz;0: ;2:Xyz;0: ;");
  CHECK(marks("{% macro m(v) %}({{ v }}){% endmacro %}{{ m(b)|upper }}{% filter upper %}q{{ b }}{% endfilter %}") ==
        "0:(;2:XYZ;0:)Q;2:XYZ;");
}
