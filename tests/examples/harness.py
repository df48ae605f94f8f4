"""What the checks of all example programs share: how a program is run, and what every program promises."""
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

PROGRAM, DATA = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
TINY = DATA / "tiny" / "llama_gqa" / "model-f32.gguf"
SAID = {"chat": "Hello\n/stats\n/quit\n"}.get(PROGRAM.name, "")  # on standard input, where a test has nothing else


def run(*arguments, environment=None, code=0, said=SAID):
    result = subprocess.run([str(PROGRAM), *map(str, arguments)], capture_output=True, text=True, encoding="utf-8",
                            input=said, env={**os.environ, **(environment or {})}, timeout=300)
    assert result.returncode == code, f"{arguments}: exit code {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result


def instead(arguments, *others):
    """The arguments, with others in place of those of the same options: none may be given twice."""
    kept, rest = [], list(arguments)
    while rest:
        option = [rest.pop(0)]
        if rest and not str(rest[0]).startswith("--"):
            option.append(rest.pop(0))
        if option[0] not in others:
            kept += option
    return [*kept, *others]


def run_on_terminal(*arguments, environment=None, said=SAID):
    """The program's output on a pseudo-terminal."""
    main, side = pty.openpty()
    process = subprocess.Popen([str(PROGRAM), *map(str, arguments)], stdin=side, stdout=side, stderr=side,
                               env={**os.environ, "TERM": "xterm", **(environment or {})}, close_fds=True)
    os.close(side)
    os.write(main, said.encode())
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


def interrupt(process):
    """Ctrl-C, a little after the program began to listen to it."""
    status = Path(f"/proc/{process.pid}/status")
    while not int(re.search(r"SigCgt:\s*(\w+)", status.read_text())[1], 16) >> (signal.SIGINT - 1) & 1:
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)


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
        self.assertNotRegex(text, r"--\w+-\w")  # named as in Hugging Face's generate(): with underscores
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
                      ["--threads", "9" * 30], ["--threads", "2.5"], ["--threads=x"], ["--model"], *self.wrong):
            arguments = instead(self.arguments, *wrong) if wrong != ["--model"] else wrong
            result = run(*arguments, code=2)
            self.assertEqual(result.stdout, "", wrong)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertTrue(result.stderr.startswith(PROGRAM.name + ": "), result.stderr)
            if len(wrong) > 1:
                self.assertIn(wrong[0].strip("-s"), result.stderr)
            if wrong[0].startswith("--threads"):
                self.assertRegex(result.stderr, r"--threads: expected .*, got ", wrong)

    def test_options_given_twice(self):
        for options in (("--threads", "1"), ("--json",)):
            self.refused(*self.arguments, *options, *options, expected=f"{options[0]}: expected once, got it 2 times")

    def test_no_name_of_a_model(self):
        if self.uses_model:
            self.refused("--model", "", expected="--model: expected a file or a folder, got an empty name")

    def test_numbers_of_the_wrong_kind(self):
        """The message names what the option takes, whatever was given instead."""
        for value in ("nan", "two", "2.5", "9" * 30):
            self.refused(*self.arguments, "--threads", value,
                         expected=f"--threads: expected a whole number in its range, got '{value}'")
        self.refused(*self.arguments, "--json=7", expected="--json: expected true or false, got '7'")

    def refused(self, *arguments, expected):
        """A request that makes no sense: nothing is done, and the message says what was expected."""
        result = run(*arguments, code=2)
        self.assertEqual((result.stdout, len(result.stderr.splitlines())), ("", 1))
        self.assertIn(expected, result.stderr)

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
        for arguments in (["--help"], self.arguments, [*self.arguments, "--json"]):
            with open("/dev/full", "w") as full:
                result = subprocess.run([str(PROGRAM), *map(str, arguments)], input=SAID, stdout=full,
                                        stderr=subprocess.PIPE, text=True, timeout=300)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertEqual(result.stderr, f"{PROGRAM.name}: cannot write to standard output\n", arguments)

    def test_terminal(self):
        self.assertIn("\x1b[", run_on_terminal(*self.arguments, environment={"NO_COLOR": ""}))
        plain = run_on_terminal(*self.arguments, environment={"NO_COLOR": "1"})
        self.assertNotRegex(plain, r"\x1b\[\d*m")
