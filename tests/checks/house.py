#!/usr/bin/env python3
"""The rules of the house, read off the sources: what may include what, what may stand where.

    house.py ROOT            all checks             house.py ROOT layers places     some of them

Each check is a function from the root folder to a list of findings, "file:line: what is wrong". test_house.py proves
that every one of them can fail.
"""
import re
import sys
from pathlib import Path

LAYERS = ["core", "simd", "ops", "cache", "layers", "model", "text", "sample", "engine"]
CODE = {".hpp", ".cpp", ".h"}
SCRIPT = {".py", ".sh", ".cmake", ".txt", ".in"}
CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


def files(root, *folders, suffixes=CODE):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            inside = path.relative_to(root).parts
            if path.is_file() and path.suffix in suffixes and inside[:2] != ("tests", "data"):
                yield path


def own_files(root):
    """Everything that people wrote: code, scripts, documents."""
    top = [path for path in sorted(root.iterdir()) if path.is_file() and path.name not in ("LICENSE", ".git")]
    below = files(root, "include", "src", "examples", "bench", "tests", "cmake", ".ci",
                  suffixes=CODE | SCRIPT | {".md", ".svg", ".json", ""})
    return top + list(below)


def text_of(path):
    return path.read_text(encoding="utf-8", errors="replace")


def without_comments(text):
    """The same lines, with comments blanked; strings stay."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    keep = lambda m: m[0] if m[0][0] in "\"'" else re.sub(r"[^\n]", " ", m[0])
    return re.sub(pattern, keep, text, flags=re.S)


def at(root, path, line, message):
    return f"{path.relative_to(root)}:{line}: {message}"


def find(root, path, text, pattern, message):
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.search(pattern, line):
            yield at(root, path, number, f"'{match[0].strip()}': {message}")


@check
def layers(root):
    """A header includes its own layer or a lower one, by its full name; programs use headers, not their bodies."""
    found = []
    for path in files(root, "include", "src", "examples", "bench"):
        parts = path.relative_to(root).parts
        layer = parts[2] if parts[0] == "include" and len(parts) > 3 else None
        if layer and layer not in LAYERS:
            found.append(at(root, path, 1, f"'{layer}' is not a layer"))
            continue
        for number, line in enumerate(without_comments(text_of(path)).splitlines(), 1):
            include = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not include:
                continue
            target = include[1]
            if not target.startswith("vitrine/"):
                if parts[0] in ("include", "src"):
                    found.append(at(root, path, number, f'include "{target}" by its full name, "vitrine/..."'))
                continue
            if not (root / "include" / target).is_file():
                found.append(at(root, path, number, f"there is no {target}"))
            other = target.split("/")[1]
            if layer and (other not in LAYERS or LAYERS.index(other) > LAYERS.index(layer)):
                found.append(at(root, path, number, f"layer '{layer}' must not include '{other}', which is above it"))
            if parts[0] in ("examples", "bench") and target.endswith(".inl.hpp"):
                found.append(at(root, path, number, f"programs include headers, not bodies ({target})"))
    return found


@check
def lengths(root):
    """No file of code is longer than 400 lines, no example longer than 150: everything is read in one sitting."""
    found = []
    for path in own_files(root):
        if path.suffix not in CODE | SCRIPT:
            continue
        parts = path.relative_to(root).parts
        limit = 150 if parts[0] == "examples" and len(parts) == 2 else 400
        lines = text_of(path).splitlines()
        if len(lines) > limit:
            found.append(at(root, path, limit, f"{len(lines)} lines, at most {limit} are allowed"))
        for number, line in enumerate(lines, 1):
            if len(line) > 120:
                found.append(at(root, path, number, f"{len(line)} columns, at most 120 are allowed"))
    return found


# What may stand only in some places: (pattern, files where it may, why). Files of include/vitrine go by their path
# there, those of src by their path from the root: these include a body each, and only the units of kernels do more,
# which rename xsimd.
PLACES = [
    (r"#\s*pragma\s+omp|\bomp_\w+|<omp\.h>", r"core/parallel\.inl\.hpp", "OpenMP belongs into core/parallel"),
    (r"\bstd::(thread|jthread|async)\b|\bpthread_\w+", r"core/parallel.*", "threads belong into core/parallel"),
    (r"<\w*intrin\.h>|\b_mm\d*_\w+|\b__m(128|256|512)[id]?\b|<arm_neon\.h>", r"simd/lanes\w*\.hpp",
     "intrinsics belong into simd/lanes"),
    (r"\bxsimd\b", r"simd/lanes\w*\.hpp|src/kernels_\w+\.cpp", "xsimd belongs into simd/lanes"),
    (r"\b__(AVX|SSE|FMA|F16C|BMI|ARM)\w*", r"simd/(lanes\w*|isa)\.hpp|core/config\.hpp",
     "conditionals on the instruction set belong into simd/lanes and simd/isa"),
    (r"\bVITRINE_ISA_(LEVEL|DOTS)\w*", r"simd/(lanes\w*|isa)\.hpp",
     "what depends on the instruction set belongs into simd/lanes"),
    (r"\b__builtin_ia32_(?!pause\b)\w+", r"simd/lanes\w*\.hpp", "intrinsics belong into simd/lanes"),
    (r"\b__builtin_ia32_pause\b", r"core/signal\.hpp", "waiting threads' pause belongs into core/signal"),
    (r"<cpuid\.h>|\b__get_cpuid\w*|\b_?xgetbv\b", r"simd/cpu_probe.*\.hpp", "questions to the CPU: simd/cpu_probe"),
    (r"\bEigen\b", r"ops/reference.*\.hpp", "Eigen belongs into ops/reference"),
    (r"\bnlohmann\b", r".*\.inl\.hpp", "JSON stays out of public headers"),
    (r"<pcre2\.h>|\bpcre2_\w+", r"text/pattern\.inl\.hpp", "PCRE2 belongs into text/pattern"),
    (r"<utf8proc\.h>|\butf8proc_\w+", r"text/unicode\.inl\.hpp", "utf8proc belongs into text/unicode"),
    (r"<regex>|\bstd::w?regex\b", None, "std::regex recurses on the input's length and knows no Unicode"),
    (r"\bstd::\w+_distribution\b|\bstd::mt19937|\bstd::rand\b", None,
     "random numbers come from our own generator, the same on every machine"),
    (r"\bstd::(exp|exp2|expm1|log|log2|log10|log1p|pow|sin|cos|tan|tanh|erf)f?\s*\(", r"ops/reference.*\.hpp",
     "libm promises no bits; use core/exact_math"),
]


@check
def places(root):
    """OpenMP, intrinsics, Eigen and the like stand where the design puts them and nowhere else."""
    found = []
    for path in files(root, "include", "src"):
        name = path.relative_to(root).as_posix().removeprefix("include/vitrine/")
        text = without_comments(text_of(path))
        for pattern, allowed, why in PLACES:
            if not (allowed and re.fullmatch(allowed, name)):
                found += find(root, path, text, pattern, why)
    return found


@check
def quiet(root):
    """The library prints nothing and ends nobody's program."""
    pattern = (r"\bstd::(cout|cerr|clog|terminate)\b|\b(v?f?printf|f?puts|putchar|perror)\s*\("
               r"|\b(_?exit|_Exit|quick_exit|abort)\s*\(|\bassert\s*\(")
    found = []
    for path in files(root, "include", "src"):
        found += find(root, path, without_comments(text_of(path)), pattern, "the library throws vitrine::Error instead")
    return found


@check
def headers(root):
    """A header says first, in 5 lines or more, what it is; is included once; avoids names of Windows headers."""
    found = []
    for path in files(root, "include", suffixes={".hpp"}):
        text = text_of(path)
        body = path.name.endswith(".inl.hpp")  # its header says what it is
        opening = re.match(r"(//.*\n)*", text)[0].count("\n")
        if not body and opening < 5:
            found.append(at(root, path, 1, f"{opening} lines of comment before #pragma once; "
                            "a header opens with 5 to 12 that say what it is"))
        if not re.search(r"^#pragma once$", text, re.M):
            found.append(at(root, path, 1, "#pragma once is missing"))
        code = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', without_comments(text))
        found += find(root, path, code, r"\b(small|near|far|interface|ERROR)\b", "a macro in Windows headers")
        found += find(root, path, code, r"\bstd::(numeric_limits<[^()]*>::)?(min|max)\s*\(",
                      "write (std::min)(...), for the sake of Windows macros")
    return found


@check
def steps(root):
    """The STEP tags number the life of a token: one total, every number there, in 'STEP 4/9 name' form."""
    found, seen, totals = [], {}, {}
    for path in files(root, "include"):
        for number, line in enumerate(text_of(path).splitlines(), 1):
            for tag in re.finditer(r"\bSTEP\s+(\d\S*)", line):
                form = re.match(r"(\d+)/(\d+)\b", tag[1])
                if not form:
                    found.append(at(root, path, number, f"'{tag[0]}': expected 'STEP 4/9 name'"))
                    continue
                seen.setdefault(int(form[1]), at(root, path, number, "here"))
                totals.setdefault(int(form[2]), at(root, path, number, "here"))
    if len(totals) > 1:
        found.append("STEP tags disagree about how many there are: " +
                     ", ".join(f"{total} ({where})" for total, where in sorted(totals.items())))
    elif totals:
        total = next(iter(totals))
        found += [f"STEP {k}/{total} stands nowhere in include/" for k in range(1, total + 1) if k not in seen]
        found += [f"{where}: STEP {k} is beyond the total of {total}" for k, where in seen.items() if k > total]
    return found


@check
def hygiene(root):
    """No addresses but papers' and our own examples', no paths of somebody's machine; data stays small."""
    hosts = r"(?<![\w@.-])(?:[\w-]+\.)+(?:org|com|net|io|dev|ai|co)(?![\w.-]*[\w(])"
    allowed = re.compile(r"(^|\.)(arxiv\.org|doi\.org|example\.(com|org)|w3\.org|unicode\.org)$")
    found = []
    for path in own_files(root):
        text = text_of(path)
        for number, line in enumerate(text.splitlines(), 1):
            for host in re.findall(hosts, line):
                if not allowed.search(host):
                    found.append(at(root, path, number, f"'{host}': no host names"))
        found += find(root, path, text, r"(?<![\w.$}])/(work|root|home|Users|mnt)/\w+", "a path of somebody's machine")
    size = sum(path.stat().st_size for path in (root / "tests" / "data").rglob("*") if path.is_file())
    if size > 12 * 2**20:
        found.append(f"tests/data: {size / 2**20:.1f} MB, at most 12 are allowed")
    return found


def main():
    root, names = Path(sys.argv[1]).resolve(), sys.argv[2:] or list(CHECKS)
    found = [finding for name in names for finding in CHECKS[name](root)]
    print("\n".join(found) if found else f"in order: {', '.join(names)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
