#!/usr/bin/env python3
"""Runs one example program as people do, and checks what it says.

    check_examples.py PROGRAM TEST_DATA [CASE...]

What holds for all: --help, one line and exit code 2 for what makes no sense, exit code 1 when there is no model, 80
columns and no escape codes without a terminal, colours on one, none with NO_COLOR. The class named after the program
adds what it alone promises.
"""
import json
import re
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from bench_cases import Vitrine_bench
from cache_cases import Accuracy, Quantized_cache, Sliding_window
from chat_cases import Chat, Rag_budget
from engine_cases import Batching, Serving_bench, Speculative
from harness import DATA, PROGRAM, TINY, Common, instead, interrupt, run
from kv_memory_cases import Kv_memory
from page_cases import Paged, Prefix_cache
from sampling_cases import Sampling, Temperature


class Hello_token(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--prompt", "one two")
    wrong = [["--layer", "-1"], ["--layer", "3"]]

    def test_every_step_and_its_shape(self):
        text = run(*self.arguments).stdout
        for step in ("1/9 tokenize", "2/9 embed", "3/9 project", "4/9 rope", "5/9 attention", "6/9 output",
                     "7/9 feed-forward", "8/9 head", "9/9 sample"):
            self.assertIn(step, text)
        result = json.loads(run(*self.arguments, "--json").stdout)
        n = len(result["tokens"])
        shapes = {(step["name"], step["layer"]): step["shape"] for step in result["steps"]}
        self.assertEqual(shapes["embedding", -1], [n, 64])
        self.assertEqual(shapes["q_rope", 0], [n, 4 * 16])
        self.assertEqual(shapes["k_rope", 2], [n, 2 * 16])
        self.assertEqual(shapes["logits", -1][0], 1)
        self.assertEqual(len(result["candidates"]), 5)

    def test_empty_prompt(self):
        result = run("--model", TINY, "--prompt", "", code=2)
        self.assertIn("--prompt", result.stderr)

    def test_too_long_a_prompt(self):
        result = run("--model", TINY, "--prompt", "one two " * 200, code=1)
        self.assertRegex(result.stderr, r"needs a context of \d+ or more, it has 256; take a shorter --prompt\n$")


class Generate(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--prompt", "one two", "--max_new_tokens", "8", "--ignore_eos")
    wrong = [["--temperature", "-1"], ["--temperature", "nan"], ["--top_p", "2"], ["--min_p", "-1"],
             ["--repetition_penalty", "0"], ["--max_new_tokens", "0"], ["--top_k", "x"], ["--seed", "-"],
             ["--chat", "and --prompt"]]

    def result(self, *more):
        return json.loads(run(*self.arguments, "--json", *more).stdout)

    def test_greedy_and_seeds(self):
        greedy = self.result()
        self.assertEqual(len(greedy["tokens"]), 8)
        self.assertEqual(greedy["tokens"], self.result("--threads", "1")["tokens"])
        self.assertEqual(greedy["tokens"], self.result("--do_sample", "--top_k", "1")["tokens"])
        drawn = self.result("--do_sample", "--temperature", "5", "--top_k", "0", "--seed", "42")
        self.assertEqual(drawn["seed"], 42)
        one_thread = self.result("--do_sample", "--temperature", "5", "--top_k", "0", "--seed", "42", "--threads", "1")
        self.assertEqual(drawn["tokens"], one_thread["tokens"])
        fresh = self.result("--do_sample", "--temperature", "5", "--top_k", "0")
        self.assertNotIn(fresh["seed"], (42, self.result("--do_sample")["seed"]))
        again = self.result("--do_sample", "--temperature", "5", "--top_k", "0", "--seed", str(fresh["seed"]))
        self.assertEqual(fresh["tokens"], again["tokens"])

    def test_end_tokens(self):
        end = json.loads((DATA / "tiny" / "llama_gqa" / "config.json").read_text())["eos_token_id"]
        likely = ("--logit_bias", f"{end}:1000")
        self.assertEqual(self.result(*likely)["tokens"], self.result("--suppress_tokens", end)["tokens"])
        ended = json.loads(run(*self.arguments[:-1], *likely, "--json").stdout)
        self.assertEqual((ended["tokens"], ended["text"], ended["finish_reason"]), ([], "", "end_token"))

    def test_stop_strings(self):
        text = self.result()["text"]
        stop = text[2:5]
        for given in (stop, json.dumps([stop, "never said"])):
            result = self.result("--stop_strings", given)
            self.assertEqual((result["text"], result["finish_reason"], result["stop_string"]),
                             (text[:text.index(stop)], "stop_string", stop))
            self.assertEqual(run(*self.arguments, "--stop_strings", given).stdout.split("\n\n")[0],
                             text[:text.index(stop)])
        self.refused(*self.arguments, "--stop_strings", "", expected="stop string 0: expected at least 1 byte")
        self.refused(*self.arguments, "--stop_strings", "[1]", expected="--stop_strings: expected a text, or a list")
        result = self.result("--max_time", "1e-9")
        self.assertEqual((result["finish_reason"], len(result["tokens"])), ("time_limit", 1))

    def test_log_probabilities(self):
        result = self.result("--log_probabilities", "2")
        self.assertEqual(len(result["log_probabilities"]), 8)
        for entry in result["log_probabilities"]:
            self.assertEqual((entry["processed"], entry["rank"], len(entry["top"])), (0, 0, 2))
            self.assertEqual(entry["raw"], entry["top"][0]["raw"])
            self.assertGreater(0, entry["raw"])

    def test_every_step_may_be_asked_for(self):
        result = self.result("--do_sample", "--preset", "llama.cpp", "--typical_p", "0.9", "--top_n_sigma", "3",
                             "--xtc_probability", "0.5", "--presence_penalty", "1", "--dry_multiplier", "0.8",
                             "--no_repeat_ngram_size", "3", "--suppress_tokens", "5,6", "--logit_bias", "7:1,8:-inf",
                             "--min_new_tokens", "2", "--mirostat_tau", "5", "--dynatemp_range", "0.2", "--seed", "3")
        self.assertEqual(result["sampling"],
                         "logit_bias(2 tokens) -> presence_frequency(1, 0) -> dry(0.8, 1.75, 2) -> "
                         "no_repeat_ngram_size(3) -> banned(2 sequences) -> min_new_tokens(2) -> ignore_end(1 token) "
                         "-> top_n_sigma(3) -> top_k(40) -> typical_p(0.9) -> top_p(0.95) -> min_p(0.05) -> "
                         "xtc(0.5, 0.1) -> dynamic_temperature(0.8, 0.2, 1) -> mirostat(5, 0.1)")
        greedy = self.result()["tokens"][0]
        self.assertNotEqual(self.result("--suppress_tokens", greedy)["tokens"][0], greedy)

    def test_timings(self):
        result = self.result()
        self.assertEqual(len(result["inter_token_seconds"]), 7)
        self.assertGreater(result["ttft_seconds"], 0)
        self.assertGreaterEqual(result["ttft_seconds"], result["prefill_seconds"])

    def test_too_long_a_prompt(self):
        result = run("--model", TINY, "--prompt", "one two three four", "--context", "2", code=1)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn("make more room with --context", result.stderr)
        self.assertRegex(result.stderr, r"prompt of \d+ tokens needs .* it has 2; max_new_tokens is 256;")
        self.assertIn("the prompt of 1 token needs a context of 2 or more, it has 1;",
                      run("--model", TINY, "--prompt", "o", "--context", "1", code=1).stderr)

    def test_conclusion_follows_the_numbers(self):
        self.assertNotIn(self.closing, run("--model", TINY, "--prompt", "o", "--ignore_eos").stdout)
        for words in (1, 1, 1, 40):  # the short ones often save nothing
            text = run("--model", TINY, "--prompt", "one two" * words, "--max_new_tokens", "8", "--ignore_eos").stdout
            text = " ".join(text.split())
            times = re.search(r"took ([\d.]+) ms, a generated one ([\d.]+) ms", text)
            of_prompt, generated = float(times[1]), float(times[2])
            if of_prompt != generated:
                self.assertEqual("saved no time in this run" in text, of_prompt > generated, text)
                self.assertEqual("decoding once for each token" in text, of_prompt < generated, text)

    def test_numbers_out_of_range(self):
        for value in ("nan", "inf", "x"):
            self.refused(*self.arguments, "--do_sample", "--temperature", value,
                         expected=f"--temperature: expected a finite number, got '{value}'")
        for value in ("0,9", "0.9x", "0.9 0.8", "0x1p-1", ""):
            self.refused(*self.arguments, "--do_sample", "--top_p", value,
                         expected=f"--top_p: expected a finite number, got '{value}'")
        self.refused("--model", TINY, "--prompt", "abc", "--do_sample", "--temperature", "abc",  # not --prompt
                     expected="--temperature: expected a finite number, got 'abc'")
        self.refused("--model", TINY, "--prompt", "2", "--json=2", expected="--json: expected true or false, got '2'")
        self.refused(*self.arguments, "--top_k=x", expected="--top_k: expected a whole number in its range, got 'x'")
        self.refused(*self.arguments, "--do_sample", "--temperature", "1e300",
                     expected="temperature: expected 0 to 3.40282e+38, got 1e+300")
        self.refused(*self.arguments, "--repetition_penalty", "1e-300",
                     expected="repetition_penalty: expected 1.17549e-38 to 3.40282e+38, got 1e-300")
        self.refused(*self.arguments, "--prompt", "b", expected="--prompt: expected once, got it 2 times")

    def test_failure_in_the_midst_of_a_text(self):
        """What went wrong stands on a line of its own, below the text."""
        for exponent in range(370, 386):  # a penalty that the prompt's logits bear, but not all that follow
            result = subprocess.run([str(PROGRAM), *map(str, instead(self.arguments, "--max_new_tokens", "100")),
                                     "--repetition_penalty", f"{10 ** (exponent / 10):.3e}"], capture_output=True)
            if result.returncode == 1 and result.stdout:
                self.assertTrue(result.stdout.endswith(b"\n"), result.stdout)
                self.assertRegex(result.stderr, rb"^generate: repetition_penalty\([^\n]* out of float's range\n$")
                return
        self.fail("no penalty failed in the midst of a text")

    def test_what_would_have_no_effect(self):
        self.refused("--model", TINY, "--prompt", "a", "--system", "b", expected="--system: expected with --chat")
        for option in ("temperature", "top_k", "top_p", "min_p", "seed", "typical_p", "mirostat_tau"):
            self.refused("--model", TINY, f"--{option}", "1", expected=f"--{option}: expected with --do_sample")
            if option != "temperature":
                self.refused(*self.arguments, "--do_sample", "--temperature", "0", f"--{option}", "1",
                             expected=f"--{option}: expected with a --temperature above 0")
        self.refused(*self.arguments, "--do_sample", "--temperature", "0",
                     expected="--do_sample: expected with a --temperature above 0")
        self.refused(*self.arguments, "--dry_base", "2", expected="--dry_base: expected with --dry_multiplier above 0")
        for option, other in (("xtc_threshold", "xtc_probability"), ("mirostat_eta", "mirostat_tau")):
            self.refused(*self.arguments, "--do_sample", f"--{option}", "0.1", f"--{other}", "0",
                         expected=f"--{option}: expected with --{other} above 0")
        self.refused(*self.arguments, "--log_probabilities", "2", expected="--log_probabilities: expected with --json")
        self.refused(*self.arguments, "--min_new_tokens", "9",
                     expected="--min_new_tokens: expected at most --max_new_tokens, 8, got 9")

    # So many tokens that writing them would take far longer than the test may.
    endless = ("--model", TINY, "--prompt", "one", "--ignore_eos", "--max_new_tokens", "400000", "--context", "500000")

    def test_nobody_reads(self):
        # The signal of a broken pipe ends the program; where it is ignored, the failed write does.
        for restore_signals, code in ((True, -signal.SIGPIPE), (False, 1)):
            process = subprocess.Popen([str(PROGRAM), *map(str, self.endless)], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, restore_signals=restore_signals)
            self.assertEqual(len(process.stdout.read(10)), 10)
            process.stdout.close()
            self.assertEqual(process.wait(timeout=300), code)
            self.assertEqual(process.stderr.read(), b"" if code < 0 else b"generate: cannot write to standard output\n")
            process.stderr.close()

    def test_no_room_to_write(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([str(PROGRAM), *map(str, self.endless)], stdout=full, stderr=subprocess.PIPE,
                                    text=True, timeout=300)
        self.assertEqual((result.returncode, result.stderr), (1, "generate: cannot write to standard output\n"))

    def interrupted(self, *more):
        """Ctrl-C a little after the program began to listen to it, in the midst of a long prompt."""
        process = subprocess.Popen([str(PROGRAM), "--model", str(TINY), "--prompt", "one two " * 15000, "--context",
                                    "100000", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        interrupt(process)
        output, errors = process.communicate(timeout=300)
        self.assertEqual((process.returncode, errors), (0, ""))
        return output

    def test_interrupted_prefill(self):
        result = json.loads(self.interrupted("--json"))
        self.assertEqual((result["tokens"], result["finish_reason"]), ([], "cancelled"))
        text = self.interrupted()
        self.assertIn("0 out (cancelled)", text)
        self.assertNotIn(self.closing, text)  # there are no times to compare

    def test_chat_template(self):
        chatml = ("--chat_template", DATA / "templates" / "chatml.jinja")
        self.assertIn('"text"', run("--model", TINY, "--chat", "a", *chatml, "--max_new_tokens", "2", "--json").stdout)
        self.refused("--model", TINY, "--prompt", "a", *chatml, expected="--chat_template: expected with --chat")
        self.assertIn("has no chat template", run("--model", TINY, "--chat", "hello", code=1).stderr)


class Cached_vs_uncached(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--prompt_tokens", "5", "--steps", "9")
    wrong = [["--steps", "0"], ["--steps", "1"], ["--prompt_tokens", "0"]]

    def test_bit_identical(self):
        for threads in ("1", "2"):
            result = json.loads(run(*self.arguments, "--json", "--threads", threads).stdout)
            self.assertTrue(result["bit_identical"])
            self.assertEqual(result["steps_with_bit_identical_logits"], 9)
            self.assertEqual(len(result["cached_ms"]), 9)
            self.assertAlmostEqual(sum(result["uncached_ms"]), result["uncached_sum_ms"])
        self.assertIn("bit-identical", run(*self.arguments).stdout)
        self.assertIn("bit-identical", run("--model", TINY, "--prompt_tokens", "1", "--steps", "2").stdout)

    def test_first_and_last_row(self):
        for n in (2, 3, 8, 9, 10, 15, 16, 31):
            text = run("--model", TINY, "--prompt_tokens", "2", "--steps", n).stdout
            rows = [int(line.split()[0]) for line in text.splitlines() if re.match(r" *\d+ +\d+ +[\d.]+ ms", line)]
            self.assertEqual((rows[:2], rows[-1]), ([0, 1], n - 1), text)
            self.assertEqual(rows, sorted(set(rows)))
            self.assertLess(len(rows), 12)

    def test_conclusion_follows_the_numbers(self):
        for n in (2, 2, 2, 9, 60):  # the short ones often save nothing
            text = " ".join(run("--model", TINY, "--prompt_tokens", "1", "--steps", n).stdout.split())
            cached, uncached = map(float, re.search(r"sum ([\d.]+) ms ([\d.]+) ms", text).groups())
            self.assertEqual("saved no time" in text, cached >= uncached, text)
            changes = re.findall(r"(grows|falls) from ([\d.]+) to ([\d.]+) ms", text)
            for verb, first, last in changes:
                self.assertEqual(verb == "grows", float(first) < float(last), text)
            self.assertEqual(len(changes) + text.count("at the end as at first"), 2, text)


class Prefill_vs_decode(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--lengths", "1,8", "--steps", "2", "--repetitions", "1", "--buffer", "16")
    wrong = [["--lengths", "0"], ["--lengths", "8.5"], ["--steps", "0"], ["--steps", "2.5"], ["--buffer", "-1"]]

    def test_costs(self):
        rows = json.loads(run(*self.arguments, "--json").stdout)["rows"]
        self.assertEqual([row["phase"] for row in rows], ["prefill", "decode"] * 2)
        one, eight = rows[0], rows[2]
        # Matrices of 3 layers and the head, in F32; the weights are read once for all tokens of a prompt.
        layer = 64 * 64 + 2 * 32 * 64 + 64 * 64 + 3 * 64 * 96
        self.assertAlmostEqual(one["ops_per_token"], 2 * (3 * layer + 384 * 64) + 3 * 4 * 64)
        self.assertAlmostEqual(one["bytes_per_token"], 4 * (3 * layer + 384 * 64) + 3 * 2 * 32 * 2)
        self.assertAlmostEqual(eight["bytes_per_token"], (4 * (3 * layer + 384 * 64) + 8 * 3 * 2 * 32 * 2) / 8)
        for row in rows:
            self.assertGreater(row["tokens_per_second"], 0)

    def test_a_window_ends_the_reach(self):
        # Beyond its window of 8 keys a layer reads no more of them, however long the prompt: here all 3 layers.
        model = ("--model", DATA / "tiny" / "mistral_swa", "--lengths", "8,40", *self.arguments[4:])
        rows = json.loads(run(*model, "--json").stdout)["rows"]
        layer = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 96
        for row in rows[1::2]:
            self.assertAlmostEqual(row["bytes_per_token"], 4 * (3 * layer + 400 * 64) + 8 * 3 * 2 * 32 * 2)

    def test_shares_are_positive(self):
        for row in json.loads(run(*self.arguments, "--json").stdout)["rows"]:
            self.assertGreater(row["share_of_peak"], 0)

    def test_what_is_said_in_words(self):
        text = run(*self.arguments[:2], "--lengths", "8,1", *self.arguments[4:]).stdout
        self.assertIn("A prompt of 8 tokens", text)  # the longest, not the last
        for line in text.splitlines():
            if row := re.match(r"(prefill|decode) +\d+ +[\d.]+ +([\d.]+)", line):
                self.assertEqual("." in row[2], float(row[2]) < 10, line)

    def test_a_buffer_that_caches_hold(self):
        arguments = instead(self.arguments, "--buffer", "1")
        small = run(*arguments)
        says = "is smaller than four times the caches" in small.stdout
        self.assertEqual(says, json.loads(run(*arguments, "--json").stdout)["read_from_cache"])
        sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
        if max([int(size.read_text().rstrip("KM\n")) for size in sizes], default=0) > 256:  # KB
            self.assertTrue(says)


if __name__ == "__main__":
    wanted = globals()[PROGRAM.name.capitalize()]
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(wanted)
    sys.exit(not unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful())
