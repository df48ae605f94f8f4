"""Jinja2 as transformers sets it up for chat templates: what Vitrine's templates are compared with."""
import datetime
import json

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2024, 7, 26, 9, 5, 3)  # as tests/support/fixed_clock.hpp


class Refused(Exception):
    """The template called raise_exception."""


class Generation(jinja2.ext.Extension):
    """{% generation %} blocks, which mark the model's own words; they print what is in them."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_support"), [], [], body).set_lineno(line)

    def _support(self, caller):
        return caller()


def raise_exception(message):
    raise Refused(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def make_environment():
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = NOW.strftime
    return environment


ENVIRONMENT = make_environment()


def render(template, variables):
    """("text", what it prints), ("refused", the template's words) or ("error", Python's)."""
    try:
        return "text", ENVIRONMENT.from_string(template).render(**variables)
    except Refused as refused:
        return "refused", str(refused)
    except Exception as error:  # whatever Python raises on the way
        return "error", f"{type(error).__name__}: {error}"
