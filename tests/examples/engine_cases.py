"""The promises of batching and speculative, run by check_examples.py."""
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

    def test_marks(self):
        text = run(*self.arguments, "--draft", "layers", "--layers", "1").stdout
        self.assertIn("|", text)
        self.assertIn("{", text)  # one layer of random weights is seldom right
