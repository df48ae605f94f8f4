"""The promises of batching, speculative and serving_bench, run by check_examples.py."""
import json
import unittest

from harness import TINY, Common, run


class Batching(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--requests", "1,3", "--prompt_tokens", "5", "--new_tokens", "16", "--batch", "2")
    wrong = [["--requests", "0"], ["--requests", "x"], ["--prompt_tokens", "0"], ["--new_tokens", "1"],
             ["--batch", "0"]]

    def test_steps_and_tokens(self):
        result = json.loads(run(*self.arguments, "--json").stdout)
        for measured, n in zip(result["concurrent"], (1, 3)):
            self.assertEqual((measured["requests"], measured["tokens"]), (n, 16 * n))
            self.assertLess(measured["steps"], 16 + 2 * n)  # one pass for all, but for the prompts at the beginning
        waiting, flowing = result["static"], result["continuous"]
        self.assertEqual(waiting["tokens"], 2 * (16 + 2 + 4 + 2))
        self.assertEqual(flowing["tokens"], waiting["tokens"])
        self.assertLess(flowing["steps"], waiting["steps"])
        self.assertGreater(flowing["places_used"], waiting["places_used"])


class Speculative(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--prompt", "a b c d a b c d a b c d", "--new_tokens", "24")
    wrong = [["--draft", "x"], ["--layers", "0"], ["--layers", "1"], ["--draft_model", "x"], ["--guesses", "16"],
             ["--new_tokens", "1"], ["--temperature", "-1"], ["--seed", "-1"]]

    def test_same_tokens_in_fewer_passes(self):
        for more in ([], ["--draft", "layers", "--layers", "2"], ["--draft", "model", "--draft_model", TINY],
                     ["--temperature", "0.8"]):
            result = json.loads(run(*self.arguments, *more, "--json").stdout)
            self.assertTrue(result["same_tokens"], more)
            self.assertEqual(result["passes"]["plain"] - result["passes"]["speculative"], result["accepted"])
            if "--draft" in more:  # the model guesses for itself
                self.assertEqual(result["acceptance"], 1, more)
                self.assertLess(result["passes"]["speculative"], result["passes"]["plain"])

    def test_options_without_effect(self):
        self.refused(*self.arguments, "--seed", "2", expected="--seed: expected with a --temperature above 0")
        self.refused(*self.arguments, "--layers", "1", expected="--layers: expected with --draft layers")

    def test_marks(self):
        text = run(*self.arguments, "--draft", "layers", "--layers", "1").stdout
        self.assertIn("|", text)
        self.assertIn("{", text)  # one layer of random weights is seldom right


class Serving_bench(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--requests", "1,3", "--prompt_tokens", "5", "--new_tokens", "16", "--others", "2",
                 "--arriving_tokens", "100", "--tokens_beside", "6", "--prefix_tokens", "90", "--repetitions", "1",
                 "--tests", "concurrent,arrival,prefix")
    closing = "times as fast"
    wrong = [["--tests", "x"], ["--tests", ""], ["--requests", "0"], ["--prompt_tokens", "0"], ["--new_tokens", "1"],
             ["--others", "x"], ["--arriving_tokens", "0"], ["--tokens_beside", "1"], ["--prefix_tokens", "1"],
             ["--lookup_tokens", "1"], ["--kv", "f8"], ["--prompt_work", "-1"], ["--repetitions", "0"]]

    def test_what_is_counted(self):
        result = json.loads(run(*self.arguments, "--json").stdout)
        self.assertEqual([row["requests"] for row in result["concurrent"]], [1, 3])
        self.assertEqual(result["concurrent"][0]["of_first"], 1)
        (arrival,) = result["arrival"]
        parts = [arrival[part]["count"] for part in ("before", "during", "after")]
        self.assertEqual(sum(parts), arrival["whole"]["count"])
        self.assertGreaterEqual(parts[1], 2 * 100 // 64)  # others get tokens while the prompt is read
        self.assertEqual(parts[2], 2 * 6)
        prefix = result["prefix"]
        self.assertEqual((prefix["prompt_tokens"], prefix["cached_tokens"]), (90, 64))  # whole blocks

    def test_options_of_other_tests(self):
        for option, test in (("requests", "concurrent"), ("others", "arrival"), ("prefix_tokens", "prefix")):
            self.refused("--model", TINY, "--tests", "lookup", f"--{option}", "5",
                         expected=f"--{option}: expected with --tests {test}")
        self.refused(*self.arguments, "--lookup_tokens", "5", expected="--lookup_tokens: expected with --tests lookup")

    def test_lookup(self):
        result = json.loads(run("--model", TINY, "--tests", "lookup", "--lookup_tokens", "20", "--json").stdout)
        self.assertLessEqual(result["lookup"]["accepted"], result["lookup"]["guesses"])
