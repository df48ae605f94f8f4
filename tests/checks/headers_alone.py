#!/usr/bin/env python3
"""Compiles every public header by itself, as the first thing that a program includes.

    headers_alone.py COMPILER INCLUDE_FOLDER DEPENDENCY_FOLDER...

As users of the compiled library do: each header alone, without xsimd and Eigen. As header-only users do: all of them
in one unit, in order and in reverse. Before them stand the system headers that they need and then macros like those of
Windows headers: no name of ours may collide with them.
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
# Kernel text, which comes in through simd/kernels.hpp only.
KERNEL_TEXT = re.compile(r"simd/(lanes\w*|\w*_bodies|kernels|vmath\w*)\.hpp$")


def system_headers(folder):
    """All <...> headers that the library includes, with the conditions left out: those that there are."""
    text = "".join(path.read_text() for path in folder.rglob("*.hpp"))
    names = set(re.findall(r"#\s*include\s*<([^>]+)>", text))
    return sorted(names - {"omp.h"})


def compile_headers(compiler, folder, headers, system, flags):
    lines = [f"#if __has_include(<{item}>)\n#include <{item}>\n#endif" for item in system]
    names = [path.relative_to(folder).as_posix() for path in headers]
    text = "\n".join(lines) + HOSTILE + "".join(f'#include "{name}"\n' for name in names + names[:1])
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off",
               f"-I{folder}", *flags, "-x", "c++", "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    what = names[0] if len(names) == 1 else f"all headers, {names[0]} first, header-only"
    return f"{what}:\n{result.stderr}" if result.returncode else None


def main():
    compiler, folder, dependencies = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    system = system_headers(folder)
    plain = [name for name in system if not re.match(r"xsimd|Eigen|nlohmann|pcre2|utf8proc|immintrin", name)]
    headers = [path for path in sorted(folder.rglob("*.hpp")) if not path.name.endswith(".inl.hpp")]
    jobs = [([path], plain, []) for path in headers if not KERNEL_TEXT.search(path.as_posix())]
    header_only = ["-DVITRINE_HEADER_ONLY", "-mavx2", "-mfma", "-mf16c"] + [f"-idirafter{d}" for d in dependencies]
    every = [path for path in headers if not KERNEL_TEXT.search(path.as_posix()) or path.name == "kernels.hpp"]
    jobs += [(every, system, header_only), (every[::-1], system, header_only)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = [message for message in pool.map(lambda job: compile_headers(compiler, folder, *job), jobs) if message]
    print("\n".join(failed) if failed else f"{len(headers)} headers, {len(jobs)} compilations in order")
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
