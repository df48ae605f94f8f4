"""The promises of temperature and sampling, run by check_examples.py."""
import json
import unittest

from harness import TINY, Common, run


class Temperature(Common, unittest.TestCase):
    arguments = ()
    uses_model = False
    wrong = [["--logits", "x"], ["--logits", "1,,2"], ["--logits", "nan,1"], ["--logits", "1e99"], ["--top_p", "nan"],
             ["--top_p", "7"], ["--top_k", "0"], ["--temperatures", "-1"], ["--show", "0"]]

    def test_textbook_table(self):
        text = run("--logits", "2,1,0", "--temperatures", "0.5,1,2").stdout
        columns = [line.split()[3:] for line in text.splitlines()[1:4]]
        self.assertEqual(columns, [["0.8668", "0.6652", "0.5065"], ["0.1173", "0.2447", "0.3072"],
                                   ["0.0159", "0.0900", "0.1863"]])

    def test_what_the_cuts_keep(self):
        result = json.loads(run("--logits", "3,2,1", "--temperatures", "0.5,1", "--top_p", "0.8", "--top_k", "1",
                                "--json").stdout)
        self.assertEqual([row["top_p"]["n_kept"] for row in result["temperatures"]], [1, 2])
        self.assertEqual([row["top_k"]["n_kept"] for row in result["temperatures"]], [1, 1])
        self.assertAlmostEqual(result["temperatures"][1]["top_p"]["mass"], 0.66524096 + 0.24472847, places=6)

    def test_a_greedy_row_hides_no_candidate(self):
        text = run("--logits", "1,2,0", "--temperatures", "0,1").stdout
        table = [line.split() for line in text.splitlines()[1:4]]
        self.assertEqual([row[1] for row in table], ["1", "0", "2"])
        self.assertEqual([row[3:] for row in table], [["1.0000", "0.6652"], ["0", "0.2447"], ["0", "0.0900"]])

    def test_conclusion_follows_the_numbers(self):
        for logits, temperatures, said in (
                ("5,5,5", "0.5,2", "stay equally probable at any temperature above 0, each of 3 candidates has 33 %."),
                ("1", "0.5,2", "A single candidate has all of the mass at any temperature."),
                ("20,0", "0.5,1", "From T=0.5 to T=1 the most probable candidate stays at 100 %."),
                ("5,5", "0,1", "From T=0 to T=1 the most probable candidate goes from 100 % to 50 %."),
                ("1,0", "1", "At T=1 the most probable candidate has 73 %. top-k keeps 2 candidates, top-p 2:"),
                ("1,0", "1,2", "goes from 73 % to 62 %, yet no candidate overtakes another.")):
            text = " ".join(run("--logits", logits, "--temperatures", temperatures).stdout.split())
            self.assertIn(said, text)

    def test_one_source_of_logits(self):
        self.refused("--logits", "1", "--prompt", "a", "--model", TINY, expected="--logits and --prompt: expected one")
        for option, value in (("--model", TINY), ("--threads", "1"), ("--image_folder", "x")):
            self.refused(option, value, expected=f"{option}: expected with --prompt")

    def test_real_logits(self):
        result = json.loads(run("--prompt", "the ", "--model", TINY, "--json", "--show", "3").stdout)
        row = result["temperatures"][1]
        self.assertEqual(len(row["all"]["candidates"]), 3)
        self.assertEqual(row["all"]["n_kept"], 384)
        self.assertIn("no_such_file.gguf", run("--prompt", "a", "--model", "no_such_file.gguf", code=1).stderr)


class Sampling(Common, unittest.TestCase):
    arguments = ("--seed", "1")
    uses_model = False
    wrong = [["--logits", "x"], ["--top_p", "7"], ["--preset", "ollama"], ["--logit_bias", "3"],
             ["--logit_bias", "99:1"], ["--logit_bias", "1:nan"], ["--suppress_tokens", "-1"], ["--xtc_threshold", "2"],
             ["--position", "-1"], ["--show", "0"]]

    def told(self, *arguments):
        return json.loads(run(*arguments, "--json").stdout)

    def test_each_rung(self):
        told = self.told("--logits", "3,2,1", "--temperature", "0.5", "--top_k", "3", "--top_p", "0.9", "--seed", "5")
        logits, temperature, top_k, top_p = told["stages"]
        self.assertEqual([stage["step"] for stage in told["stages"]],
                         ["logits", "temperature(0.5)", "top_k(3)", "top_p(0.9)"])
        self.assertAlmostEqual(logits["candidates"][0]["p"], 0.66524096, places=6)
        self.assertAlmostEqual(temperature["candidates"][0]["p"], 0.86681333, places=6)
        self.assertEqual((top_p["n_before"], top_p["n_after"]), (3, 2))
        self.assertAlmostEqual(top_p["mass_removed"], 0.01587624, places=6)
        self.assertTrue(told["mass_before"] <= told["draw"] < told["mass_before"] + told["p"])
        self.assertEqual(self.told("--logits", "3,2,1", "--temperature", "0.5", "--top_k", "3", "--preset", "llama.cpp",
                                   "--top_p", "0.9")["stages"][2]["step"], "top_p(0.9)")

    def test_draws_follow_seed_and_position(self):
        draws = {self.told("--seed", "1", "--position", position)["draw"] for position in range(5)}
        self.assertEqual(len(draws), 5)
        self.assertEqual(self.told("--seed", "1"), self.told("--seed", "1"))
        self.assertIsNone(self.told("--temperature", "0")["draw"])

    def test_what_is_dropped_is_shown(self):
        text = run("--logits", "3,2,1", "--top_k", "2", "--logit_bias", "0:-inf", "--seed", "1").stdout
        self.assertRegex(text, r"logit_bias\(1 token\)   2 of 3 stay, 67 % of the mass goes, entropy 0\.58 nats\n"
                               r"  token 0 +█+\S* 67 % dropped\n  token 1 +█+\S* 73 %  \(up to 0\.731\)")
        self.assertIn("▲", text)
        self.assertIn("nothing is drawn", run("--temperature", "0").stdout)
        self.refused("--temperature", "0", "--top_p", "0.5", expected="--top_p: expected with a --temperature above 0")

    def test_real_logits(self):
        told = self.told("--prompt", "the the", "--model", TINY, "--repetition_penalty", "1.5", "--show", "2")
        self.assertEqual(told["stages"][0]["n_after"], 384)
        self.assertEqual(told["stages"][1]["step"], "repetition_penalty(1.5)")
        self.assertEqual(len(told["stages"][1]["candidates"]), 2)
