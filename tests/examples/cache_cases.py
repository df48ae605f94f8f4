"""The promises of the examples about the KV cache, run by check_examples.py."""
import json
import tempfile
import unittest

from harness import TINY, Common, run


class Quantized_cache(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--tokens", "40", "--depth", "20", "--steps", "3")
    wrong = [["--tokens", "1"], ["--depth", "0"], ["--steps", "x"]]

    def test_types(self):
        result = json.loads(run(*self.arguments, "--json").stdout)
        types = {row["types"]: row for row in result["types"]}
        self.assertEqual(list(types), ["F32", "F16", "BF16", "INT8", "INT8/INT4", "INT4"])
        # 3 layers, 2 kv heads of 16 values, K and V; scales of two bytes, V of INT4 in whole groups of 32
        per_value = {"F32": 4 * 32, "F16": 2 * 32, "BF16": 2 * 32, "INT8": 2 * 18, "INT8/INT4": 18 + 18,
                     "INT4": 10 + 18}
        self.assertEqual({name: row["bytes_per_token"] for name, row in types.items()},
                         {name: 3 * 2 * n for name, n in per_value.items()})
        self.assertEqual((types["F32"]["largest_logit_difference"], types["F32"]["top_1_agreement"]), (0, 1))
        differences = [types[name]["largest_logit_difference"] for name in ("F32", "F16", "BF16", "INT4")]
        self.assertEqual(differences, sorted(differences))
        self.assertTrue(all(row["step_ms"] > 0 and row["perplexity"] > 1 for row in result["types"]))

    def test_a_text_of_the_users(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("one two three")
            file.flush()
            short = json.loads(run(*self.arguments, "--text", file.name, "--json").stdout)
        self.assertLess(short["text_tokens"], 40)
        self.assertIn("cannot read", run(*self.arguments, "--text", "/no/such/file", code=1).stderr)


class Sliding_window(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--window", "20", "--context", "1000")
    wrong = [["--window", "0"], ["--sinks", "0"], ["--sinks", "257"], ["--window", "99999"], ["--tokens", "10"]]

    def test_memory_and_what_is_said(self):
        ways = json.loads(run(*self.arguments, "--json").stdout)["ways"]
        self.assertEqual([(way["window"], way["sinks"]) for way in ways], [(0, 0), (20, 0), (20, 4)])
        block = 64 * 3 * 2 * 16 * 2 * 2  # F16
        self.assertEqual([way["kv_bytes"] / block for way in ways], [16, 3, 4])  # 19 + 64 tokens, and the sinks' block
        self.assertEqual(len({way["perplexity"] for way in ways}), 3)
        text = " ".join(run(*self.arguments).stdout.split())
        self.assertIn("4.0 times less memory", text)
        self.assertIn("Sinks bring nothing back", text)
