#!/usr/bin/env python3
"""Proves that each rule of house.py can fail: a small house that is in order, then one violation at a time."""
import sys
import tempfile
from pathlib import Path

import house

OPENING = "// What it is.\n//\n//   y = f(x)\n//\n// Throws nothing.\n"
HEADER = OPENING + "#pragma once\n"
GOOD = {
    "include/vitrine/core/a.hpp": HEADER + "#include <vector>\n// STEP 1/2 first\n",
    "include/vitrine/core/a.inl.hpp": "// Bodies of a.hpp.\n#pragma once\n",
    "include/vitrine/ops/b.hpp": HEADER + '#include "vitrine/core/a.hpp"\n// STEP 2/2 second\n',
    "include/vitrine/core/signal.hpp": HEADER + "void f() { __builtin_ia32_pause(); }\n",
    "src/b.cpp": '#include "vitrine/ops/b.hpp"\n',
    "src/kernels_avx2.cpp": "#define xsimd xsimd_avx2\n",
    "examples/c.cpp": '#include "vitrine/ops/b.hpp"\n#include "common/table.hpp"\nint main() { return 0; }\n',
    "tests/data/x.bin": "data",
    "README.md": "See arxiv" + ".org/abs/1706.03762.\n",
}
# (check, file, its new contents, part of the finding)
VIOLATIONS = [
    ("layers", "include/vitrine/core/a.hpp", HEADER + '#include "vitrine/ops/b.hpp"\n', "is above it"),
    ("layers", "include/vitrine/ops/b.hpp", HEADER + '#include "a.hpp"\n', "full name"),
    ("layers", "include/vitrine/attic/x.hpp", HEADER, "not a layer"),
    ("layers", "src/b.cpp", '#include "vitrine/ops/gone.hpp"\n', "there is no"),
    ("layers", "examples/c.cpp", '#include "vitrine/ops/b.inl.hpp"\n', "not bodies"),
    ("lengths", "include/vitrine/core/a.hpp", HEADER + "int x;\n" * 400, "406 lines"),
    ("lengths", "examples/c.cpp", "int x;\n" * 151, "151 lines"),
    ("lengths", "cmake/x.cmake", "#" * 121, "121 columns"),
    ("places", "include/vitrine/core/a.hpp", HEADER + "#pragma omp parallel\n", "OpenMP"),
    ("places", "include/vitrine/core/a.hpp", HEADER + "std::thread t;\n", "threads"),
    ("places", "include/vitrine/ops/b.hpp", HEADER + "#include <immintrin.h>\n", "intrinsics"),
    ("places", "include/vitrine/ops/b.hpp", HEADER + "auto x = _mm256_setzero_ps();\n", "intrinsics"),
    ("places", "include/vitrine/ops/b.hpp", HEADER + "xsimd::batch<float> x;\n", "xsimd"),
    ("places", "include/vitrine/ops/b.hpp", HEADER + "#ifdef __AVX2__\n#endif\n", "instruction set"),
    ("places", "include/vitrine/ops/b.hpp", HEADER + "#if VITRINE_ISA_LEVEL >= 2\n#endif\n", "instruction set"),
    ("places", "include/vitrine/ops/b.hpp", HEADER + "auto x = __builtin_ia32_rcpps(y);\n", "intrinsics"),
    ("places", "include/vitrine/core/parallel.inl.hpp", HEADER + "auto x = __builtin_ia32_rcpps(y);\n", "intrinsics"),
    ("places", "include/vitrine/ops/b.hpp", HEADER + "void f() { __builtin_ia32_pause(); }\n", "core/signal"),
    ("places", "include/vitrine/core/a.hpp", HEADER + "#include <cpuid.h>\n", "cpu_probe"),
    ("places", "include/vitrine/core/a.hpp", HEADER + "#include <Eigen/Core>\n", "Eigen"),
    ("places", "include/vitrine/core/a.hpp", HEADER + "#include <nlohmann/json.hpp>\n", "JSON"),
    ("places", "include/vitrine/core/a.hpp", HEADER + "#include <pcre2.h>\n", "PCRE2"),
    ("places", "include/vitrine/core/a.hpp", HEADER + "auto x = pcre2_match_context_create_8(nullptr);\n", "PCRE2"),
    ("places", "include/vitrine/core/a.hpp", HEADER + "#include <utf8proc.h>\n", "utf8proc"),
    ("places", "include/vitrine/core/a.hpp", HEADER + "auto x = utf8proc_category(65);\n", "utf8proc"),
    ("places", "include/vitrine/core/a.hpp", HEADER + "#include <regex>\n", "regex"),
    ("places", "include/vitrine/core/a.hpp", HEADER + "std::uniform_int_distribution<int> d;\n", "random"),
    ("places", "include/vitrine/core/a.hpp", HEADER + "float y = std::exp(x);\n", "libm"),
    ("places", "src/b.cpp", "#pragma omp parallel\n", "OpenMP"),
    ("places", "src/b.cpp", "std::thread t;\n", "threads"),
    ("places", "src/b.cpp", "auto x = _mm256_setzero_ps();\n", "intrinsics"),
    ("places", "src/b.cpp", "xsimd::batch<float> x;\n", "xsimd"),
    ("places", "src/b.cpp", "#ifdef __AVX2__\n#endif\n", "instruction set"),
    ("places", "src/kernels_avx2.cpp", "#ifdef __AVX2__\n#endif\n", "instruction set"),
    ("places", "src/kernels_avx2.cpp", "#include <immintrin.h>\n", "intrinsics"),
    ("quiet", "include/vitrine/core/a.hpp", HEADER + 'void f() { std::printf("x"); }\n', "throws"),
    ("quiet", "src/b.cpp", "void f() { std::cout << 1; }\n", "throws"),
    ("quiet", "src/b.cpp", "void f() { exit(1); }\n", "throws"),
    ("quiet", "src/b.cpp", "void f() { assert(x); }\n", "throws"),
    ("headers", "include/vitrine/core/a.hpp", "#pragma once\nint x;\n", "0 lines of comment"),
    ("headers", "include/vitrine/core/a.hpp", "#pragma once\n" + OPENING, "0 lines of comment"),
    ("headers", "include/vitrine/core/a.hpp", "// What.\n#pragma once\n// And\n// more.\n" * 2, "1 lines of comment"),
    ("headers", "include/vitrine/core/a.hpp", "//\n" * 4 + "#pragma once\n", "4 lines of comment"),
    ("headers", "include/vitrine/core/a.hpp", OPENING + "int x;\n", "pragma once"),
    ("headers", "include/vitrine/core/a.hpp", HEADER + "int small = 1;\n", "Windows"),
    ("headers", "include/vitrine/core/a.hpp", HEADER + "int x = std::min(1, 2);\n", "Windows"),
    ("headers", "include/vitrine/core/a.hpp", HEADER + "int x = std::numeric_limits<int>::max();\n", "Windows"),
    ("steps", "include/vitrine/core/a.hpp", HEADER + "// STEP 1/3 first\n", "disagree"),
    ("steps", "include/vitrine/core/a.hpp", HEADER, "STEP 1/2 stands nowhere"),
    ("steps", "include/vitrine/core/a.hpp", HEADER + "// STEP 1/2 first, STEP 3/2 third\n", "beyond"),
    ("steps", "include/vitrine/core/a.hpp", HEADER + "// STEP 1of2\n", "expected"),
    ("hygiene", "README.md", "Get it from files.example" + ".net/x\n", "no host names"),
    ("hygiene", "CMakeLists.txt", "set(x /ho" + "me/someone/x)\n", "somebody's machine"),
    ("hygiene", "tests/data/x.bin", "x" * (13 * 2**20), "13.0 MB"),
]


def build(folder, contents):
    for name, text in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        build(root, GOOD)
        for check, function in house.CHECKS.items():
            wrong += [f"{check}: a house in order gives '{finding}'" for finding in function(root)]
        for check, file, text, expected in VIOLATIONS:
            build(root, {file: text})
            found = house.CHECKS[check](root)
            if not any(expected in finding for finding in found):
                wrong.append(f"{check}: {file} with {text[:80]!r} should give '...{expected}...', gives {found}")
            (root / file).unlink()
            build(root, {file: GOOD[file]} if file in GOOD else {})
    covered = {violation[0] for violation in VIOLATIONS}
    wrong += [f"{check}: no violation here shows that it can fail" for check in house.CHECKS if check not in covered]
    print("\n".join(wrong) if wrong else f"all {len(VIOLATIONS)} violations are found")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
