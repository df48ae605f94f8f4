#!/usr/bin/env python3
"""Proves that format.py, headers_alone.py and documents.py can fail: each on a small project that is in order, then on
the same with one violation at a time.

    test_checks.py COMPILER CLANG_FORMAT_FILE      without clang-format 14 the cases of format.py are left out
"""
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = "<!-- program: one -->\n```cpp\nint main() {}\n```\n"
FRAGMENT = "<!-- fragment -->\n```cpp\nint x;\n```\n"
GOOD = {
    "include/vitrine/a.hpp": "// A.\n#pragma once\n#include <string>\ninline std::string a() { return {}; }\n",
    "include/vitrine/b.hpp": '// B.\n#pragma once\n#include "vitrine/a.hpp"\ninline std::string b() { return a(); }\n',
    "cmake/test.sh": "",
    "README.md": "Run cmake/test.sh.\n" + PROGRAM + FRAGMENT,
    "CONTRIBUTING.md": "Nothing.\n",
}
HEADER = "// A.\n#pragma once\n"
# (check, file, its new contents, part of what is said)
VIOLATIONS = [
    ("format", "include/vitrine/a.hpp", HEADER + "inline  int a( ) { return 1 ; }\n", "a.hpp: not as clang-format"),
    ("headers_alone", "include/vitrine/a.hpp", HEADER + "inline std::string a() { return {}; }\n", "a.hpp"),
    ("headers_alone", "include/vitrine/a.hpp", "// A.\n#include <string>\nstruct A {};\n", "redefinition"),
    ("headers_alone", "include/vitrine/a.hpp", HEADER + "#include <string>\nstruct A { int far; };\n", "a.hpp"),
    ("headers_alone", "include/vitrine/a.hpp",
     HEADER + "#include <algorithm>\ninline int a() { return std::max(1, 2); }\n", "a.hpp"),
    ("headers_alone", "include/vitrine/a.hpp", HEADER + "#ifdef VITRINE_HEADER_ONLY\nint x = y;\n#endif\n", "a.hpp"),
    ("headers_alone", "include/vitrine/b.hpp", HEADER + "inline int b(int x) { return 1; }\n", "unused"),
    ("documents", "README.md", PROGRAM + "```cpp\nint x;\n```\n", "mark this block"),
    ("documents", "README.md", PROGRAM + "Run cmake/gone.sh.\n", "cmake/gone.sh, which does not exist"),
    ("documents", "CONTRIBUTING.md", PROGRAM, "name of its own"),
    ("documents", "README.md", FRAGMENT, "expected some"),
]


def build(folder, contents):
    for name, text in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(check, root, compiler):
    arguments = {
        "format": [root],
        "headers_alone": [compiler, root / "include"],
        "documents": [root, root / "out"],
    }[check]
    result = subprocess.run([sys.executable, HERE / f"{check}.py", *arguments], capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


def main():
    compiler, clang_format = sys.argv[1], Path(sys.argv[2])
    wrong, skipped = [], set()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        build(root, GOOD | {".clang-format": clang_format.read_text()})
        for check in dict.fromkeys(violation[0] for violation in VIOLATIONS):
            code, said = run(check, root, compiler)
            if code == 77:
                skipped.add(check)
            elif code != 0:
                wrong.append(f"{check}: a project in order gives {code}: {said}")
        for check, file, text, expected in VIOLATIONS:
            if check in skipped:
                continue
            build(root, {file: text})
            code, said = run(check, root, compiler)
            if code in (0, 77) or expected not in said:
                wrong.append(f"{check}: {file} with {text[-80:]!r} should give '{expected}', gives {code}: {said}")
            build(root, {file: GOOD[file]})
    left_out = f", left out: {', '.join(skipped)}" if skipped else ""
    print("\n".join(wrong) if wrong else f"all {len(VIOLATIONS)} violations are found{left_out}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
