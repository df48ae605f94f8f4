#!/usr/bin/env python3
"""Runs one example program as people do, and checks what it says.

    check_examples.py PROGRAM TEST_DATA [CASE...]

What holds for all: --help, one line and exit code 2 for what makes no sense, exit code 1 when there is no model, 80
columns and no escape codes without a terminal, colours on one, none with NO_COLOR. The class named after the program
adds what it alone promises.
"""
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata
import unittest
from pathlib import Path

PROGRAM, DATA = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
TINY = DATA / "tiny" / "llama_gqa" / "model-f32.gguf"


def run(*arguments, environment=None, code=0):
    result = subprocess.run([str(PROGRAM), *map(str, arguments)], capture_output=True, text=True, encoding="utf-8",
                            env={**os.environ, **(environment or {})}, timeout=300)
    assert result.returncode == code, f"{arguments}: exit code {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result


def run_on_terminal(*arguments, environment=None):
    """The program's output on a pseudo-terminal."""
    main, side = pty.openpty()
    process = subprocess.Popen([str(PROGRAM), *map(str, arguments)], stdin=side, stdout=side, stderr=side,
                               env={**os.environ, "TERM": "xterm", **(environment or {})}, close_fds=True)
    os.close(side)
    output = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:
            break
        if not part:
            break
        output += part
    os.close(main)
    assert process.wait() == 0, output
    return output.decode("utf-8")


def width(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


class Common:
    arguments = ("--model", TINY)
    uses_model = True
    closing = "What to notice"

    def test_help(self):
        text = run("--help").stdout
        for option in ("--model", "--threads", "--json", "--help"):
            self.assertIn(option, text)
        for line in text.splitlines():
            self.assertLessEqual(width(line), 80, line)

    def test_text(self):
        result = run(*self.arguments)
        if self.closing:
            self.assertIn(self.closing, result.stdout)
        self.assertNotIn("\x1b", result.stdout)
        self.assertEqual(result.stderr, "")
        for line in result.stdout.splitlines():
            self.assertLessEqual(width(line), 80, line)

    def test_json(self):
        result = run(*self.arguments, "--json")
        json.loads(result.stdout)
        self.assertEqual(result.stderr, "")

    def test_errors_are_one_line(self):
        for wrong in (["--no_such_option"], ["stray"], ["--threads", "-1"], ["--threads", "two"],
                      ["--threads", "9" * 30], ["--model"], *self.wrong):
            arguments = [*self.arguments, *wrong] if wrong != ["--model"] else wrong
            result = run(*arguments, code=2)
            self.assertEqual(result.stdout, "", wrong)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertTrue(result.stderr.startswith(PROGRAM.name + ": "), result.stderr)
            if len(wrong) > 1:
                self.assertIn(wrong[0].strip("-s"), result.stderr)

    def test_missing_model(self):
        if not self.uses_model:
            return
        result = run("--model", "no_such_file.gguf", code=1)
        self.assertIn("no_such_file.gguf", result.stderr)
        nowhere = {"VITRINE_MODELS": "", "XDG_CACHE_HOME": "/nonexistent", "HOME": "/nonexistent"}
        result = run(code=1, environment=nowhere)
        self.assertIn("quickstart.sh", result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_full_disk(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([str(PROGRAM), *map(str, self.arguments), "--json"], stdout=full,
                                    stderr=subprocess.PIPE, text=True, timeout=300)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write", result.stderr)

    def test_terminal(self):
        self.assertIn("\x1b[", run_on_terminal(*self.arguments, environment={"NO_COLOR": ""}))
        plain = run_on_terminal(*self.arguments, environment={"NO_COLOR": "1"})
        self.assertNotRegex(plain, r"\x1b\[\d*m")


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


    def test_real_logits(self):
        result = json.loads(run("--prompt", "the ", "--model", TINY, "--json", "--show", "3").stdout)
        row = result["temperatures"][1]
        self.assertEqual(len(row["all"]["candidates"]), 3)
        self.assertEqual(row["all"]["n_kept"], 384)
        self.assertIn("no_such_file.gguf", run("--prompt", "a", "--model", "no_such_file.gguf", code=1).stderr)


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
        self.assertNotEqual(fresh["tokens"], drawn["tokens"])
        again = self.result("--do_sample", "--temperature", "5", "--top_k", "0", "--seed", str(fresh["seed"]))
        self.assertEqual(fresh["tokens"], again["tokens"])

    def test_timings(self):
        result = self.result()
        self.assertEqual(len(result["inter_token_seconds"]), 7)
        self.assertGreater(result["ttft_seconds"], 0)
        self.assertGreaterEqual(result["ttft_seconds"], result["prefill_seconds"])

    def test_too_long_a_prompt(self):
        result = run("--model", TINY, "--prompt", "one two three four", "--context", "2", code=1)
        self.assertEqual(len(result.stderr.splitlines()), 1)

    def interrupted(self, *more):
        """Ctrl-C a little after the program began to listen to it, in the midst of a long prompt."""
        process = subprocess.Popen([str(PROGRAM), "--model", str(TINY), "--prompt", "one two " * 15000, "--context",
                                    "100000", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        status = Path(f"/proc/{process.pid}/status")
        while not int(re.search(r"SigCgt:\s*(\w+)", status.read_text())[1], 16) >> (signal.SIGINT - 1) & 1:
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=300)
        self.assertEqual((process.returncode, errors), (0, ""))
        return output

    def test_interrupted_prefill(self):
        result = json.loads(self.interrupted("--json"))
        self.assertEqual((result["tokens"], result["finish_reason"]), ([], "cancelled"))
        text = self.interrupted()
        self.assertIn("0 out (cancelled)", text)
        self.assertNotIn(self.closing, text)  # there are no times to compare

    def test_no_chat_tokens(self):
        self.assertIn("<|im_start|>", run("--model", TINY, "--chat", "hello", code=1).stderr)


class Cached_vs_uncached(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--prompt_tokens", "5", "--steps", "9")
    wrong = [["--steps", "0"], ["--prompt_tokens", "0"]]

    def test_bit_identical(self):
        for threads in ("1", "2"):
            result = json.loads(run(*self.arguments, "--json", "--threads", threads).stdout)
            self.assertTrue(result["bit_identical"])
            self.assertEqual(result["steps_with_bit_identical_logits"], 9)
            self.assertEqual(len(result["cached_ms"]), 9)
            self.assertAlmostEqual(sum(result["uncached_ms"]), result["uncached_sum_ms"])
        self.assertIn("bit-identical", run(*self.arguments).stdout)
        self.assertIn("bit-identical", run("--model", TINY, "--prompt_tokens", "1", "--steps", "1").stdout)


class Prefill_vs_decode(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--lengths", "1,8", "--steps", "2", "--repetitions", "1", "--buffer", "16")
    wrong = [["--lengths", "0"], ["--steps", "0"]]

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
            self.assertGreater(row["share_of_peak"], 0)


class Vitrine_bench(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--pp", "8", "--tg", "4", "--depth", "0,8", "--repetitions", "2", "--buffer", "16")
    wrong = [["--pp", "x"], ["--repetitions", "0"], ["--buffer", "0"]]
    closing = None

    def test_tests(self):
        result = json.loads(run(*self.arguments, "--json").stdout)
        self.assertEqual([test["test"] for test in result["tests"]], ["pp8", "tg4", "pp8 @ d8", "tg4 @ d8"])
        for test in result["tests"]:
            self.assertEqual(len(test["seconds"]), 2)

    def test_the_loops_really_run(self):
        # A deleted loop would issue any number of instructions per cycle; a busy machine only fewer.
        machine = json.loads(run("--machine_only", "--buffer", "64", "--json").stdout)["machine"]
        self.assertEqual(len(machine["readers"]), 3)
        self.assertTrue(0.5e9 < machine["clock_hz"] < 10e9, machine["clock_hz"])
        for isa in machine["isas"]:
            for kind in ("integer", "float"):
                self.assertTrue(0.3 < isa[kind]["per_clock"] < 5, isa)


class Kv_memory(Common, unittest.TestCase):
    wrong = [["--length", "0"], ["--length", "x"], ["--batch", "-1"], ["--shape", "1,2"], ["--shape", "0,1,1,1"],
             ["--parameters", "-7"]]

    def test_seven_billion(self):
        result = json.loads(run("--shape", "32,32,32,128", "--parameters", "7e9", "--length", "4096", "--json").stdout)
        weights = result["weights"][-1]
        self.assertEqual([weights[name] / 1e9 for name in ("FP32", "FP16", "INT8", "INT4")], [28, 14, 7, 3.5])
        self.assertEqual(result["f16_bytes_per_token"], 524288)
        by_type = {row["type"]: row["bytes"] for row in result["kv"] if row["batch"] == 1}
        self.assertEqual(by_type, {"F32": 2**32, "F16": 2**31, "BF16": 2**31, "INT8": 2**30, "INT4": 2**29})
        text = run("--shape", "32,32,8,128", "--parameters", "7e9").stdout
        self.assertRegex(text, r"7,000,000,000 +28.0 GB +14.0 GB +7.00 GB +3.50 GB")
        for name in ("MHA", "GQA", "MQA"):
            self.assertIn(name, text)

    def test_header_of_a_model(self):
        # 3 layers, 2 kv heads of 16 values
        result = json.loads(run("--model", TINY, "--length", "100", "--batch", "3", "--json").stdout)
        self.assertEqual(result["f16_bytes_per_token"], 2 * 3 * 2 * 16 * 2)
        self.assertEqual([row["bytes"] for row in result["kv"] if row["type"] == "F32"], [3 * 100 * 2 * 3 * 2 * 16 * 4])
        self.assertEqual(result["weight_bytes"], 4 * result["n_parameters"])

    def test_windows_end_the_growth(self):
        model = DATA / "tiny" / "gemma3" / "model-f32.gguf"  # 7 layers, one of them global; window 8
        result = json.loads(run("--model", model, "--length", "4,100", "--batch", "1", "--json").stdout)
        f16 = [row["bytes"] for row in result["kv"] if row["type"] == "F16"]
        per_layer = result["f16_bytes_per_token"] / 7
        self.assertEqual(f16, [4 * 7 * per_layer, (100 + 6 * 8) * per_layer])

    def header(self, folder, **values):
        """A GGUF file of metadata alone, of an architecture that nobody has: integers, lists of them, truth values."""
        text = lambda s: struct.pack("<Q", len(s)) + s.encode()
        pairs = [("general.architecture", 8, text("cathedral"))]
        for name, value in values.items():
            key = "cathedral." + name.replace("__", ".")
            if isinstance(value, list):
                kind, code = (7, "?") if isinstance(value[0], bool) else (5, "i")
                pairs.append((key, 9, struct.pack(f"<IQ{len(value)}{code}", kind, len(value), *value)))
            else:
                pairs.append((key, 4, struct.pack("<I", value)))
        path = Path(folder) / "cathedral.gguf"
        path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) +
                         b"".join(text(key) + struct.pack("<I", kind) + data for key, kind, data in pairs))
        return path

    def f16_bytes(self, *lengths, **values):
        with tempfile.TemporaryDirectory() as folder:
            path = self.header(folder, **values)
            arguments = ("--model", path, "--length", ",".join(map(str, lengths)), "--batch", "1")
            text = run(*arguments).stdout
            self.assertEqual("does not say which layers" in text,
                             "attention__sliding_window" in values and
                             "attention__sliding_window_pattern" not in values)
            return [row["bytes"] for row in json.loads(run(*arguments, "--json").stdout)["kv"] if row["type"] == "F16"]

    def test_any_architecture(self):
        plain = {"block_count": 4, "embedding_length": 96, "attention__head_count": 6}
        self.assertEqual(self.f16_bytes(10, **plain), [2 * 4 * 6 * 16 * 2 * 10])
        self.assertEqual(self.f16_bytes(10, **plain, attention__head_count_kv=2), [2 * 4 * 2 * 16 * 2 * 10])
        uneven = {**plain, "attention__head_count": [6, 6, 3, 6], "attention__head_count_kv": [2, 0, 1, 6]}
        self.assertEqual(self.f16_bytes(10, **uneven), [2 * 9 * 16 * 2 * 10])
        self.assertEqual(self.f16_bytes(10, **uneven, attention__key_length=24, attention__value_length=8),
                         [9 * (24 + 8) * 2 * 10])
        window = {**uneven, "attention__sliding_window": 8}
        one = 2 * 16 * 2
        self.assertEqual(self.f16_bytes(4, 100, **window), [one * 9 * 4, one * 9 * 8])
        self.assertEqual(self.f16_bytes(100, **window, attention__sliding_window_pattern=[True, True, True, False]),
                         [one * (3 * 8 + 6 * 100)])
        self.assertEqual(self.f16_bytes(100, **window, attention__sliding_window_pattern=3), [one * (8 * 8 + 100)])

    def test_headers_that_say_too_little(self):
        good = {"block_count": 2, "embedding_length": 96, "attention__head_count": 6}
        for wrong in ("block_count", "embedding_length", "attention__head_count"):
            with tempfile.TemporaryDirectory() as folder:
                for values in ({key: good[key] for key in good if key != wrong}, {**good, wrong: 0},
                               {**good, wrong: [6, 6, 6]}, {**good, wrong: [0, 0]}):
                    result = run("--model", self.header(folder, **values), code=1)
                    self.assertEqual((result.stdout, len(result.stderr.splitlines())), ("", 1), result.stderr)
                    self.assertIn("cathedral.gguf", result.stderr)

    def test_weights_are_not_needed(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(DATA / "tiny" / "qwen3" / "config.json", folder)
            self.assertEqual(json.loads(run("--model", folder, "--json").stdout)["head_dim"], 32)


if __name__ == "__main__":
    wanted = globals()[PROGRAM.name.capitalize()]
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(wanted)
    sys.exit(not unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful())
