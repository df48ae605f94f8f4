"""The promises of the programs that compare caches, run by check_examples.py."""
import json
import tempfile
import unittest

from harness import DATA, TINY, Common, run


class Accuracy(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--tokens", "130", "--piece", "64")
    wrong = [["--tokens", "1"], ["--piece", "1"], ["--piece", "x"], ["--kv", "f8"], ["--kv", "f16,"], ["--kv", ""]]
    closing = "2 pieces of 64 tokens"

    def rows(self, model, *arguments):
        result = json.loads(run("--model", model, "--json", *arguments).stdout)
        return result, {row["types"]: row for row in result["types"]}

    def test_float_weights_and_cache_are_the_reference(self):
        result, rows = self.rows(TINY, "--tokens", "130", "--piece", "64", "--kv", "f32,f16,int8/int4")
        self.assertEqual((result["pieces"], result["tokens_per_piece"]), (2, 64))
        exact = rows["F32"]
        self.assertEqual(exact.pop("same_top"), 1)
        self.assertEqual({type(value) for value in exact.values()}, {str, float})
        self.assertTrue(all(abs(value) < 1e-12 for value in exact.values() if isinstance(value, float)), exact)
        for name in ("mean_logit_difference", "rms_log_probability_difference", "divergence"):
            values = [rows[kv][name] for kv in ("F32", "F16", "INT8/INT4")]
            self.assertEqual(values, sorted(values), name)

    def test_quantised_weights_differ_by_their_activations(self):
        _, rows = self.rows(DATA / "tiny" / "llama_gqa" / "model-f16.gguf", "--kv", "f32")
        self.assertEqual(rows["F32"]["largest_logit_difference"], 0)
        for kind in ("Q4_0", "Q4_1", "Q4_K_M"):
            _, rows = self.rows(DATA / "quantmodel" / "llama256" / f"model-{kind}.gguf", "--kv", "f32")
            self.assertTrue(0.01 < rows["F32"]["mean_logit_difference"] < 0.2, rows)

    def test_a_text_shorter_than_a_piece(self):
        result, rows = self.rows(TINY, "--tokens", "20", "--kv", "f16")
        self.assertEqual((result["pieces"], result["tokens_per_piece"]), (1, 20))
        self.assertIsNone(rows["F16"]["perplexity_standard_error"])  # one piece has no spread


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
        for path in ("/no/such/file", "/"):
            self.assertIn(f"--text: cannot read {path}", run(*self.arguments, "--text", path, code=1).stderr)


class Sliding_window(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--window", "20", "--context", "1000")
    wrong = [["--window", "0"], ["--sinks", "0"], ["--sinks", "257"], ["--window", "99999"], ["--tokens", "10"]]

    def test_a_context_that_is_too_small(self):
        self.refused("--model", TINY, "--tokens", "99", "--context", "100", expected="--context: expected at least 147")

    def test_memory_and_what_is_said(self):
        ways = json.loads(run(*self.arguments, "--json").stdout)["ways"]
        self.assertEqual([(way["window"], way["sinks"]) for way in ways], [(0, 0), (20, 0), (20, 4)])
        block = 64 * 3 * 2 * 16 * 2 * 2  # F16
        self.assertEqual([way["kv_bytes"] / block for way in ways], [16, 3, 4])  # 19 + 64 tokens, and the sinks' block
        self.assertEqual(len({way["perplexity"] for way in ways}), 3)
        text = " ".join(run(*self.arguments).stdout.split())
        self.assertIn("4.0 times less memory", text)
        self.assertIn("Sinks bring nothing back", text)
