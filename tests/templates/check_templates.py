#!/usr/bin/env python3
"""Renders templates with Vitrine and with jinja2, set up as transformers does, and compares byte for byte.

    check_templates.py RENDER_TEMPLATES [FOLDER...] [--generated N] [--first SEED]

Templates: every *.jinja and every tokenizer_config.json (or *.json with a "chat_template") below the folders, each for
all conversations of conversations.py; and N made at random (generated.py). A template that jinja2 renders must give the
same text, one that refuses a conversation must refuse it with the same words, one that fails must fail.
"""
import argparse
import copy
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import conversations
import generated

try:
    import reference
except ImportError:
    sys.exit("this test needs jinja2 (Debian: python3-jinja2)")

UNPREDICTABLE = re.compile(r"0x[0-9a-f]{6,}|<generator|<built-in|<bound method")  # addresses of Python's objects


def templates_in(folder):
    for path in sorted(Path(folder).rglob("*")):
        if path.suffix == ".jinja":
            yield path.name, path.read_text(encoding="utf-8")
        elif path.suffix == ".json":
            found = json.loads(path.read_text(encoding="utf-8"))
            found = found.get("chat_template") if isinstance(found, dict) else None
            for named in [{"name": "", "template": found}] if isinstance(found, str) else found or []:
                yield f"{path.parent.name}/{path.name} {named['name']}".strip(), named["template"]


def cases(args):
    for folder in args.folders:
        found = list(templates_in(folder))
        assert found, f"no templates in {folder}"
        for name, template in found:
            for title, conversation in conversations.CONVERSATIONS.items():
                yield f"{name}, {title}", template, conversations.variables(conversation)
    for seed in range(args.first, args.first + args.generated):
        yield f"generated {seed}", generated.template(seed), generated.VARIABLES


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("render")
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--generated", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # of templates that Python finds odd
    all_cases = list(cases(args))
    lines = "".join(json.dumps({"template": template, "variables": values}) + "\n" for _, template, values in all_cases)
    process = subprocess.run([args.render], input=lines, capture_output=True, text=True, encoding="utf-8")
    answers = process.stdout.splitlines()
    if process.returncode != 0 or len(answers) != len(all_cases):
        sys.exit(f"the renderer ended after {len(answers)} of {len(all_cases)}: {process.stderr}")
    counts, wrong, templates, differing = {}, 0, set(), set()
    for (name, template, values), answer in zip(all_cases, answers):
        kind, text = reference.render(template, copy.deepcopy(values))  # some of jinja2's filters change their input
        if kind == "text" and UNPREDICTABLE.search(text):
            continue
        counts[kind] = counts.get(kind, 0) + 1
        templates.add(template)
        got = json.loads(answer)
        if got.get(kind) == text if kind != "error" else "error" in got:
            continue
        wrong += 1
        differing.add(template)
        if wrong <= 10:
            print(f"{name}\n  template: {template[:2000]!r}\n  jinja2:   {kind}: {text!r}\n  vitrine:  {got}")
    print(f"{len(templates)} templates, {len(templates) - len(differing)} of them equal in all cases; "
          f"{sum(counts.values())} cases {counts}, {wrong} differ")
    if counts.get("text", 0) < len(all_cases) / 4:
        sys.exit("too few templates print anything for this to say much")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
