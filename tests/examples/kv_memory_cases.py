"""The promises of kv_memory, run by check_examples.py."""
import json
import math
import shutil
import struct
import tempfile
import unittest
from pathlib import Path

from harness import DATA, TINY, Common, run


class Kv_memory(Common, unittest.TestCase):
    wrong = [["--length", "0"], ["--length", "x"], ["--batch", "-1"], ["--shape", "1,2"], ["--shape", "0,1,1,1"],
             ["--parameters", "-7"], ["--parameters", "7.5"], ["--parameters", "7,8"], ["--length", "8.5"],
             ["--batch", "1.5"], ["--window", "8"]]

    def test_shapes_that_make_no_sense(self):
        self.refused("--shape", "32,32,8.5,128", expected="--shape: expected whole numbers from 1 to 1000000, got 8.5")
        self.refused("--shape", "9,32,5,128", expected="expected n_head as a multiple of n_kv_head, got 32 and 5")
        self.refused("--shape", "1,1,1", expected="--shape: expected n_layer,n_head,n_kv_head,head_dim, got '1,1,1'")
        self.refused("--shape", "1,1,1,1", "--window", "8.5", expected="--window: expected whole numbers from 0")
        self.refused("--shape", "1,1,1,1", "--model", TINY, expected="--shape and --model: expected one of them")
        self.refused("--window", "8", "--model", TINY, expected="--window: expected with --shape")
        for option, value in (("--threads", "2"), ("--image_folder", "x")):
            said = run("--model", TINY, option, value).stderr
            self.assertEqual(said, f"kv_memory: {option} had no effect\n")

    def test_whole_numbers_are_integers(self):
        def floats(value):
            if isinstance(value, (dict, list)):
                return [f for part in (value.values() if isinstance(value, dict) else value) for f in floats(part)]
            return [value] if isinstance(value, float) else []
        for arguments in (("--model", TINY), ("--shape", "32,32,8,128", "--window", "4096", "--parameters", "7e9")):
            self.assertEqual(floats(json.loads(run(*arguments, "--json").stdout)), [])

    def test_the_longest_of_unsorted_lengths(self):
        sharing = [json.loads(run("--shape", "2,4,2,16", "--length", lengths, "--json").stdout)["sharing"]
                   for lengths in ("4096,512", "512,4096", "4096,7,512")]
        self.assertEqual(sharing[0][0]["bytes"], 2 * 2 * 4 * 16 * 2 * 4096)
        self.assertEqual(sharing, [sharing[0]] * 3)

    def test_weights_of_a_folder(self):
        for name in ("llama_gqa", "qwen2_sharded_f16"):
            folder = DATA / "tiny" / name
            n_bytes = n_parameters = 0
            for part in folder.glob("*.safetensors"):
                header = json.loads(part.read_bytes()[8:8 + struct.unpack("<Q", part.read_bytes()[:8])[0]])
                header.pop("__metadata__", None)
                n_bytes += sum(tensor["data_offsets"][1] - tensor["data_offsets"][0] for tensor in header.values())
                n_parameters += sum(math.prod(tensor["shape"]) for tensor in header.values())
            result = json.loads(run("--model", folder, "--json").stdout)
            self.assertEqual((result["weight_bytes"], result["n_parameters"]), (n_bytes, n_parameters))
            self.assertEqual(result["weights"][0]["FP32"], 4 * n_parameters)
            kilobytes = f"{n_bytes / 1000:.0f} kB"
            self.assertIn(f"outgrows the weights ({kilobytes})", run("--model", folder).stdout)

    def test_seven_billion(self):
        result = json.loads(run("--shape", "32,32,32,128", "--parameters", "7e9", "--length", "4096", "--json").stdout)
        weights = result["weights"][-1]
        self.assertEqual([weights[name] / 1e9 for name in ("FP32", "FP16", "INT8", "INT4")], [28, 14, 7, 3.5])
        self.assertEqual(result["f16_bytes_per_token"], 524288)
        by_type = {row["type"]: row["bytes"] for row in result["kv"] if row["batch"] == 1}
        self.assertEqual(by_type, {"F32": 2**32, "F16": 2**31, "BF16": 2**31, "INT8": 2**30 + 2**24,
                                   "INT8/INT4": (2**30 + 2**24 + 2**29 + 2**26) / 2, "INT4": 2**29 + 2**26})
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
        result = json.loads(run("--model", model, "--length", "4,1000,8192", "--batch", "1", "--json").stdout)
        per_layer = result["f16_bytes_per_token"] / 7
        self.assertEqual(self.f16(result), [4 * 7 * per_layer, 1000 * 7 * per_layer, 8192 * 7 * per_layer])
        # As RingCache has it: blocks that the window and a chunk of 256 can touch, of 64 tokens each.
        kept = 64 * (math.ceil((8 - 1 + 256) / 64) + 1)
        self.assertEqual(self.f16(result, "ring_bytes"),
                         [4 * 7 * per_layer, (1000 + 6 * kept) * per_layer, (8192 + 6 * kept) * per_layer])
        text = " ".join(run("--model", model, "--length", "8192").stdout.split())
        self.assertIn("6 of the layers have a window: contiguous and paged caches keep all positions, a ring does not",
                      text)
        for kind in ("all positions", "ring"):
            self.assertIn(f"{kind}, batch 16, tokens:", text)
        plain = run("--model", TINY).stdout
        self.assertNotIn("window", plain)
        self.assertNotIn("ring, batch", plain)

    def f16(self, result, figure="bytes"):
        return [row[figure] for row in result["kv"] if row["type"] == "F16"]

    def test_a_header_is_enough(self):
        """What follows the tensor infos need not be there; what is cut before is refused."""
        data = TINY.read_bytes()
        whole = json.loads(run("--model", TINY, "--json").stdout)
        n_header = len(data) - whole["weight_bytes"] - 4096  # less than the infos take besides the vocabulary
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, TINY.name)
            for n in (len(data) - 1, len(data) - whole["weight_bytes"]):
                path.write_bytes(data[:n])
                self.assertEqual(json.loads(run("--model", path, "--json").stdout), whole)
            path.write_bytes(data[:n_header])
            self.assertIn("truncated", run("--model", path, "--json", code=1).stderr)

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
            return self.f16(json.loads(run(*arguments, "--json").stdout), "ring_bytes")

    def test_any_architecture(self):
        plain = {"block_count": 4, "embedding_length": 96, "attention__head_count": 6}
        self.assertEqual(self.f16_bytes(10, **plain), [2 * 4 * 6 * 16 * 2 * 10])
        self.assertEqual(self.f16_bytes(10, **plain, attention__head_count_kv=2), [2 * 4 * 2 * 16 * 2 * 10])
        uneven = {**plain, "attention__head_count": [6, 6, 3, 6], "attention__head_count_kv": [2, 0, 1, 6]}
        self.assertEqual(self.f16_bytes(10, **uneven), [2 * 9 * 16 * 2 * 10])
        self.assertEqual(self.f16_bytes(10, **uneven, attention__key_length=24, attention__value_length=8),
                         [9 * (24 + 8) * 2 * 10])
        window = {**uneven, "attention__sliding_window": 8}
        one, kept = 2 * 16 * 2, 6 * 64  # a ring's blocks: those of the window and a chunk
        self.assertEqual(self.f16_bytes(4, 1000, **window), [one * 9 * 4, one * 9 * kept])
        self.assertEqual(self.f16_bytes(1000, **window, attention__sliding_window_pattern=[True, True, True, False]),
                         [one * (3 * kept + 6 * 1000)])
        self.assertEqual(self.f16_bytes(1000, **window, attention__sliding_window_pattern=3),
                         [one * (8 * kept + 1000)])

    def test_headers_that_say_too_little(self):
        good = {"block_count": 2, "embedding_length": 96, "attention__head_count": 6}
        for wrong in ("block_count", "embedding_length", "attention__head_count"):
            with tempfile.TemporaryDirectory() as folder:
                for values in ({key: good[key] for key in good if key != wrong}, {**good, wrong: 0},
                               {**good, wrong: [6, 6, 6]}, {**good, wrong: [0, 0]},
                               {**good, "attention__head_count_kv": 4}):
                    result = run("--model", self.header(folder, **values), code=1)
                    self.assertEqual((result.stdout, len(result.stderr.splitlines())), ("", 1), result.stderr)
                    self.assertIn("cathedral.gguf", result.stderr)

    def test_as_many_layers_as_the_file_says(self):
        many = {"block_count": 1_000_001, "embedding_length": 96, "attention__head_count": 6}
        with tempfile.TemporaryDirectory() as folder:
            errors = run("--model", self.header(folder, **many), code=1).stderr
            self.assertIn("cathedral.block_count: expected 1 to 1000000, got 1000001", errors)
            path = self.header(folder, **{**many, "block_count": 1_000_000})
            self.assertEqual(json.loads(run("--model", path, "--json").stdout)["n_layer"], 1_000_000)

    def test_weights_are_not_needed(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(DATA / "tiny" / "qwen3" / "config.json", folder)
            result = json.loads(run("--model", folder, "--json").stdout)
            self.assertEqual((result["head_dim"], result["weight_bytes"]), (32, 0))
            self.assertIn("outgrows 7,000,000,000 weights in FP16 (14.0 GB)", run("--model", folder).stdout)
            Path(folder, "model.safetensors").write_bytes(b"torn")  # weights that are there are read, or refused
            self.assertIn("model.safetensors", run("--model", folder, code=1).stderr)
