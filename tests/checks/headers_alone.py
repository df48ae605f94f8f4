#!/usr/bin/env python3
"""Compiles the public headers in every order that a program may choose.

    headers_alone.py COMPILER INCLUDE_FOLDER DEPENDENCY_FOLDER...

Each header by itself, as users of the compiled library include it (without xsimd and Eigen). Then all of them in one
unit, in order and in reverse, for both ways of use, behind macros like those of Windows headers: no name of ours may
collide with them. (The system headers that ours need come before the macros: those are not under test.)
"""
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HOSTILE = """
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define small char
#define near
#define far
#define interface struct
#define ERROR 0
#define IN
#define OUT
#define OPTIONAL
#define VOID void
#define TRUE 1
#define FALSE 0
"""


def kernel_text(folder):
    """The headers that include simd/lanes, directly or not, which programs get through simd/kernels.hpp only."""
    includes = {path: set(re.findall(r'#\s*include\s*"([^"]+)"', path.read_text())) for path in folder.rglob("*.hpp")}
    found = {path for path in includes if re.match(r"lanes\w*\.hpp$", path.name)}
    while more := {path for path, names in includes.items() if path not in found and not path.name.endswith(".inl.hpp")
                   and names & {item.relative_to(folder).as_posix() for item in found}}:
        found |= more
    return found


def system_headers(folder):
    """All <...> headers that the library includes, with the conditions left out: those that there are."""
    text = "".join(path.read_text() for path in folder.rglob("*.hpp"))
    names = set(re.findall(r"#\s*include\s*<([^>]+)>", text))
    return sorted(names - {"omp.h"})


def compile_headers(compiler, folder, headers, prelude, flags):
    names = [path.relative_to(folder).as_posix() for path in headers]
    text = prelude + "".join(f'#include "{name}"\n' for name in names + names[:1])
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off",
               f"-I{folder}", *flags, "-x", "c++", "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    what = names[0] if len(names) == 1 else f"{len(names)} headers, {names[0]} first, {' '.join(flags[:1])}"
    return f"{what}:\n{result.stderr}" if result.returncode else None


def main():
    compiler, folder, dependencies = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    system = system_headers(folder)
    hostile = "#define PCRE2_CODE_UNIT_WIDTH 0\n"  # pcre2.h asks for it
    hostile += "\n".join(f"#if __has_include(<{name}>)\n#include <{name}>\n#endif" for name in system) + HOSTILE
    kernels = kernel_text(folder)
    headers = [path for path in sorted(folder.rglob("*.hpp")) if not path.name.endswith(".inl.hpp")]
    public = [path for path in headers if path not in kernels]
    others = [f"-idirafter{folder}" for folder in dependencies]
    header_only = ["-DVITRINE_HEADER_ONLY", "-mavx2", "-mfma", "-mf16c", *others]
    jobs = [(order, hostile, flags) for order in (public, public[::-1]) for flags in (header_only, others)]
    jobs += [([path], "", []) for path in public]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = [message for message in pool.map(lambda job: compile_headers(compiler, folder, *job), jobs) if message]
    print("\n".join(failed) if failed else f"{len(public)} headers, {len(jobs)} compilations in order")
    return 1 if failed or not public else 0


if __name__ == "__main__":
    sys.exit(main())
