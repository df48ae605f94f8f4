#!/usr/bin/env python3
"""Writes a GGUF model of a 7B model's shape with random Q4_K weights, to measure speed where no such model is at hand.

    bench/random_model.py TOKENIZER.gguf OUT.gguf [--layers 4]

The shape is that of Mistral 7B (4096 wide, 14336 in the feed-forward, 32 heads, 8 of them for keys and values), with
fewer layers; the vocabulary is that of TOKENIZER.gguf, any model. What it says means nothing, but it takes as long.
"""
import argparse
import random
import struct

D_MODEL, D_FF, N_HEAD, N_KV_HEAD, HEAD_DIM = 4096, 14336, 32, 8, 128
F32, Q4_K, STRING, ARRAY, U32, FLOAT = 0, 12, 8, 9, 4, 6
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of a metadata value by type


def text(string):
    data = string.encode()
    return struct.pack("<Q", len(data)) + data


def tokenizer_keys(path):
    """The metadata entries of a tokenizer as they stand in the file, and the number of its tokens."""
    data = open(path, "rb").read(64 << 20)
    at, entries, n_tokens = 24, [], 0

    def value_end(kind, at):
        if kind == STRING:
            return at + 8 + struct.unpack_from("<Q", data, at)[0]
        if kind == ARRAY:
            item, count = struct.unpack_from("<IQ", data, at)
            at += 12
            if item != STRING:
                return at + SIZES[item] * count
            for _ in range(count):
                at = value_end(STRING, at)
            return at
        return at + SIZES[kind]

    for _ in range(struct.unpack_from("<Q", data, 16)[0]):
        begin, length = at, struct.unpack_from("<Q", data, at)[0]
        key = data[at + 8:at + 8 + length].decode()
        kind = struct.unpack_from("<I", data, at + 8 + length)[0]
        at = value_end(kind, at + 12 + length)
        if key.startswith("tokenizer."):
            entries.append(data[begin:at])
        if key == "tokenizer.ggml.tokens":
            n_tokens = struct.unpack_from("<Q", data, begin + 8 + length + 8)[0]
    return entries, n_tokens


def q4_k(n_weights):
    """Blocks of 256: weights of mean 0 and deviation 0.02, all runs with scale and minimum 32 of 63."""
    d = 0.02 / (4.6 * 32)
    scales = bytes([0x20 | 0x80] * 4 + [0x20 | 0x80] * 4 + [0] * 4)  # 6-bit fields: 32 for all, see format Q4_K
    head = struct.pack("<ee", d, 7.5 * d) + scales
    quants = [head + random.randbytes(128) for _ in range(4096)]
    n_blocks = n_weights // 256
    return b"".join(quants[i % 4096] for i in range(n_blocks))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer")
    parser.add_argument("out")
    parser.add_argument("--layers", type=int, default=4)
    args = parser.parse_args()
    random.seed(7)
    entries, n_vocab = tokenizer_keys(args.tokenizer)
    for key, value in {"context_length": 8192, "embedding_length": D_MODEL, "block_count": args.layers,
                       "feed_forward_length": D_FF, "attention.head_count": N_HEAD,
                       "attention.head_count_kv": N_KV_HEAD, "rope.dimension_count": HEAD_DIM}.items():
        entries.append(text("llama." + key) + struct.pack("<II", U32, value))
    entries.append(text("llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", FLOAT, 1e-5))
    entries.append(text("llama.rope.freq_base") + struct.pack("<If", FLOAT, 1e6))
    entries.append(text("general.architecture") + struct.pack("<I", STRING) + text("llama"))
    entries.append(text("general.name") + struct.pack("<I", STRING) + text("Random weights in the shape of a 7B model"))
    tensors = [("token_embd.weight", Q4_K, (D_MODEL, n_vocab)), ("output_norm.weight", F32, (D_MODEL,))]
    for i in range(args.layers):
        for name, rows, cols in (("attn_q", D_MODEL, D_MODEL), ("attn_k", N_KV_HEAD * HEAD_DIM, D_MODEL),
                                 ("attn_v", N_KV_HEAD * HEAD_DIM, D_MODEL), ("attn_output", D_MODEL, D_MODEL),
                                 ("ffn_gate", D_FF, D_MODEL), ("ffn_up", D_FF, D_MODEL), ("ffn_down", D_MODEL, D_FF)):
            tensors.append((f"blk.{i}.{name}.weight", Q4_K, (cols, rows)))
        tensors += [(f"blk.{i}.{name}.weight", F32, (D_MODEL,)) for name in ("attn_norm", "ffn_norm")]

    infos, offset = b"", 0
    for name, kind, dims in tensors:
        count = dims[0] * (dims[1] if len(dims) > 1 else 1)
        size = 4 * count if kind == F32 else count // 256 * 144
        infos += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
        offset += (size + 31) // 32 * 32
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries) + infos
    with open(args.out, "wb") as out:
        out.write(header + bytes(-len(header) % 32))
        for name, kind, dims in tensors:
            count = dims[0] * (dims[1] if len(dims) > 1 else 1)
            data = struct.pack("<f", 1.0) * count if kind == F32 else q4_k(count)
            out.write(data + bytes(-len(data) % 32))


if __name__ == "__main__":
    main()
