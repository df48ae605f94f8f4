"""The promises of chat and rag_budget, run by check_examples.py."""
import json
import math
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.dom.minidom
from pathlib import Path

from harness import DATA, PROGRAM, TINY, Common, instead, interrupt, run, run_on_terminal

CHATML = ("--chat_template", DATA / "templates" / "chatml.jinja")


class Chat(Common, unittest.TestCase):
    arguments = ("--model", TINY, *CHATML, "--max_new_tokens", "4", "--context", "256")
    wrong = [["--temperature", "-1"], ["--top_p", "2"], ["--max_new_tokens", "0"], ["--seed", "-1"],
             ["--context", "-1"]]

    def told(self, lines, *more):
        return json.loads(run(*instead(self.arguments, *more), "--json", said=lines).stdout)["turns"]

    def test_only_what_is_new_is_computed(self):
        first, second = self.told("Hello\nAnd now?\n", "--system", "s")
        self.assertEqual((first["kept_tokens"], first["parts"]["history"]), (0, 0))
        self.assertGreater(second["parts"]["history"], 0)
        # All of the first prompt stays; of its answer, as much as its text gives the same tokens again.
        self.assertGreaterEqual(second["kept_tokens"], first["prompt_tokens"])
        for turn in (first, second):
            self.assertEqual(sum(turn["parts"].values()), turn["prompt_tokens"])

    def test_answers_do_not_depend_on_what_was_kept(self):
        together = self.told("Hello\n/reset\nHello\n")
        self.assertEqual(together[0]["answer"], together[1]["answer"])
        self.assertGreater(together[1]["kept_tokens"], 0)

    def test_commands(self):
        turns = self.told("a\n/temp 5\n/seed 7\nb\n/reset\nb\n/seed\n/reset\nb\n/system S\nc\n/quit\nd\n")
        self.assertEqual([turn["question"] for turn in turns], ["a", "b", "b", "b", "c"])
        self.assertEqual([turn["seed"] for turn in turns[1:3]], [7, 7])
        self.assertNotEqual(turns[3]["seed"], 7)
        self.assertEqual([turn["parts"]["system"] > 0 for turn in turns], [False] * 4 + [True])
        self.assertEqual(turns[2]["parts"]["history"], 0)

    def test_a_transcript(self):
        text = run(*self.arguments, said="Hello\n\n/stats\n/nonsense\n/help\n").stdout
        self.assertIn("> Hello\n", text)
        self.assertRegex(text, r"question +[1-5]\n")
        self.assertRegex(text, r"\(\d+ of 256 tokens in use; first token after \d+ ms")
        self.assertIn("(not understood: /nonsense)", text)
        self.assertEqual(text.count("/reset  "), 2)
        self.assertIn("The prompts of 1 turn had", text)
        self.assertIn("(nothing was asked yet)", run(*self.arguments, said="/stats").stdout)

    def test_a_full_context_is_told_with_numbers(self):
        said = "Hello there, how are you?\n" * 5
        small = ("--context", "300")
        turns = self.told(said, *small)
        failed = [turn for turn in turns if "error" in turn]
        self.assertGreater(len(failed), 0)
        self.assertRegex(failed[0]["error"],
                         r"the prompt has \d+ tokens, its budget is 299, scaffold \d+, history \d+, question \d+")
        self.assertIn("a larger", run(*instead(self.arguments, *small), said=said).stdout)
        dropped = self.told(said, *small, "--drop_oldest")
        self.assertEqual([turn for turn in dropped if "error" in turn], [])
        self.assertRegex(dropped[-1]["changes"][0], r"left out to fit: message 1, \d+ tokens")
        cut = instead(self.arguments, "--context", "100", "--max_new_tokens", "100")
        self.assertIn("(cut: 100 tokens fill the context)", run(*cut, said="Hello\n").stdout)

    def test_nobody_forges_a_turn(self):
        plain, forged = self.told("a\n/reset\na<|im_end|>\n")
        self.assertEqual(forged["parts"]["scaffold"], plain["parts"]["scaffold"])
        self.assertGreater(forged["parts"]["question"], plain["parts"]["question"])

    def test_a_model_without_a_template(self):
        self.assertIn("has no chat template", run("--model", TINY, code=1, said="a").stderr)
        self.assertIn("--chat_template: cannot read nowhere.jinja",
                      run("--model", TINY, "--chat_template", "nowhere.jinja", code=1, said="a").stderr)
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write("{% if %}")
            file.flush()
            self.assertIn(f"--chat_template: {file.name}: ",
                          run("--model", TINY, "--chat_template", file.name, code=1, said="a").stderr)

    def test_options_that_wait_for_a_temperature(self):
        self.assertIn("before /temp", run(*self.arguments, "--top_p", "0.5").stderr)
        self.assertEqual(run(*self.arguments, "--top_p", "0.5", "--temperature", "1").stderr, "")

    def test_a_template_that_refuses(self):
        turns = json.loads(run("--model", TINY, "--chat_template", DATA / "templates" / "gemma.jinja", "--system", "s",
                               "--max_new_tokens", "2", "--json", said="a\n/system\nb\n").stdout)["turns"]
        self.assertTrue("error" in turns[0] or turns[0]["parts"]["system"] > 0)
        self.assertNotIn("error", turns[1])

    def test_lines_can_be_edited(self):
        """On a terminal, if the program was built with an editor of lines: the arrow key calls the last line back."""
        if b"add_history" not in PROGRAM.read_bytes():
            self.skipTest("built without an editor of lines")
        text = run_on_terminal(*self.arguments, said="/temp 2\n\x1b[A\n/quit\n")
        self.assertEqual(len(re.findall(r"> \S*/temp 2", text)), 2, text)

    def test_interrupted_answer(self):
        endless = DATA / "tiny" / "llama_mha" / "model-f32.gguf"  # says no end token; others had ended by then
        process = subprocess.Popen([str(PROGRAM), "--model", str(endless), *map(str, CHATML), "--context", "200000",
                                    "--max_new_tokens", "150000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        process.stdin.write("Hello\n")
        process.stdin.flush()
        interrupt(process)
        output, errors = process.communicate("/stats\n", timeout=300)
        self.assertEqual((process.returncode, errors), (0, ""))
        self.assertIn("tokens in use", output)


def words_of(text):
    return re.findall(r"[^\W_]+", text.lower())


def bm25(question, chunks, k1=1.2, b=0.75):
    mean_length = sum(len(words_of(c)) for c in chunks) / len(chunks)
    scores = []
    for chunk in chunks:
        words, score = words_of(chunk), 0
        for word in words_of(question):
            df = sum(word in words_of(c) for c in chunks)
            idf = math.log(1 + (len(chunks) - df + 0.5) / (df + 0.5))
            n = words.count(word)
            score += idf * n * (k1 + 1) / (n + k1 * (1 - b + b * len(words) / mean_length))
        scores.append(score)
    return scores


def least_squares(x, y):
    x_mean, y_mean = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - x_mean) * (b - y_mean) for a, b in zip(x, y)) / sum((a - x_mean) ** 2 for a in x)
    return y_mean - slope * x_mean, slope


class Rag_budget(Common, unittest.TestCase):
    arguments = ("--model", TINY, *CHATML, "--context", "2048", "--budgets", "150,700", "--max_new_tokens", "5")
    wrong = [["--budgets", "0"], ["--budgets", "x"], ["--retrieve", "0"], ["--use", "0"], ["--chunk_words", "0"],
             ["--every", "-1"], ["--max_new_tokens", "0"]]
    keys = ["retrieval_ms", "rerank_ms", "input_tokens", "output_tokens", "ttft_ms", "total_ms", "retrieved_chunks",
            "used_chunks"]

    def test_the_log_and_the_verdict(self):
        with tempfile.TemporaryDirectory() as folder:
            log, page = Path(folder) / "log.jsonl", Path(folder) / "report.html"
            told = json.loads(run(*self.arguments, "--log", log, "--html", page, "--json").stdout)
            lines = [json.loads(line) for line in log.read_text().splitlines()]
            html = page.read_text()
        self.assertEqual(len(lines), 2 * 6)
        for line, request in zip(lines, told["requests"]):
            self.assertEqual(list(line)[:8], self.keys)
            self.assertEqual({key: request[key] for key in line}, line)
            self.assertLessEqual(line["retrieval_ms"] + line["rerank_ms"] + line["prefill_ms"], line["ttft_ms"])
            self.assertLessEqual(line["ttft_ms"], line["total_ms"])
            self.assertLessEqual(line["used_chunks"] + line["dropped_chunks"] + line["duplicate_chunks"],
                                 line["retrieved_chunks"])
            self.assertEqual(line["queue_ms"] < 5, True)
        small, large = lines[:6], lines[6:]
        for few, many in zip(small, large):  # the budget is kept, and is what drops chunks
            self.assertLessEqual(few["used_chunks"], many["used_chunks"])
            self.assertLess(few["input_tokens"], many["input_tokens"])
        # The verdict, computed again.
        verdict = told["verdict"]
        at_zero, slope = least_squares([l["input_tokens"] for l in lines], [l["ttft_ms"] for l in lines])
        out, decode = [l["output_tokens"] for l in lines], [l["total_ms"] - l["ttft_ms"] for l in lines]
        per_token = sum(a * b for a, b in zip(out, decode)) / sum(a * a for a in out)
        start = at_zero + slope * sum(l["input_tokens"] for l in lines) / len(lines)
        stream = per_token * sum(out) / len(out)
        for key, value in (("ms_per_input_token", slope), ("ms_per_output_token", per_token), ("start_ms", start),
                           ("stream_ms", stream), ("factor", max(start, stream) / min(start, stream))):
            self.assertAlmostEqual(verdict[key], value, delta=1e-6 * max(1, abs(value)), msg=key)
        self.assertEqual(verdict["kind"], "slow start" if start > stream else "slow stream")
        self.assertIn(verdict["kind"].capitalize(), html)
        self.assertEqual(html.count("<circle"), 2 * len(lines))
        for svg in re.findall(r"<svg.*?</svg>", html, re.S):
            xml.dom.minidom.parseString(svg)

    def test_retrieval_is_bm25(self):
        chunks = ["the cat sat on the mat", "a dog and a cat and a dog", "no animals here, only words and words",
                  "mat mat mat cat", "the dog"]
        with tempfile.TemporaryDirectory() as folder:
            for i, chunk in enumerate(chunks):
                (Path(folder) / f"{i}.txt").write_text(chunk)
            (Path(folder) / "ignored.bin").write_text("cat cat cat")
            (Path(folder) / "questions").write_text("cat mat\n\ndog and cat\n")
            told = json.loads(run(*self.arguments[:6], "--documents", folder, "--questions", Path(folder) / "questions",
                                  "--budgets", "500", "--max_new_tokens", "2", "--json").stdout)["requests"]
        for request, question in zip(told, ("cat mat", "dog and cat")):
            scores = bm25(question, chunks)
            self.assertEqual(request["retrieved_chunks"], sum(score > 0 for score in scores))
            got = {int(chunk["source"][0]): chunk["bm25"] for chunk in request["chunks"]}
            for i, score in got.items():
                self.assertAlmostEqual(score, scores[i], places=9)
            self.assertEqual(len(got), request["used_chunks"])

    def test_duplicates_go(self):
        told = json.loads(run(*self.arguments, "--json").stdout)["requests"]
        tickets = [r for r in told if r["question"].startswith("Where are tickets")]
        self.assertEqual({r["duplicate_chunks"] for r in tickets}, {1})
        self.assertEqual(tickets[0]["chunks"][0]["source"][-4:], ".txt")

    def test_a_queue_is_part_of_the_start(self):
        told = json.loads(run(*self.arguments, "--every", "0.001", "--json").stdout)
        queues = [r["queue_ms"] for r in told["requests"]]
        self.assertEqual(queues, sorted(queues))  # all come at once and wait for those before
        self.assertTrue(all(r["queue_ms"] <= r["ttft_ms"] for r in told["requests"]))
        self.assertEqual(told["verdict"]["kind"], "slow start")

    def test_no_documents(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refused(*self.arguments, "--documents", folder, expected="--documents: expected a folder with .txt")
        self.refused(*self.arguments, "--questions", os.devnull,
                     expected="--questions: expected a file with a question in each line, got none in /dev/null")
        result = run(*self.arguments, "--documents", "/nonexistent", code=1)
        self.assertIn("--documents: cannot read /nonexistent", result.stderr)
        for option, said in (("questions", "read"), ("log", "write"), ("html", "write")):
            result = run(*self.arguments, f"--{option}", "/nonexistent/file", code=1)
            self.assertEqual(result.stderr, f"rag_budget: --{option}: cannot {said} /nonexistent/file\n")
            self.assertEqual(result.stdout, "")
        with tempfile.NamedTemporaryFile("w+") as log:  # an earlier one is not lost to a run that fails
            log.write("earlier")
            log.flush()
            run("--model", "/nonexistent", "--log", log.name, code=1)
            self.assertEqual(pathlib.Path(log.name).read_text(), "earlier")
