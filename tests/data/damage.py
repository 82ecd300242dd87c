"""Ways to damage a file."""

from __future__ import annotations

import random


def flip(rng: random.Random, raw: bytes) -> bytes:
    out = bytearray(raw)
    for _ in range(rng.choice([1, 1, 3, 20])):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def cut(rng: random.Random, raw: bytes) -> bytes:
    return raw[: rng.randrange(len(raw))]


def drop(rng: random.Random, raw: bytes) -> bytes:
    start = rng.randrange(len(raw))
    return raw[:start] + raw[start + rng.randrange(1, 200) :]


def double(rng: random.Random, raw: bytes) -> bytes:
    start = rng.randrange(len(raw))
    end = start + rng.randrange(1, 400)
    return raw[:end] + raw[start:end] + raw[end:]
