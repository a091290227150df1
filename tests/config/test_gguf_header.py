"""Reading the head of GGUF files: versions, byte orders, split files, and files that lie."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.model_files.gguf_files import gguf_in, read_gguf
from gateway.config.model_files.gguf_header import GgufError, read_gguf_header
from gateway.core.kv.gguf.header import GgufHeader, LongArray
from tests.config.gguf_bytes import Tensor, gguf, text

LLAMA: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.embedding_length": 64,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": [2, 2],
    "llama.rope.freq_base": 0.5,
    "tokenizer.ggml.add_bos_token": True,
    "tokenizer.chat_template": "{{ messages }}",
    "some.words": ["a", "bc", ""],
}
TENSORS: list[Tensor] = [("token_embd.weight", (64, 100), 1), ("blk.0.attn_q.weight", (64, 64), 8), ("one", (), 0)]


def head(raw: bytes) -> GgufHeader:
    return read_gguf_header(io.BytesIO(raw))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("order", ["<", ">"])
def test_versions_and_byte_orders(version: int, order: str) -> None:
    found = head(gguf(LLAMA, TENSORS, version=version, order=order))
    assert (found.version, found.big_endian) == (version, order == ">")
    assert {**found.metadata} == {**LLAMA, "llama.attention.head_count_kv": (2, 2), "some.words": ("a", "bc", "")}
    assert [tensor.bytes for tensor in found.tensors] == [12_800, 4096 // 32 * 34, 4]
    assert [tensor.elements for tensor in found.tensors] == [6400, 4096, 1]


def test_a_vocabulary_is_counted_and_not_kept() -> None:
    long = {**LLAMA, "tokenizer.ggml.tokens": ["token"] * 5000, "tokenizer.ggml.token_type": [1] * 5000}
    found = head(gguf(long, TENSORS))
    assert found.metadata["tokenizer.ggml.tokens"] == found.metadata["tokenizer.ggml.token_type"] == LongArray(5000)
    assert len(found.tensors) == 3


def test_only_the_head_is_read() -> None:
    class Counting(io.BytesIO):
        taken = 0

        def read(self, size: int | None = -1) -> bytes:
            found = super().read(size)
            self.taken += len(found)
            return found

    raw = gguf(LLAMA, TENSORS)
    file = Counting(raw + bytes(10_000_000))
    read_gguf_header(file)
    assert file.taken == len(raw)


def test_a_number_format_that_is_not_known_is_sized_by_its_neighbour() -> None:
    raw = gguf(LLAMA, [("a", (64, 64), 137), ("b", (64,), 0)], rest=bytes(4096))
    assert [tensor.bytes for tensor in head(raw).tensors] == [1024, 256]


def counts(tensors: int, keys: int, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys)


def one_key(kind: int, rest: bytes) -> bytes:
    return counts(0, 1) + text("key") + struct.pack("<I", kind) + rest


def one_tensor(dims: int, shape: tuple[int, ...], kind: int, offset: int) -> bytes:
    raw = struct.pack(f"<I{len(shape)}QIQ", dims, *shape, kind, offset)
    return counts(1, 0) + text("tensor") + raw


TWICE = counts(0, 2) + 2 * (text("a") + struct.pack("<II", 4, 1))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "no GGUF file"),
        (b"GGML" + bytes(100), "no GGUF file"),
        (b"GGUF\x03", "ends in its header"),
        (counts(0, 0, version=1), "version 1 is no longer read"),
        (counts(0, 0, version=99), "version 99 is not known"),
        (counts(0, 0)[:-1], "ends in its header"),
        (counts(2**60, 1), "claims 1 keys and 1152921504606846976 tensors"),
        (counts(0, 2**31), "claims 2147483648 keys"),
        (counts(0, 1) + struct.pack("<Q", 2**63), "a text of 9223372036854775808 bytes"),
        (counts(0, 1) + struct.pack("<Q", 60_000), "ends in its header"),
        (one_key(13, bytes(8)), "a value of type 13"),
        (one_key(2**32 - 1, bytes(8)), "a value of type 4294967295"),
        (one_key(8, struct.pack("<Q", 2**40)), "a text of 1099511627776 bytes"),
        (one_key(9, struct.pack("<IQ", 9, 1) + bytes(64)), "an array of type 9"),
        (one_key(9, struct.pack("<IQ", 77, 1) + bytes(64)), "an array of type 77"),
        (one_key(9, struct.pack("<IQ", 4, 2**62)), "claims 4611686018427387904 elements"),
        (one_key(9, struct.pack("<IQ", 4, 2**23)), "ends in its header"),
        (one_key(9, struct.pack("<IQ", 8, 2**23)), "ends in its header"),
        (one_tensor(5, (1, 1, 1, 1, 1), 0, 0), "claims 5 dimensions"),
        (one_tensor(4, (2**63, 2**63, 2, 2), 0, 0), "elements"),
        (one_tensor(1, (33,), 8, 0), "rows of 33 elements don't fill blocks of Q8_0"),
        (one_tensor(1, (32,), 0, 2**63), "beyond any file"),
        (TWICE, "'a' is there twice"),
        (gguf({}, [("a", (1,), 0), ("a", (1,), 0)]), "'a' is there twice"),
        (gguf({"general.alignment": 0}), "general.alignment"),
        (gguf({"general.alignment": "wide"}), "general.alignment"),
    ],
)  # fmt: skip
def test_lies_are_refused(raw: bytes, message: str) -> None:
    with pytest.raises(GgufError, match=message):
        head(raw)


WHOLE = gguf({**LLAMA, "tokenizer.ggml.tokens": ["token"] * 40}, TENSORS)


def test_a_file_cut_anywhere_is_refused() -> None:
    for length in range(len(WHOLE)):
        with pytest.raises(GgufError):
            head(WHOLE[:length])


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=8))
def test_a_file_with_broken_bytes_is_read_or_refused(changes: list[tuple[int, int]]) -> None:
    raw = bytearray(WHOLE)
    for place, byte in changes:
        raw[place] = byte
    try:
        found = head(bytes(raw))
    except GgufError:
        return
    assert found.version in (2, 3)
    assert all(tensor.bytes >= 0 for tensor in found.tensors)


def write_split(folder: Path, present: tuple[int, ...], count: int = 3) -> Path:
    for number in present:
        tensor: Tensor = (f"blk.{number}.ffn_up.weight", (64, 32), 1)
        own = {**LLAMA, "split.count": count} if number == 1 else {"split.no": number - 1}
        (folder / f"big-{number:05d}-of-{count:05d}.gguf").write_bytes(gguf(own, [tensor]))
    return folder / f"big-{present[-1]:05d}-of-{count:05d}.gguf"


def test_a_split_file_is_read_whole_from_any_part(tmp_path: Path) -> None:
    found = read_gguf(write_split(tmp_path, (1, 2, 3)))
    assert (found.parts, found.missing) == (3, 0)
    assert sum(tensor.bytes for tensor in found.tensors) == 3 * 4096
    assert found.metadata["general.architecture"] == "llama"
    assert [path.name for path in gguf_in(tmp_path)] == ["big-00001-of-00003.gguf"]


def test_parts_that_are_not_here_are_counted(tmp_path: Path) -> None:
    found = read_gguf(write_split(tmp_path, (1, 3)))
    assert (found.parts, found.missing) == (3, 1)


def test_without_the_part_with_the_metadata_nothing_is_read(tmp_path: Path) -> None:
    with pytest.raises(GgufError, match=r"big-00001-of-00003\.gguf, the part with the metadata, is not here"):
        read_gguf(write_split(tmp_path, (2, 3)))


def test_a_split_that_contradicts_its_name(tmp_path: Path) -> None:
    (tmp_path / "big-00001-of-00002.gguf").write_bytes(gguf({**LLAMA, "split.count": 9}))
    with pytest.raises(GgufError, match=r"split\.count is 9, but the name says 2"):
        read_gguf(tmp_path / "big-00001-of-00002.gguf")
    (tmp_path / "big-00001-of-99999.gguf").write_bytes(gguf(LLAMA))
    with pytest.raises(GgufError, match="99999 parts"):
        read_gguf(tmp_path / "big-00001-of-99999.gguf")


def test_image_encoders_are_no_models(tmp_path: Path) -> None:
    for name in ("mmproj-F16.gguf", "model-Q4_K_M.gguf"):
        (tmp_path / name).write_bytes(gguf(LLAMA))
    assert [path.name for path in gguf_in(tmp_path)] == ["model-Q4_K_M.gguf"]
