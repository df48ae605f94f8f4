#!/usr/bin/env python3
"""Runs vitrine_bench and one or more peers' llama-bench in turn on the same model files, and prints ratios.

  bench/compare.py MODEL.gguf... --peer 'llama.cpp=/path/to/llama-bench -fa 1' --peer 'ik=/path/to/llama-bench -rtr 1'

Each round runs every program once per model, in an order that turns from round to round, so that what the machine does
meanwhile (clock, neighbours) meets all alike. A peer given several times (same name, other options) counts with the
setting whose median is best, test by test. Ratios are ours over the peer's of the same round: the median, and in
brackets the smallest and the largest. A share of the bandwidth is that of its own round.
"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def output_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"compare.py: {shlex.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def test_name(kind, n, depth):
    return f"{kind}{n}" + (f" @ d{depth}" if depth else "")


def numbers(text):
    return [int(part) for part in text.split(",")]


def run_ours(args, model):
    out = json.loads(output_of([args.ours, "--model", model, "--threads", str(args.threads), "--pp", args.pp, "--tg",
                                args.tg, "--depth", args.depth, "--repetitions", str(args.repetitions), "--json"]))
    bandwidth = max(out["machine"]["read_bytes_per_second"], out["read_bytes_per_second_after"])
    return {test["test"]: {"tokens_per_second": test["tokens_per_second"], "bytes": test["bytes"] / test["n_tokens"],
                           "ops": test["ops"] / test["n_tokens"], "share_of_bandwidth": test["share_of_bandwidth"],
                           "share_of_peak": test["share_of_peak"], "read_bytes_per_second": bandwidth}
            for test in out["tests"]}, out["machine"]


def run_peer(args, command, takes_depth, model):
    """One call per depth. Without --n-depth, as in ik_llama.cpp, generation at a depth is asked for by -gp."""
    speeds = {}
    for depth in numbers(args.depth):
        wanted = ["-m", model, "-t", str(args.threads), "-r", str(args.repetitions), "-o", "json"]
        if depth == 0 or takes_depth:
            wanted += ["-p", args.pp, "-n", args.tg] + (["-d", str(depth)] if takes_depth else [])
        else:
            wanted += ["-p", "0", "-n", "0"] + [part for n in numbers(args.tg) for part in ("-gp", f"{depth},{n}")]
        for test in json.loads(output_of(command + wanted)):
            kind = "tg" if test["n_gen"] else "pp"
            speeds[test_name(kind, test["n_gen"] or test["n_prompt"], depth)] = statistics.median(test["samples_ts"])
    return speeds


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f}, {max(values):.{digits}f}]"


def table(args, rounds, settings):
    lines = ["| model | test | ours, tokens/s | of bandwidth | of peak | peer | its best setting | tokens/s | ratio |",
             "|---|---|---|---|---|---|---|---|---|"]
    for model in args.model:
        name = pathlib.Path(model).stem
        of_model = [entry for entry in rounds if entry["model"] == name]
        for test in of_model[0]["ours"]:
            ours = [entry["ours"][test] for entry in of_model]
            speeds = [our["tokens_per_second"] for our in ours]
            shares = [f"{100 * statistics.median(our[key] for our in ours):.0f} %"
                      for key in ("share_of_bandwidth", "share_of_peak")]
            for peer in dict.fromkeys(peer for peer, _ in settings):
                per_setting = {shlex.join(command[1:]) or "default":
                               [entry["peers"][str(i)][test] for entry in of_model]
                               for i, (this, command) in enumerate(settings)
                               if this == peer and test in of_model[0]["peers"][str(i)]}
                if not per_setting:
                    continue
                best = max(per_setting, key=lambda setting: statistics.median(per_setting[setting]))
                theirs = per_setting[best]
                ratios = [our / their for our, their in zip(speeds, theirs)]
                lines.append(f"| {name} | {test} | {spread(speeds, 0)} | {shares[0]} | {shares[1]} | {peer} | {best} | "
                             f"{spread(theirs, 0)} | **{spread(ratios, 2)}** |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="+", help="GGUF files")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND",
                        help="a llama-bench with its options; may be given several times")
    parser.add_argument("--ours", default=str(ROOT / "build/release/bench/vitrine_bench"))
    parser.add_argument("--pp", default="512", help="prompt lengths, comma-separated")
    parser.add_argument("--tg", default="128", help="numbers of tokens to generate")
    parser.add_argument("--depth", default="0", help="tokens in the cache before")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=2, help="of each test in each round")
    parser.add_argument("--json", metavar="FILE", help="write every round's figures")
    args = parser.parse_args()

    settings = []
    for text in args.peer:
        name, is_given, command = text.partition("=")
        if not is_given or not command:
            parser.error(f"--peer: expected NAME=COMMAND, got '{text}'")
        settings.append((name, shlex.split(command)))
    takes_depth = ["--n-depth" in subprocess.run([command[0], "--help"], stdout=subprocess.PIPE, text=True,
                                                 stderr=subprocess.STDOUT).stdout for _, command in settings]

    rounds, machine = [], None
    programs = ["ours"] + list(range(len(settings)))
    for round_number in range(args.rounds):
        for model in args.model:
            entry = {"model": pathlib.Path(model).stem, "round": round_number, "peers": {}}
            turn = round_number % len(programs)
            for program in programs[turn:] + programs[:turn]:
                print(f"round {round_number + 1}/{args.rounds}: {entry['model']}, "
                      f"{program if program == 'ours' else settings[program][0]}", file=sys.stderr)
                if program == "ours":
                    entry["ours"], machine = run_ours(args, model)
                else:
                    entry["peers"][str(program)] = run_peer(args, settings[program][1], takes_depth[program], model)
            rounds.append(entry)
    if args.json:
        names = [f"{name}: {shlex.join(command[1:])}" for name, command in settings]
        pathlib.Path(args.json).write_text(json.dumps(
            {"threads": args.threads, "machine": machine, "peers": names, "rounds": rounds}, indent=1) + "\n")
    print(table(args, rounds, settings))


if __name__ == "__main__":
    main()
