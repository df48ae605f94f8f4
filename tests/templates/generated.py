"""Small templates made at random from a seed: expressions, statements and white space as chat templates have them."""
import random

VARIABLES = {
    "s": "Hello wörld ", "t": "a,b;c <x> & \"q\" 'z'\n\n two  words\n", "e": "", "n": 3, "m": -7, "f": 2.5, "g": 1e16,
    "yes": True, "no": False, "nil": None, "items": ["b", "a", "C", "a"], "numbers": [3, 1, 2, 10, -4], "empty": [],
    "mixed": [1, "x", None, True, 2.5, [1, 2], {"k": "v"}],
    "d": {"b": 1, "a": "é<&'/—", "nested": {"z": [1, {"y": None}], "items": 5}, "list": [1, 2]},
    "users": [{"name": "bob", "age": 3, "tags": ["x"]}, {"name": "Al", "age": 2, "tags": []},
              {"name": "al", "age": 5}],
    "messages": [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "Hi <b>日本</b>\n"},
                 {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f",
                                                                                     "arguments": {"x": 1.0}}}]},
                 {"role": "tool", "content": "{\"r\": [1, 2]}"}],
}
NAMES = list(VARIABLES) + ["missing", "x", "y"]
STRINGS = ["'a'", "'b'", "'-'", "' '", "''", "'é'", "'name'", "'\\n'", "\"it's\"", "', '", "'wörld'", "'%s|'",
           "'x\\ty'",
           "'Hello World'", "'role'", "'content'"]
TEXT_METHODS = ["upper()", "lower()", "strip()", "title()", "capitalize()", "split()", "split(',')", "split('a', 1)",
                "rsplit(' ', 1)", "lstrip()", "rstrip()", "replace('l', 'LL')", "replace(' ', '')", "startswith('H')",
                "endswith('\\n')", "find('w')", "count('l')", "splitlines()", "strip(' H')", "rstrip('\\n')",
                "zfill(8)",
                "isdigit()", "islower()", "partition('w')", "rfind('l')", "swapcase()", "removeprefix('He')",
                "center(15)", "ljust(9, '.')", "rpartition(' ')", "isalpha()", "split('')", "index('l')"]
DICT_METHODS = ["items()|list", "keys()|list", "values()|list", "get('a')", "get('q', 7)", "items()", "get('b')"]
FILTERS = ["upper", "lower", "trim", "length", "string", "title", "capitalize", "list", "first", "last", "join(', ')",
           "join", "default('D')", "default('D', true)", "tojson", "tojson(indent=2)", "int", "float", "abs", "round",
           "sort", "sort(reverse=true)", "unique|list", "reverse|list", "replace('a', 'b')", "indent",
           "indent(2, true)",
           "wordcount", "sum", "min", "max", "batch(2)|list", "slice(2)|list", "map('upper')|list",
           "map('string')|join('+')",
           "select|list", "reject('none')|list", "select('string')|list", "select('number')|list", "count", "escape",
           "safe", "items|list", "dictsort", "map(attribute='name')|list", "selectattr('age')|list",
           "selectattr('age', 'gt', 2)|list",
           "rejectattr('tags')|list", "groupby('age')", "sort(attribute='age')", "map(attribute='age')|sum",
           "tojson(sort_keys=true)", "tojson(separators=(',', ':'))", "tojson(ensure_ascii=true)", "round(1)", "int(5)",
           "truncate(9)", "center(11)", "urlencode", "trim('a ')", "first|default('none')", "d('x')", "string|length",
           "selectattr('role', 'equalto', 'user')|list|length", "sum(start=1)", "map('int')|list", "list|last",
           "forceescape"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "mapping", "sequence", "iterable",
         "true",
         "false", "boolean", "odd", "even", "divisibleby(3)", "divisibleby 2", "equalto 3", "eq('a')",
         "in [1, 'a', 3]", "lower",
         "upper", "sameas none", "gt 2", "ne 1", "lt(5)", "callable", "not none", "not defined", "not string", "ge 3"]
TEXT_FILTERS = [f for f in FILTERS if f.split("(")[0].split("|")[0] in (
    "upper", "lower", "trim", "length", "string", "title", "capitalize", "list", "first", "last", "default",
    "tojson", "int",
    "float", "replace", "indent", "wordcount", "count", "escape", "safe", "truncate", "center", "urlencode", "d",
    "unique",
    "forceescape", "join")]
NUMBER_FILTERS = ["abs", "round", "int", "float", "string", "tojson", "round(1)", "default(1)", "string|length",
                  "upper"]
LIST_FILTERS = [f for f in FILTERS if f not in TEXT_FILTERS or f.startswith(("length", "first", "last", "join",
                                                                             "tojson"))]


class Generator:
    """Mostly of fitting types, so that most templates print something; one in ten expressions is of any."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.budget = 40

    def pick(self, choices):
        return self.random.choice(choices)

    def chance(self, probability):
        return self.random.random() < probability

    def operand(self, make, depth):
        text = make(depth + 1)
        return text if text.isidentifier() or text in STRINGS else f"({text})"

    def text(self, depth=0):
        self.budget -= 1
        kind = self.random.randrange(9) if depth < 3 and self.budget > 0 else 0
        if kind < 2:
            return self.pick(["s", "t", "e", "d.a", "users[0].name", "messages[1].content", "messages[0]['role']"] +
                             STRINGS)
        if kind == 2:
            return f"{self.operand(self.text, depth)}.{self.pick(TEXT_METHODS)}"
        if kind == 3:
            return f"{self.operand(self.any, depth)} ~ {self.operand(self.any, depth)}"
        if kind == 4:
            return f"{self.operand(self.text, depth)} + {self.operand(self.text, depth)}"
        if kind == 5:
            return f"({self.operand(self.text, depth)}|string)" + self.pick(["[0]", "[-1]", "[1:]", "[:-1]", "[::-1]",
                                                                             "[:n]", "[m:n]", "[2:0:-1]"])
        if kind == 6:
            return self.pick(["'%s-%s' % (n, s)", "'{}:{:>4}'.format(n, e)", "s * 2", "'%5.1f|%-4d|%x' % (f, n, 255)",
                              "'{0}{b!r}'.format(f, b=s)", "strftime_now('%d %b %Y')", "'a' if yes else s"])
        return f"{self.operand(self.text, depth)}|{self.pick(TEXT_FILTERS)}"

    def number(self, depth=0):
        self.budget -= 1
        kind = self.random.randrange(8) if depth < 3 and self.budget > 0 else 0
        if kind < 3:
            return self.pick(["n", "m", "f", "g", "0", "1", "2", "10", "-1", "2.5", "1.0", "1e3", "0.1", "yes", "d.b",
                              "100",
                              "users[0].age", "n ** 2", "2 ** 0.5 > 1", "0x1F", "1_000", "d.list[1]"])
        if kind < 6:
            left, right = self.operand(self.number, depth), self.operand(self.number, depth)
            return f"{left} {self.pick('+ - * / // % + - * ~'.split())} {right}"
        if kind == 6:
            return f"{self.operand(self.sequence, depth)}|length"
        return f"{self.operand(self.number, depth)}|{self.pick(NUMBER_FILTERS)}"

    def sequence(self, depth=0):
        self.budget -= 1
        kind = self.random.randrange(8) if depth < 3 and self.budget > 0 else 0
        if kind < 3:
            return self.pick(["items", "numbers", "mixed", "empty", "users", "messages", "d.list", "d.nested.z",
                              "(1, 'b')", "[s, n]",
                              "range(4)|list", "range(5, 0, -2)|list", "users[0].tags", "s.split()", "[]",
                              "d.items()|list"])
        if kind == 3:
            return self.operand(self.sequence, depth) + self.pick(["[1:]", "[:-1]", "[::-1]", "[:2]", "[-2:]",
                                                                   "[::2]", "[m:n]", "[5:1:-1]"])
        if kind == 4:
            return f"[{self.any(depth + 1)}, {self.any(depth + 1)}]"
        if kind == 5:
            return f"{self.operand(self.sequence, depth)} + {self.operand(self.sequence, depth)}"
        return f"{self.operand(self.sequence, depth)}|{self.pick(LIST_FILTERS)}"

    def any(self, depth=0):
        """Names, paths into the variables, dicts: whatever there is."""
        self.budget -= 1
        kind = self.random.randrange(12) if depth < 3 and self.budget > 0 else 0
        if kind < 2:
            return self.pick(NAMES)
        if kind == 2:
            steps = [".a", ".b", "['a']", "[0]", "[-1]", ".name", ".nested", ".role", "['content']", "[n]", ".list",
                     ".nested.z",
                     "[5]", "[0].role", "['q']", ".tool_calls"]
            return self.pick(["d", "users", "messages", "items", "s", "users[0]", "messages[1]"]) + self.pick(steps)
        if kind == 3:
            return f"d.{self.pick(DICT_METHODS)}"
        if kind == 4:
            return f"{{'k': {self.any(depth + 1)}, n: {self.any(depth + 1)}}}"
        if kind == 5:
            return self.operand(self.any, depth) + "|" + self.pick(["default('D')", "default('D', true)", "string",
                                                                    "tojson", "d(0)"])
        if kind == 6:
            return self.condition(depth)
        if kind == 7:
            otherwise = f" else {self.any(depth + 1)}" if self.chance(0.8) else ""
            return f"({self.any(depth + 1)} if {self.condition(depth + 1)}{otherwise})"
        return self.pick([self.text, self.number, self.sequence])(depth + 1)

    def condition(self, depth=0):
        self.budget -= 1
        kind = self.random.randrange(8) if depth < 3 and self.budget > 0 else 0
        if kind == 0:
            return self.pick(NAMES)
        if kind == 1:
            return f"{self.operand(self.any, depth)} is {self.pick(TESTS)}"
        if kind == 2:
            left, right = self.operand(self.number, depth), self.operand(self.number, depth)
            return f"{left} {self.pick(['<', '>', '<=', '>='])} {right}"
        if kind == 3:
            left, right = self.operand(self.text, depth), self.operand(self.text, depth)
            return f"{left} {self.pick(['in', 'not in', '<', '=='])} {right}"
        if kind == 4:
            return f"not {self.operand(self.condition, depth)}"
        if kind == 5:
            left, right = self.operand(self.any, depth), self.operand(self.sequence, depth)
            return f"{left} {self.pick(['in', '==', '!=', 'not in'])} {right}"
        return f"{self.operand(self.condition, depth)} {self.pick(['and', 'or'])} {self.operand(self.condition, depth)}"

    def expression(self, depth=0):
        return self.pick([self.text, self.text, self.number, self.sequence, self.any])(depth)

    def space(self):
        return self.pick(["", "", " ", "\n", "  \n", "\n    ", "text", " a\n", "\n\n", "\t", "é\n  "])

    def tag(self, content):
        left, right = self.pick(["", "", "", "-", "+"]), self.pick(["", "", "", "-", "+"])
        return f"{{%{left} {content} {right}%}}"

    def output(self):
        left, right = self.pick(["", "", "", "-"]), self.pick(["", "", "", "-"])
        return f"{{{{{left} {self.expression()} {right}}}}}"

    def body(self, depth):
        return "".join(self.space() + self.statement(depth) for _ in range(self.pick([1, 1, 2, 3]))) + self.space()

    def statement(self, depth=0):
        self.budget -= 1
        if depth > 2 or self.budget < 0:
            return self.output()
        kind = self.random.randrange(18)
        inner, tag = (lambda: self.body(depth + 1)), self.tag
        if kind < 6:
            return self.output()
        if kind < 8:
            middle = tag(f"elif {self.condition()}") + inner() if self.chance(0.3) else ""
            otherwise = tag("else") + inner() if self.chance(0.5) else ""
            return tag(f"if {self.condition()}") + inner() + middle + otherwise + tag("endif")
        if kind < 11:
            return self.loop(depth)
        if kind == 11:
            return tag(f"set {self.pick(['x', 'y'])} = {self.expression()}")
        if kind == 12:
            return tag(f"set x{self.pick(['', ' | upper', ' | trim'])}") + inner() + tag("endset") + "{{ x }}"
        if kind == 13:
            return (tag("set ns = namespace(v=" + self.pick(["0", "''", "[]"]) + ")") + tag("for i in numbers") +
                    tag("set ns.v = ns.v + " + self.pick(["i", "'x'", "[i]"])) + tag("endfor") + "{{ ns.v }}")
        if kind == 14:
            return (tag("macro show(a, b=2, c=none)") + "{{ a }}" + inner() + "{{ b ~ c }}" + tag("endmacro") +
                    "{{ show(" + self.pick(["1", "s, c=3", "b=s, a=n", "items, 2, 3", "*numbers[:2]", "**{'a': 1}",
                                            ""]) + ") }}")
        if kind == 15:
            return (tag("macro wrap(a)") + "[{{ caller(a) }}|{{ caller(1) }}]" + tag("endmacro") +
                    tag(f"call(z) wrap({self.expression(2)})") + "{{ z }}" + inner() + tag("endcall"))
        if kind == 16:
            return tag("filter " + self.pick(["upper", "trim", "replace('a', 'b')|trim",
                                              "indent(2)"])) + inner() + tag("endfilter")
        return self.pick([tag("raw") + "{{ x }} {% y %}" + tag("endraw"), "{#- comment -#}", "{# a #}\n", "{#+ b +#}\n",
                          tag("with x=1, y=s") + inner() + tag("endwith"),
                          tag("generation") + inner() + tag("endgeneration")])

    def loop(self, depth):
        tag = self.tag
        target, source = self.pick([
            ("i", "items"), ("i", "numbers"), ("i", "empty"), ("m", "messages"), ("u", "users"), ("k, v", "d.items()"),
            ("k, v", "d|items"), ("i", "range(4)"), ("c", "s"), ("k", "d"), ("i", "numbers|select('odd')"), ("i",
                                                                                                             "mixed"),
            ("i", "missing"), ("i", "users|map(attribute='name')"), ("i", self.sequence(2))])
        shown = target.split(", ")[-1]
        condition = f" if {shown}" + self.pick(["", " is string", " is odd", " != 'a'",
                                                " is not none"]) if self.chance(0.25) else ""
        fields = ["index", "index0", "first", "last", "length", "revindex", "revindex0", "previtem", "nextitem",
                  "depth",
                  "cycle('p', 'q')", "changed(" + shown + ")"]
        parts = [f"{{{{ {shown} }}}}"]
        for _ in range(self.pick([0, 1, 1, 2])):
            parts.append(f"{{{{ loop.{self.pick(fields)} }}}}")
        if self.chance(0.3):
            parts.append(tag(f"if {self.condition(1)}") + tag(self.pick(["continue", "break"])) + tag("endif"))
        if self.chance(0.4):
            parts.append(self.body(depth + 1))
        if self.chance(0.2):
            parts.append(tag("set x = x ~ " + shown))
            parts.append("{{ x }}")
        otherwise = tag("else") + self.body(depth + 1) if self.chance(0.2) else ""
        return tag(f"for {target} in {source}{condition}") + self.space().join(parts) + otherwise + tag("endfor")


def template(seed):
    generator = Generator(seed)
    return "".join(generator.space() + generator.statement() for _ in range(generator.pick([1, 2,
                                                                                            3]))) + generator.space()
