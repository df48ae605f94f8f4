#!/usr/bin/env python3
"""The programs that stand in README.md and CONTRIBUTING.md, so that the suite can compile and run them.

    documents.py ROOT FOLDER      writes each to FOLDER/<name>.cpp and prints the names, separated by semicolons

A block of C++ stands below `<!-- program: name -->`, or below `<!-- fragment -->` if it is none. Commands that a
document tells people to type must name scripts that exist.
"""
import re
import sys
from pathlib import Path


def programs(text):
    """(name, code) of every program; raises ValueError for a block of C++ that is not marked."""
    for block in re.finditer(r"(<!--\s*([^>]*?)\s*-->\n)?```(\w+)\n(.*?)^```", text, re.S | re.M):
        mark, language, code = block[2] or "", block[3], block[4]
        if language != "cpp" or mark == "fragment":
            continue
        name = re.fullmatch(r"program: (\w+)", mark)
        if not name:
            raise ValueError(f"mark this block '<!-- program: name -->' or '<!-- fragment -->':\n{code}")
        yield name[1], code


def main():
    root, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for document in ("README.md", "CONTRIBUTING.md"):
        text = (root / document).read_text()
        for script in re.findall(r"(?<![\w/.])((?:cmake|tests|\.ci)/[\w/.]*\w)", text):
            if not list(root.glob(script)) and "<" not in script:
                raise SystemExit(f"{document} names {script}, which does not exist")
        for name, code in programs(text):
            target = folder / f"{name}.cpp"
            if not target.exists() or target.read_text() != code:
                target.write_text(code)
            names.append(name)
    if len(set(names)) != len(names) or not names:
        raise SystemExit(f"programs in the documents: {names}; expected some, each with a name of its own")
    print(";".join(names), end="")


if __name__ == "__main__":
    main()
