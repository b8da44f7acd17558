"""`import slangpy.random;`: Philox against NumPy's and the published test vectors, and the distributions made of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slangpy as spy

pytestmark = pytest.mark.needs_kernels

CODE = """
import slangpy.random;
void blocks(uint4 counter, uint2 key, out uint4 words) { words = philox4x32(counter, key); }
void wide(uint64_t counter[4], uint64_t key[2], out uint64_t words[4]) { words = philox4x64(counter, key); }
void words(uint stream, uint seed, uint block, out uint first[6])
{
    Philox rng = Philox(seed, stream);
    rng.skip_to(block);
    for (int i = 0; i < 6; i++)
        first[i] = rng.bits();
}
void numbers(uint stream, out float u, out float2 n, out int k, out float3 v)
{
    Philox rng = Philox(7, stream);
    u = rng.uniform(-1, 3);
    n = rng.normal2();
    k = rng.integer(-2, 4);
    v = rng.normal_vector<3>();
}
int one_of(uint stream, int low, int high)
{
    Philox rng = Philox(1, stream);
    return rng.integer(low, high);
}
[Differentiable] float scaled(float x, uint stream)
{
    Philox rng = Philox(3, stream);
    return x * no_diff rng.uniform();
}
"""
ROUNDS, KEYS = 10, (0x9E3779B9, 0xBB67AE85)


@pytest.fixture
def m(device: Any) -> Any:
    return spy.Module.load_from_source(device, "random_numbers", CODE)


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Philox4x32-10, as the paper has it."""
    c, (k0, k1) = list(counter), key
    for _ in range(ROUNDS):
        first, second = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [second >> 32 ^ c[1] ^ k0, second & 0xFFFFFFFF, first >> 32 ^ c[3] ^ k1, first & 0xFFFFFFFF]
        k0, k1 = (k0 + KEYS[0]) & 0xFFFFFFFF, (k1 + KEYS[1]) & 0xFFFFFFFF
    return c


KNOWN = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]  # fmt: skip
"""Counters, keys and words of Random123's kat_vectors."""


def test_published_words(m: Any) -> None:
    counters, keys, expected = (np.array([row[i] for row in KNOWN], np.uint32) for i in range(3))
    words = np.zeros((3, 4), np.uint32)
    m.blocks(counters, keys, words)
    assert np.array_equal(words, expected)
    assert [philox(counter, key) for counter, key, _ in KNOWN] == expected.tolist()


def test_words_of_numpy(m: Any) -> None:
    rng = np.random.default_rng(5)
    counters = rng.integers(0, 2**64, (33, 4), np.uint64)
    keys = rng.integers(0, 2**64, (33, 2), np.uint64)
    counters[:3] = [[0] * 4, [2**64 - 2] * 4, [1, 2, 3, 2**63]]
    words = np.zeros((33, 4), np.uint64)
    m.wide(counters, keys, words)
    for counter, key, got in zip(counters, keys, words, strict=True):
        whole = sum(int(word) << 64 * i for i, word in enumerate(counter))
        theirs = np.random.Philox(counter=(whole - 1) % 2**256, key=int(key[0]) | int(key[1]) << 64)  # it counts first
        assert theirs.random_raw(4).tolist() == got.tolist()


def test_streams(m: Any) -> None:
    for seed, block in ((0, 0), (2**32 - 1, 0), (12, 2**32 - 1)):
        streams = np.array([0, 1, 2**31, 2**32 - 1], np.uint32)
        got = np.zeros((4, 6), np.uint32)
        m.words(streams, seed, block, got)
        following = (block + 1) % 2**32, (block + 1) // 2**32
        for stream, words in zip(streams, got, strict=True):
            expected = philox([block, 0, int(stream), 0], [seed, 0]) + philox([*following, int(stream), 0], [seed, 0])
            assert words.tolist() == expected[:6]


@pytest.mark.one
def test_distributions(m: Any) -> None:
    count = 200_000
    streams = np.arange(count, dtype=np.uint32)
    u, n, k = np.zeros(count, np.float32), np.zeros((count, 2), np.float32), np.zeros(count, np.int32)
    v = np.zeros((count, 3), np.float32)
    m.numbers(streams, u, n, k, v)
    assert -1 <= u.min() < -0.999 and 2.999 < u.max() <= 3
    cells = np.histogram(u, 50, (-1, 3))[0]
    assert ((cells - count / 50) ** 2).sum() / (count / 50) < 95  # 49 degrees of freedom: exceeded once in 10,000
    for column in (*n.T, *v.T):
        x = column.astype(np.float64)
        error = 1 / np.sqrt(count)
        assert abs(x.mean()) < 4 * error and abs((x**2).mean() - 1) < 4 * np.sqrt(2) * error
        assert abs((x**3).mean()) < 4 * np.sqrt(15) * error and abs((x**4).mean() - 3) < 4 * np.sqrt(96) * error
    columns = np.column_stack([u, n, v])
    correlations = np.corrcoef(columns.astype(np.float64).T) - np.eye(6)
    assert np.abs(correlations).max() < 5 / np.sqrt(count)
    faces = np.bincount(k + 2, minlength=6)
    assert len(faces) == 6 and ((faces - count / 6) ** 2).sum() / (count / 6) < 26  # 5 degrees of freedom


@pytest.mark.one
def test_integers_of_odd_ranges(m: Any) -> None:
    streams = np.arange(20_000, dtype=np.uint32)
    low, high = -(2**31), 2**30  # three quarters of all: words are rejected often
    got = m.one_of(streams, low, high, _result="numpy").astype(np.int64)
    assert got.min() >= low and got.max() < high
    thirds = np.histogram(got, 3, (low, high))[0]
    assert ((thirds - len(got) / 3) ** 2).sum() / (len(got) / 3) < 19
    assert m.one_of(1, 5, 6) == 5 and m.one_of(1, 5, 5) == 5 and m.one_of(1, 5, -3) == 5


@pytest.mark.one
def test_in_differentiable_functions(m: Any) -> None:
    x = spy.Tensor.from_numpy(m.device, np.ones(8, np.float32)).with_grads()
    streams = np.arange(8, dtype=np.uint32)
    value = m.scaled(x, streams)
    seeds = value.with_grads()
    seeds.grad.copy_from_numpy(np.ones(8, np.float32))
    m.scaled.bwds(x, streams, _result=seeds)
    assert np.array_equal(x.grad.to_numpy(), value.to_numpy()) and len(set(value.to_numpy().tolist())) == 8
