"""The promises of vitrine_bench, run by check_examples.py."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from harness import PROGRAM, TINY, Common, run

BENCH = Path(__file__).resolve().parents[2] / "bench"

# What compare.py needs of a llama-bench: these options, this JSON. The speed is what -x says.
PEER = """
import json, sys
if "--help" in sys.argv: sys.exit(print("--n-depth"))
value = dict(zip(sys.argv[1::2], sys.argv[2::2]))
tests = [("n_prompt", "n_gen", value["-p"]), ("n_gen", "n_prompt", value["-n"])]
print(json.dumps([{kind: int(n), other: 0, "samples_ts": [1, float(value["-x"]), 1e9]} for kind, other, n in tests]))
"""


def script(name, *args):
    done = subprocess.run([sys.executable, BENCH / name, *args], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class Vitrine_bench(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--pp", "8", "--tg", "4", "--depth", "0,8", "--repetitions", "2", "--buffer", "16")
    wrong = [["--pp", "x"], ["--pp", "1.5"], ["--tg", "1.5"], ["--depth", "1.5"], ["--repetitions", "0"],
             ["--buffer", "-1"], ["--buffer", "x"], ["--batch", "-1"], ["--csv", "--json"]]
    closing = None

    def test_tests(self):
        result = json.loads(run(*self.arguments, "--json").stdout)
        self.assertEqual([test["test"] for test in result["tests"]], ["pp8", "tg4", "pp8 @ d8", "tg4 @ d8"])
        for test in result["tests"]:
            self.assertEqual(len(test["seconds"]), 2)
            self.assertEqual([type(test[name]) for name in ("bytes", "ops")], [int, int])
        machine = result["machine"]
        self.assertEqual(machine["read_from_cache"], 16 * 2**20 < 4 * machine["last_level_cache_bytes"])
        text = run(*self.arguments).stdout
        self.assertEqual(machine["read_from_cache"], "smaller than four times the caches" in text)

    def test_batches_and_csv(self):
        lines = run(*self.arguments, "--batch", "3,16", "--csv").stdout.splitlines()
        rows = [dict(zip(lines[0].split(","), line.split(","))) for line in lines[1:]]
        names = ["pp8 b3", "tg4", "pp8 @ d8 b3", "tg4 @ d8", "pp8 b16", "pp8 @ d8 b16"]
        self.assertEqual([row["test"].strip('"') for row in rows], names)
        self.assertEqual([row["batch"] for row in rows], ["3"] * 4 + ["16"] * 2)
        self.assertEqual({len(line.split(",")) for line in lines}, {10})

    def test_options_without_effect(self):
        self.refused("--machine_only", "--tg", "8", expected="--tg: expected without --machine_only")
        self.refused("--head_in_planes", expected="--head_in_planes: expected with --greedy")
        self.refused("--pp", "0", "--batch", "64", expected="--batch: expected with --pp")

    def test_comparison(self):
        with tempfile.TemporaryDirectory() as folder:
            peer, out = Path(folder) / "peer", Path(folder) / "out.json"
            peer.write_text(f"#!{sys.executable}\n{PEER}")
            peer.chmod(0o755)
            settings = ("--peer", f"it={peer} -x 50", "--peer", f"it={peer} -x 200", "--peer", f"other={peer} -x 100")
            code, text, errors = script("compare.py", TINY, *settings, "--ours", PROGRAM, "--pp", "8", "--tg", "2",
                                        "--rounds", "2", "--repetitions", "1", "--json", out)
            self.assertEqual(code, 0, errors)
            rounds = json.loads(out.read_text())["rounds"]
        self.assertEqual([entry["round"] for entry in rounds], [0, 1])
        rows = [[cell.strip(" *") for cell in line.split("|")] for line in text.splitlines()[2:]]
        best = (("it", "-x 200"), ("other", "-x 100"))
        self.assertEqual([tuple(row[i] for i in (2, 6, 7)) for row in rows],
                         [(test, *setting) for test in ("pp8", "tg2") for setting in best])
        for row in rows:
            ratios = sorted(entry["ours"][row[2]]["tokens_per_second"] / float(row[7][3:]) for entry in rounds)
            self.assertEqual(row[9], f"{sum(ratios) / 2:.2f} [{ratios[0]:.2f}, {ratios[1]:.2f}]")
        code, _, errors = script("compare.py", TINY, "--peer", "nothing", "--ours", PROGRAM)
        self.assertEqual(code, 2)
        self.assertIn("--peer: expected NAME=COMMAND, got 'nothing'", errors)

    def test_pictures_are_those_of_the_figures(self):
        for rounds, picture in ((("xeon-2-threads", "xeon-2-threads-decode"), "roofline-xeon"),
                                (("2-threads",), "roofline")):
            code, svg, errors = script("roofline.py", *(BENCH / "results" / f"{name}.json" for name in rounds))
            self.assertEqual(code, 0, errors)
            self.assertEqual(svg, (BENCH / "results" / f"{picture}.svg").read_text())

    def test_the_loops_really_run(self):
        # A deleted loop would issue any number of instructions per cycle; a busy machine only fewer.
        machine = json.loads(run("--machine_only", "--buffer", "64", "--json").stdout)["machine"]
        self.assertEqual(len(machine["readers"]), 3)
        self.assertTrue(0.5e9 < machine["clock_hz"] < 10e9, machine["clock_hz"])
        for isa in machine["isas"]:
            for kind in ("integer", "float"):
                self.assertTrue(0.3 < isa[kind]["per_clock"] < 5, isa)
            if "matrix" in isa:  # a product of tiles takes 16 cycles on the first processors that have it
                self.assertTrue(0.01 < isa["matrix"]["per_clock"] < 0.3, isa)
