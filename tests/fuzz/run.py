#!/usr/bin/env python3
"""Builds the fuzz targets with clang and runs all of them at once; fails if one finds something.

    run.py BUILD_FOLDER [--seconds N] [--seed N] [TARGET...]

Ends with 77 (skipped) where there is no clang with libFuzzer (Debian: clang, libclang-rt-14-dev). Inputs that were
found interesting stay in BUILD_FOLDER/corpus, and the next run goes on from them; one that fails is named, to be run
again alone: BUILD_FOLDER/tests/fuzz/fuzz_<target> INPUT. Longer: --seconds 600.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import seeds

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGETS = ["templates", "tokenizers", "model_files", "tokenizer_files"]
PLANTED = "planted"  # has a fault, which must be found
PROBE = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, decltype(sizeof 0)) { return 0; }'
FLAGS = ["-rss_limit_mb=1024", "-malloc_limit_mb=256", "-timeout=20", "-max_len=4096", "-print_final_stats=1"]


def find_compiler(folder):
    compiler = shutil.which(os.environ.get("VITRINE_CLANG", "clang++"))
    if not compiler:
        return None
    probe = subprocess.run([compiler, "-fsanitize=fuzzer,address,undefined", "-x", "c++", "-", "-o", folder / "probe"],
                           input=PROBE, capture_output=True, text=True)
    return compiler if probe.returncode == 0 else None


def build(folder, compiler, targets):
    options = ["-DVITRINE_BUILD_FUZZERS=ON", "-DVITRINE_STD_THREADS=ON", f"-DCMAKE_CXX_COMPILER={compiler}"]
    options += [f"-DVITRINE_{part}=OFF" for part in ("BUILD_TESTS", "BUILD_EXAMPLES", "BUILD_BENCH", "INSTALL")]
    if shutil.which("ninja") and not (folder / "CMakeCache.txt").exists():  # a new machine has it, and no make
        options += ["-G", "Ninja"]
    for command in (["-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=None", *options],
                    ["--build", folder, "--parallel", str(os.cpu_count() or 1), "--target", *targets]):
        process = subprocess.run(["cmake", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if process.returncode != 0:
            sys.exit(f"{process.stdout}\nthe fuzz targets could not be built (see above)")


def start(name, folder, args):
    corpus, found = folder / "corpus" / name, folder / "found" / name
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(parents=True, exist_ok=True)
    known = [folder / "seeds" / name] if name != PLANTED else []
    words = folder / "seeds" / f"{name}.dict"
    command = [folder / "tests" / "fuzz" / f"fuzz_{name}", *FLAGS, f"-seed={args.seed}",
               f"-max_total_time={args.seconds}", f"-artifact_prefix={found}/", corpus, *known]
    if words.exists():
        command.append(f"-dict={words}")
    log = (folder / f"{name}.log").open("w")
    return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)


def judge(name, process, folder):
    """True if the target ended as it must."""
    code = process.wait()
    log = (folder / f"{name}.log").read_text(errors="replace")
    runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", log)
    n_runs = int(runs[1]) if runs else 0
    if name == PLANTED:
        good = code != 0 and "broken: no input begins with a tag" in log
        print(f"{name}: {'the fault was found, as it must be' if good else 'the planted fault was not found'}")
    else:
        good = code == 0 and n_runs >= 100
        print(f"{name}: {n_runs} inputs, {'no finding' if good else f'ended with {code}'}")
    if not good:
        print(log[-8000:])
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("targets", nargs="*", default=[PLANTED, *TARGETS])
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    folder = args.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    compiler = find_compiler(folder)
    if not compiler:
        print("skipped: no clang++ with libFuzzer and AddressSanitizer (Debian: clang, libclang-rt-14-dev)")
        sys.exit(77)
    seeds.write(ROOT, folder / "seeds")
    build(folder, compiler, [f"fuzz_{name}" for name in args.targets])
    running = [(name, start(name, folder, args)) for name in args.targets]
    results = [judge(name, process, folder) for name, process in running]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
