"""Small valid inputs for the fuzz targets to start from, and dictionaries of words to make more.

Templates are those of the tests; tokenizer files and model files are made here, small enough to be changed a thousand
times a second. The words are the string literals of the library's own sources.
"""
import json
import re
import struct

TEXTS = ["Hello, wörld! 日本 👩‍👩‍👧 <x>", " two  spaces\n\n\ttab ", "I've 1234567 things, I'LL say\r\n", "<s> hello</s> A",
         "<|im_start|>user\nHi<|im_end|>", "▁low ▁▁er", "\u0041\u030a\u1e9b\u0323", "\0\x01\x7f", "usususususus"]

SNIPPETS = """{{ data|tojson(indent=2, sort_keys=true) }}
{{ data.a|default('x')|upper }}{{ data['b'][0] if data.b else none }}
{% macro m(a, b=2) %}{{ a }}{{ b * 3 }}{{ varargs }}{% endmacro %}{{ m(1) }}{{ m(*[1, 2, 3]) }}
{%- for m in messages if m.role != 'tool' -%}{{ loop.index0 }}{{ loop.cycle('a', 'b') }}{% else %}-{%- endfor %}
{% set ns = namespace(a=1, s='') %}{% for i in range(5) %}{% set ns.a = ns.a * i + 1 %}{% endfor %}{{ ns.a }}
{{ messages[1].content|trim|replace('l', 'L')|title }}{{ messages[::-1]|map(attribute='role')|join(', ') }}
{{ '%s %5.2f %x' % ('a', x, n * -1) }}{{ '{:>8}|{!r}'.format('ab', [1]) }}
{% raw %}{{ }}{% endraw %}{# c #}{{ "a\\n\\x41\\u00e9" ~ 'b'[::-1] }}{{ 'a b c'.split(' ')[-1] }}
{% call(x) m() %}{{ x }}{% endcall %}{% filter upper %}a{{ n }}{% endfilter %}{% generation %}g{% endgeneration %}
{{ strftime_now('%d %b %Y') }}{{ n ** 3 // 2 % 7 }}{{ (1, 2) + (3,) }}{{ 1 < 2 <= 3 and not 'a' in 'b' }}
{% if n is odd and x is not none and data is mapping %}{{ raise_exception('no ' ~ n) }}{% elif false %}{% endif %}
{{ {'a': 1}.items()|list }}{{ [3, 1, 2]|sort(reverse=true)|first }}{{ 'abc'|list|batch(2, '-')|list|tojson }}
{% for a in [[1, [2]]] recursive %}{{ loop(a) if a is iterable else a }}{% if a %}{% break %}{% endif %}{% endfor %}
{{ range(10)|select('even')|sum }}{{ messages|selectattr('role', 'equalto', 'user')|list|length }}{{ 1e5|int }}
{{ 'a'|e|safe ~ '<' }}{{ 'wörld'|capitalize|center(12)|wordcount }}{{ [1, 1, 2]|unique|list|string|indent(2) }}
""".splitlines()


def templates(data):
    for path in sorted((data / "templates").glob("*.jinja")):
        yield path.stem, path.read_bytes() + "\0Hi wörld<|im_end|>".encode()
    for i, snippet in enumerate(SNIPPETS):
        yield f"snippet{i}", snippet.encode() + b'\0{"a": "x", "b": [1, -2.5e3, null, {"c": true}]}'


def tokenizers(_):
    for i, text in enumerate(TEXTS):
        for choice in range(6):
            yield f"{i}-{choice}", bytes([choice + 16 * ((i + choice) % 4)]) + text.encode()
    yield "invalid", b"\x00\xe6\xad \xe2\x80 \xff \xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80"


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def field(number, value):
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(value)


def sentencepiece():
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), ("<0x41>", 0.0, 6), ("\u2581a", -1.0, 1),
              ("a", -2.0, 1), ("b", -3.0, 1), ("ab", -4.0, 1), ("\u2581", -5.0, 5), ("aaaa", -6.0, 5), ("aa", -7.0, 1)]
    out = b"".join(field(1, field(1, text.encode()) + field(2, score) + field(3, kind)) for text, score, kind in pieces)
    return out + field(2, field(3, 2)) + field(3, field(3, 1) + field(4, 0) + field(5, 1))


def tokenizer_files(data):
    added = [{"id": 6, "content": "<s>", "special": True, "lstrip": False, "rstrip": True, "single_word": False,
              "normalized": False}, {"id": 7, "content": "a b", "special": False, "normalized": True}]
    levels = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s]+|\s+(?!\S)|\s+"},
             "behavior": "Isolated", "invert": False}
    single = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    by_bytes = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True}, {"type": "Punctuation"}, split, levels]},
        "post_processor": {"type": "TemplateProcessing", "single": single,
                           "special_tokens": {"<s>": {"id": "<s>", "ids": [6], "tokens": ["<s>"]}}},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "byte_fallback": False, "ignore_merges": True,
                  "vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3, "\u0120ab": 4, "\u00c3": 5},
                  "merges": ["a b", ["\u0120", "ab"]]}}
    by_characters = {
        "added_tokens": [added[0]],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "\u2581"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
            {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "merges": ["\u2581 a"],
                  "vocab": {"<unk>": 0, "<0x41>": 1, "\u2581": 2, "a": 3, "\u2581a": 4}}}
    without_prefix = {**by_characters, "pre_tokenizer": None}
    without_normalizer = {**by_characters, "normalizer": None}
    for i, document in enumerate([by_bytes, by_characters, without_prefix, without_normalizer]):
        yield f"tokenizer{i}", b"\0" + json.dumps(document).encode()
    settings = {"tokenizer_class": "LlamaTokenizerFast", "bos_token": "<s>", "eos_token": {"content": "ab"},
                "add_bos_token": True, "add_eos_token": False, "legacy": False, "add_prefix_space": None,
                "added_tokens_decoder": {"5": {"content": "<x>", "special": True, "lstrip": True}},
                "chat_template": [{"name": "default", "template": "{{ messages }}"}]}
    yield "config", b"\1" + json.dumps(settings).encode()
    for path in sorted((data / "tiny").glob("*/config.json")):
        yield path.parent.name, b"\2" + path.read_bytes()
    yield "sentencepiece", b"\3" + sentencepiece()


SHAPES = {"token_embd": [8, 4], "output_norm": [4], "attn_norm": [4], "ffn_norm": [4], "attn_q": [4, 4],
          "attn_k": [2, 4], "attn_v": [2, 4], "attn_output": [4, 4], "ffn_gate": [6, 4], "ffn_up": [6, 4],
          "ffn_down": [4, 6]}
IN_FOLDERS = {"token_embd": "embed_tokens", "output_norm": "norm", "attn_norm": "input_layernorm",
              "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
              "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj",
              "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
# The folder whose safetensors file is the input.
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4, "intermediate_size": 6,
          "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 2, "num_hidden_layers": 1, "vocab_size": 8,
          "max_position_embeddings": 16, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
          "tie_word_embeddings": True}


def values_of(shape):
    n = shape[0] * (shape[1] if len(shape) > 1 else 1)
    return struct.pack(f"<{n}f", *(0.25 * i for i in range(n)))


def safetensors():
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for key, shape in SHAPES.items():
        layer = "layers.0." if key.startswith(("attn", "ffn")) else ""
        bytes_ = values_of(shape)
        header[f"model.{layer}{IN_FOLDERS[key]}.weight"] = {
            "dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def gguf(tokenizer):
    def string(text):
        return struct.pack("<Q", len(text.encode())) + text.encode()

    def array(kind, values):
        formats = {5: "<i", 6: "<f"}
        packed = (string(v) if kind == 8 else struct.pack(formats[kind], v) for v in values)
        return struct.pack("<IQ", kind, len(values)) + b"".join(packed)

    metadata = [("general.architecture", 8, "llama")]
    metadata += [("llama." + key, 4, n) for key, n in [
        ("block_count", 1), ("context_length", 16), ("embedding_length", 4), ("feed_forward_length", 6),
        ("attention.head_count", 2), ("attention.head_count_kv", 1)]]
    metadata += [("llama.attention.layer_norm_rms_epsilon", 6, 1e-5), ("tokenizer.ggml.model", 8, tokenizer)]
    texts = ["<unk>", "<s>", "</s>", "<0x41>", "a", "b", "ab", "\u2581" if tokenizer == "llama" else "\u0120"]
    metadata += [("tokenizer.ggml.tokens", 9, (8, texts)),
                 ("tokenizer.ggml.token_type", 9, (5, [2, 3, 3, 6, 1, 1, 1, 1])),
                 ("tokenizer.ggml.bos_token_id", 4, 1), ("tokenizer.ggml.add_bos_token", 7, 1),
                 ("tokenizer.ggml.eos_token_id", 4, 2)]
    if tokenizer == "llama":
        metadata.append(("tokenizer.ggml.scores", 9, (6, [0.0, 0.0, 0.0, 0.0, -1.0, -2.0, -3.0, -4.0])))
    else:
        metadata += [("tokenizer.ggml.pre", 8, "llama-bpe"), ("tokenizer.ggml.merges", 9, (8, ["a b"]))]
    out = b""
    for key, kind, value in metadata:
        formats = {4: "<I", 6: "<f", 7: "<B"}
        out += string(key) + struct.pack("<I", kind)
        out += string(value) if kind == 8 else array(*value) if kind == 9 else struct.pack(formats[kind], value)
    infos, data = b"", b""
    for key, shape in SHAPES.items():
        name = ("blk.0." if key.startswith(("attn", "ffn")) else "") + key + ".weight"
        infos += string(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in reversed(shape))
        infos += struct.pack("<IQ", 0, len(data))
        data += values_of(shape)
        data += bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(SHAPES), len(metadata)) + out + infos
    return head + bytes(-len(head) % 32) + data


def model_files(_):
    yield "llama", gguf("llama")
    yield "gpt2", gguf("gpt2")
    yield "safetensors", safetensors()


SOURCES = {"templates": ["text/jinja/*.hpp"], "model_files": ["model/*.hpp", "model/arch/*.hpp"],
           "tokenizer_files": ["text/tokenizer_*.hpp", "text/load_tokenizer*.hpp", "model/*.hpp", "model/arch/*.hpp"]}


def words(root, patterns):
    found = set()
    for pattern in patterns:
        for path in (root / "include" / "vitrine").glob(pattern):
            found.update(re.findall(r'"([!-~]{1,24})"', path.read_text(encoding="utf-8")))
    return sorted(word for word in found if "\\" not in word and '"' not in word and "/" not in word)


def write(root, folder):
    """FOLDER/<target>/* and FOLDER/<target>.dict"""
    for seeds in (templates, tokenizers, model_files, tokenizer_files):
        target = folder / seeds.__name__
        target.mkdir(parents=True, exist_ok=True)
        for name, contents in seeds(root / "tests" / "data"):
            (target / name).write_bytes(contents)
    for name, patterns in SOURCES.items():
        (folder / f"{name}.dict").write_text("".join(f'"{word}"\n' for word in words(root, patterns)))
    (folder / "config.json").write_text(json.dumps(CONFIG))
