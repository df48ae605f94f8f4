#!/usr/bin/env python3
"""The gate over the library's object files: no instruction may reach a processor that lacks it.

    objects.py --list FILE_NAMING_THEM        objects.py --self_test COMPILER FOLDER
    objects.py --unoptimised COMPILER FOLDER SOURCE FLAG...

In a unit compiled for one instruction set (kernels_<isa>.cpp) every weak symbol must lie in a namespace of that
instruction set: any other inline function could be the copy that the linker keeps for the whole program, and would
then crash an older CPU. Optimisation hides some of them by inlining, so --unoptimised compiles a unit without. Each
unit is disassembled, too, and must hold nothing beyond its set: a baseline unit no wide instruction at all, an AVX2
unit none of AVX-512, and so on up to AMX. And no unit may call what prints to the terminal or ends the program.
"""
import re
import subprocess
import sys
from pathlib import Path

FORBIDDEN_CALLS = {"exit", "_exit", "abort", "printf", "puts", "putchar", "perror", "__assert_fail", "__printf_chk",
                   "std::cout", "std::cerr", "std::clog", "stdout", "stderr"}
# Patterns for objdump's lines, such as "  4:\t62 f1 7c 48 58 c1 \tvaddps %zmm1,%zmm0,%zmm0". Byte 62 is the prefix EVEX
# of AVX-512, c4 and c5 are VEX. So an instruction that has both forms is told apart: vpdpbusd is one of AVX-VNNI and
# another of AVX512-VNNI, and there are processors with the one and without the other.
VECTOR = r"%[yz]mm\d|\t(\{vex\} )?v[a-z0-9]+ .*%xmm"
EVEX = r":\t62 |%zmm|%[xy]mm(1[6-9]|2\d|3[01])|%k[0-7]"
DOTS, VEX_DOTS = r"\t(\{vex\} )?vpdp", r":\tc4 [^\t]*\t(\{vex\} )?vpdp"
TILES, OTHER_TILES = r"%tmm|\t((ld|st)tilecfg|tilerelease)", r"\t(tdp(bf16|fp16)ps|tcmm\w+)"
# Nobody asks a processor whether it has these, so no unit may hold them: BMI and its kin, AES, and what came to AVX and
# AVX-512 later than F, BW, DQ, VL and VNNI: IFMA, VBMI, VBMI2, BITALG, CD, GFNI, BF16, FP16.
UNASKED = (r"\t(andn|bextr|bls\w+|shlx|shrx|sarx|rorx|mulx|pdep|pext|popcnt|lzcnt|movbe) "
           r"|\tv?(gf2p8|aes|pclmul)|\t(\{vex\} )?vpmadd52|\tvp(erm([it]2)?b |multishift|(compress|expand)[bw] |sh[lr]d"
           r"|opcnt|shufbit|conflict|lzcnt|broadcastm)|\tv(dp|cvtne)\w*bf16|\tv(?!cvtps2ph )\w+[ps]hx? ")
BASELINE = (VECTOR, EVEX, TILES, UNASKED)
BEYOND = {isa: re.compile("|".join(forbidden)) for isa, forbidden in {
    None: BASELINE,
    "scalar": BASELINE,
    "avx2": (EVEX, DOTS, TILES, UNASKED),
    "avxvnni": (EVEX, TILES, UNASKED),
    "avx512": (DOTS, TILES, UNASKED),
    "avx512vnni": (VEX_DOTS, TILES, UNASKED),
    "avx512amx": (VEX_DOTS, OTHER_TILES, UNASKED),
}.items()}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def isa_of(path):
    match = re.match(r"kernels_(\w+?)\.cpp", Path(path).name)
    return match[1] if match else None


def weak_symbols(path):
    """But for the pointer to the handler of exceptions, which is no code."""
    for line in run("nm", "--demangle", "--defined-only", path).splitlines():
        match = re.match(r"[0-9a-f]+ ([WwVvu]) (.*)", line)
        if match and not match[2].startswith("DW.ref."):
            yield match[2]


def foreign_weak_symbols(path, isa):
    own = re.compile(rf"\bvitrine::\w+::{isa}::|\bxsimd_{isa}::")
    return [f"{Path(path).name}: weak symbol outside of namespace {isa}: {symbol}"
            for symbol in weak_symbols(path) if not own.search(symbol)]


def findings(path):
    found, isa, name = [], isa_of(path), Path(path).name
    if isa:
        found += foreign_weak_symbols(path, isa)
    for line in run("nm", "--demangle", "--undefined-only", path).splitlines():
        symbol = line.split(maxsplit=1)[1].split("@")[0]
        if symbol in FORBIDDEN_CALLS:
            found.append(f"{name}: calls {symbol}; the library throws vitrine::Error instead")
    if isa not in BEYOND:
        return found + [f"{name}: it is not known what a unit for {isa} may use"]
    function, seen = "?", set()
    for line in run("objdump", "--disassemble", "--demangle", "--insn-width=15", path).splitlines():
        if line.endswith(">:"):
            function = line
        elif BEYOND[isa].search(line) and function not in seen:
            seen.add(function)
            found.append(f"{name}: {function} uses '{line.split(chr(9))[-1]}'")
    return found


# (file, flags, text, part of the finding; None: in order)
CASES = [
    ("plain.cpp", [], "float f(float a) { return a * 2; }", None),
    ("plain.cpp", ["-mavx2"], "float f(float a) { return a * 2; }", "uses"),
    ("plain.cpp", ["-mbmi2"], "unsigned f(unsigned a, int b) { return a << b; }", "uses"),
    ("plain.cpp", [], "#include <cstdlib>\nvoid f() { std::abort(); }", "calls abort"),
    ("plain.cpp", [], "#include <iostream>\nvoid f() { std::cout << 1; }", "calls std::cout"),
    ("kernels_avx2.cpp", ["-mavx2"], "float f(float a) { return a * 2; }", None),
    ("kernels_avx2.cpp", ["-mavx2"], "inline __attribute__((noinline)) int f() { return 1; }\nint g() { return f(); }",
     "weak symbol"),
    ("kernels_avx2.cpp", ["-mavx2"], "namespace vitrine { namespace v0_1 { namespace avx2 {\n"
     "inline __attribute__((noinline)) int f() { return 1; } } } }\n"
     "int g() { return vitrine::v0_1::avx2::f(); }", None),
    ("kernels_avx2.cpp", ["-mavx512f", "-mprefer-vector-width=512"],
     "void f(float* a) { for (int i = 0; i < 1024; ++i) a[i] *= 2; }", "uses"),
    ("kernels_avx1024.cpp", [], "float f(float a) { return a * 2; }", "not known what"),
]
# (instruction, the instruction sets whose units may hold it); None: baseline
INSTRUCTIONS = [
    ("addps %xmm1, %xmm0", "None scalar avx2 avxvnni avx512 avx512vnni avx512amx"),
    ("vaddps %xmm2, %xmm1, %xmm0", "avx2 avxvnni avx512 avx512vnni avx512amx"),
    ("vpmaddubsw %ymm2, %ymm1, %ymm0", "avx2 avxvnni avx512 avx512vnni avx512amx"),
    ("vcvtps2ph $0, %ymm0, %xmm0", "avx2 avxvnni avx512 avx512vnni avx512amx"),
    ("{vex} vpdpbusd %ymm2, %ymm1, %ymm0", "avxvnni"),
    ("{evex} vpdpbusd %ymm2, %ymm1, %ymm0", "avx512vnni avx512amx"),
    ("vpdpbusd %zmm2, %zmm1, %zmm0", "avx512vnni avx512amx"),
    ("vpdpwssd %zmm2, %zmm1, %zmm0", "avx512vnni avx512amx"),
    ("vaddps %zmm2, %zmm1, %zmm0", "avx512 avx512vnni avx512amx"),
    ("vaddps %ymm2, %ymm1, %ymm16", "avx512 avx512vnni avx512amx"),
    ("vpternlogd $1, %ymm2, %ymm1, %ymm0", "avx512 avx512vnni avx512amx"),  # EVEX only, which no register shows
    ("kmovw %eax, %k1", "avx512 avx512vnni avx512amx"),
    ("tdpbssd %tmm2, %tmm1, %tmm0", "avx512amx"),
    ("ldtilecfg (%rax)", "avx512amx"),
    ("tilerelease", "avx512amx"),
    ("tdpbf16ps %tmm2, %tmm1, %tmm0", ""),
    ("pdep %rdx, %rax, %rcx", ""),
    ("popcnt %rax, %rcx", ""),
    ("vpermb %zmm2, %zmm1, %zmm0", ""),
    ("vpmadd52luq %zmm2, %zmm1, %zmm0", ""),
    ("vdpbf16ps %zmm2, %zmm1, %zmm0", ""),
    ("vaddph %zmm2, %zmm1, %zmm0", ""),
    ("vpopcntd %zmm1, %zmm0", ""),
]


def wrong_instructions(compiler, folder):
    """One unit for each instruction set, with a function for each instruction: who is found, and who should be?"""
    for isa in BEYOND:
        source = folder / ("plain.cpp" if isa is None else f"kernels_{isa}.cpp")
        source.write_text("".join(f'extern "C" void i{i}() {{ __asm__("{instruction}"); }}\n'
                                  for i, (instruction, _) in enumerate(INSTRUCTIONS)))
        run(compiler, "-O3", "-c", str(source), "-o", str(source) + ".o")
        found = "\n".join(findings(str(source) + ".o"))
        for i, (instruction, may) in enumerate(INSTRUCTIONS):
            if (f"<i{i}>:" in found) == (str(isa) in may.split()):
                yield f"{instruction} in a unit for {isa}: expected it in {may or 'none'} only, found {found}"


def self_test(compiler, folder):
    wrong = []
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, flags, text, expected) in enumerate(CASES):
        case = folder / str(number)
        case.mkdir(exist_ok=True)
        (case / name).write_text(text + "\n")
        run(compiler, "-O3", *flags, "-c", str(case / name), "-o", str(case / (name + ".o")))
        found = findings(str(case / (name + ".o")))
        if bool(found) != bool(expected) or (expected and not any(expected in finding for finding in found)):
            wrong.append(f"{name} {flags} {text!r}: expected {expected}, found {found}")
    wrong += wrong_instructions(compiler, folder)
    source = folder / "kernels_avx2.cpp"
    source.write_text("inline int f(int a) { return a; }\nint g(int a) { return f(a); }\n")
    if len(unoptimised(compiler, folder, str(source), "-mavx2")) != 1:
        wrong.append("an inline function of an unoptimised unit should be found")
    return wrong


def unoptimised(compiler, folder, source, *flags):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = str(folder / (Path(source).name + ".o"))
    run(compiler, "-O0", *flags, "-c", source, "-o", path)
    return foreign_weak_symbols(path, isa_of(source))


def main():
    if sys.argv[1] == "--self_test":
        found = self_test(sys.argv[2], Path(sys.argv[3]))
    elif sys.argv[1] == "--unoptimised":
        found = unoptimised(*sys.argv[2:])
    else:
        objects = Path(sys.argv[2]).read_text().split("\n")[:-1]
        kinds = {isa_of(path) for path in objects}
        found = [finding for path in objects for finding in findings(path)]
        expected = ("scalar", "avx2", "avxvnni", "avx512", "avx512vnni", "avx512amx", None)
        found += [f"no object for {isa} was looked at" for isa in expected if isa not in kinds]
    print("\n".join(found) if found else "in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
