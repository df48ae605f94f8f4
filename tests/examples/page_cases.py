"""The promises of paged and prefix_cache, run by check_examples.py."""
import json
import pathlib
import tempfile
import unittest

from harness import TINY, Common, run


class Paged(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--prompt_tokens", "100", "--answer_tokens", "50")
    wrong = [["--answers", "1"], ["--answers", "27"], ["--prompt_tokens", "0"], ["--answer_tokens", "0"]]

    def test_whose_blocks(self):
        result = json.loads(run(*self.arguments, "--json").stdout)
        moments = result["moments"]
        self.assertEqual([moments[0]["blocks"][:2], moments[1]["blocks"][:2]], ["AA", "**"])
        self.assertEqual([moments[1]["used"], moments[1]["shared"], moments[1]["copied"]], [2, 2, 0])
        # 150 tokens each: the first block is everybody's, the second was copied twice, the third is each one's own.
        self.assertEqual([moments[-2]["used"], moments[-2]["shared"], moments[-2]["copied"]], [7, 1, 2])
        self.assertEqual([moments[-1]["used"], moments[-1]["shared"]], [3, 0])
        for moment in moments:
            self.assertEqual(moment["used"], len(moment["blocks"].replace(".", "")))
        self.assertEqual(result["paged_bytes"], 7 * result["block_bytes"])
        self.assertEqual(result["contiguous_bytes"], 3 * 4 * result["block_bytes"])  # contexts of 256 tokens

    def test_a_prompt_of_whole_blocks_is_never_copied(self):
        result = json.loads(run("--model", TINY, "--prompt_tokens", "128", "--answer_tokens", "9", "--json").stdout)
        self.assertEqual(result["moments"][-1]["copied"], 0)

    def test_too_long(self):
        result = run("--model", TINY, "--prompt_tokens", "250", code=1)
        self.assertIn("--context", result.stderr)


class Prefix_cache(Common, unittest.TestCase):
    arguments = ("--model", TINY, "--common_tokens", "200", "--own_tokens", "5", "--requests", "3")
    wrong = [["--common_tokens", "0"], ["--own_tokens", "0"], ["--requests", "1"], ["--folder", ""]]

    def test_hits(self):
        result = json.loads(run(*self.arguments, "--json").stdout)
        self.assertEqual([r["cached_tokens"] for r in result["requests"]], [0, 192, 192])
        self.assertTrue(all(r["bit_identical"] for r in result["requests"]))
        self.assertEqual([result["hits"], result["blocks"]], [2, 3])

    def test_a_folder_serves_the_next_run(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = (json.loads(run(*self.arguments, "--folder", folder, "--json").stdout) for _ in range(2))
        self.assertEqual([first["files_written"], first["files_read"]], [3, 0])
        self.assertEqual([second["files_written"], second["files_read"]], [0, 3])
        self.assertEqual([r["cached_tokens"] for r in second["requests"]], [192, 192, 192])

    def test_damaged_files_are_told_and_replaced(self):
        with tempfile.TemporaryDirectory() as folder:
            run(*self.arguments, "--folder", folder)
            for file in pathlib.Path(folder).iterdir():
                file.write_bytes(b"damaged")
            second, third = (run(*self.arguments, "--folder", folder, "--json") for _ in range(2))
        self.assertIn("3 files refused, 0 not written; the last: " + folder, second.stderr)
        self.assertEqual([json.loads(second.stdout)[key] for key in ("files_refused", "files_written")], [3, 3])
        self.assertEqual([third.stderr, json.loads(third.stdout)["files_read"]], ["", 3])
