"""The promises of vitrine_bench, run by check_examples.py."""
import json
import unittest

from harness import TINY, Common, run


class Vitrine_bench(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--pp", "8", "--tg", "4", "--depth", "0,8", "--repetitions", "2", "--buffer", "16")
    wrong = [["--pp", "x"], ["--pp", "1.5"], ["--tg", "1.5"], ["--depth", "1.5"], ["--repetitions", "0"],
             ["--buffer", "-1"], ["--buffer", "x"], ["--batch", "0"], ["--csv", "--json"]]
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
