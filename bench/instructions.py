#!/usr/bin/env python3
"""Instructions per token, counted by callgrind: a change in them shows where timings are too noisy to.

  bench/instructions.py            prints the counts beside those recorded in bench/instructions.json
  bench/instructions.py --record   and records them

One thread, a small quantised model of the tests, a fixed prompt. The count of one more token is the difference between
two runs, so loading and start-up are not in it. Valgrind knows no AVX-512, so this is for plain x86-64 and AVX2.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "bench" / "instructions.json"
MODELS = {"Q4_1": "model-Q4_1.gguf", "Q4_K_M": "model-Q4_K_M.gguf"}
WORD = "the "


def count(generate, isa, model, n_words, n_new):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", generate, "--model",
               str(ROOT / "tests/data/quantmodel/llama256" / model), "--prompt", WORD * n_words, "--threads", "1",
               "--max_new_tokens", str(n_new), "--ignore_eos", "--json"]
    done = subprocess.run(command, env={**os.environ, "VITRINE_ISA": isa}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not collected:
        sys.exit(f"instructions.py: {' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return int(collected[1]), json.loads(done.stdout)


def measure(generate):
    counts = {}
    for isa in ("scalar", "avx2"):
        for name, model in MODELS.items():
            few, _ = count(generate, isa, model, 8, 8)
            more, _ = count(generate, isa, model, 8, 40)
            counts[f"decode {name} {isa}"] = (more - few) // 32
            short, short_output = count(generate, isa, model, 16, 1)
            long, long_output = count(generate, isa, model, 80, 1)
            counts[f"prefill {name} {isa}"] = (long - short) // (long_output["prompt_tokens"] -
                                                                short_output["prompt_tokens"])
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generate", default=str(ROOT / "build/release/examples/generate"))
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.relative_to(ROOT)}")
    args = parser.parse_args()
    counts = measure(args.generate)
    before = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for name, now in counts.items():
        change = f"{100 * (now / before[name] - 1):+6.1f} %" if name in before else "   new"
        print(f"{name:24} {now:12,} instructions per token  {change}")
    if args.record:
        RECORD.write_text(json.dumps(counts, indent=1) + "\n")


if __name__ == "__main__":
    main()
