"""Sizes of pictures by the heads of their files: true ones, cut ones, hostile ones."""

from __future__ import annotations

import base64
import json
import struct
import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.media import Media, Picture
from gateway.wire.chat_body import Part
from gateway.wire.image_size import MOST_PIXELS, More, Size, size_in
from gateway.wire.inline_file import inline_file
from gateway.wire.media import media
from gateway.wire.usage import usage_of

_PART = msgspec.json.Decoder(Part)


def png(width: int, height: int) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))


def jpeg(width: int, height: int, before: int = 0, frame: int = 0xC0) -> bytes:
    """A JPEG with `before` bytes of profiles and previews ahead of its frame."""
    parts = [b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"]
    while before > 0:
        size = min(before, 65_000)
        parts.append(b"\xff\xe1" + struct.pack(">H", size + 2) + b"\xff\xc0" * (size // 2) + b"x" * (size % 2))
        before -= size
    parts += [b"\xff\xff\xff\xdb\x00\x43" + bytes(65), b"\xff\xc4\x00\x04ab"]
    parts.append(bytes([0xFF, frame]) + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9))
    return b"".join(parts)


def webp(width: int, height: int, kind: str) -> bytes:
    if kind == "VP8X":
        body = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    elif kind == "VP8L":
        body = b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little") + bytes(5)
    else:
        body = bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", width, height)
    name = f"{kind:4}".encode()
    return b"RIFF" + struct.pack("<I", 4 + 8 + len(body)) + b"WEBP" + name + struct.pack("<I", len(body)) + body


def bmp(width: int, height: int) -> bytes:
    return b"BM" + bytes(12) + struct.pack("<Iii", 40, width, height) + bytes(28)


FILES = {
    "png": png(1920, 1080),
    "jpeg": jpeg(1920, 1080),
    "progressive": jpeg(1920, 1080, frame=0xC2),
    "camera": jpeg(1920, 1080, before=150_000),
    "gif": b"GIF89a" + struct.pack("<HH", 1920, 1080) + bytes(3),
    "bmp": bmp(1920, 1080),
    "bmp from the top": bmp(1920, -1080),
    "bmp of os/2": b"BM" + bytes(12) + b"\x0c\x00\x00\x00" + struct.pack("<HH", 1920, 1080) + bytes(4),
    "webp lossy": webp(1920, 1080, "VP8"),
    "webp lossless": webp(1920, 1080, "VP8L"),
    "webp extended": webp(1920, 1080, "VP8X"),
}


@pytest.mark.parametrize("name", FILES)
def test_each_format_tells_its_size(name: str) -> None:
    assert size_in(FILES[name]) == Size(1920, 1080)


@pytest.mark.parametrize("name", FILES)
def test_a_cut_head_asks_for_more_and_never_tells_another_size(name: str) -> None:
    file = FILES[name]
    for length in range(1, min(len(file), 400)):
        found = size_in(file[:length])
        assert found == Size(1920, 1080) or (isinstance(found, More) and found.needed > length), (length, found)


@given(st.binary(max_size=200), st.sampled_from([b"", *(file[:12] for file in FILES.values())]))
def test_anything_else_is_a_size_within_reason_or_none(noise: bytes, start: bytes) -> None:
    found = size_in(start + noise)
    if isinstance(found, Size):
        assert 0 < found.width <= MOST_PIXELS
        assert 0 < found.height <= MOST_PIXELS


@pytest.mark.parametrize(
    "file",
    [png(0, 5), png(2**31, 5), png(70_000, 5), jpeg(5, 0), bmp(0, 5), b"\xff\xd8\xff\xda" + bytes(40),
     b"\xff\xd8" + b"\xff\xe1\x00\x00" * 20, b"\xff\xd8" + b"\xff\xe1\x00\x02" * 100, b"%PDF-1.7" + bytes(20)],
)  # fmt: skip
def test_what_is_not_believed_has_no_size(file: bytes) -> None:
    assert size_in(file) is None


def url(file: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(file).decode()}"


def found_in(*parts: dict[str, object]) -> tuple[set[str], Media]:
    return media([[_PART.decode(json.dumps(part)) for part in parts]])


@pytest.mark.parametrize("name", FILES)
def test_pictures_in_data_urls(name: str) -> None:
    address = url(FILES[name])
    for part in (
        {"type": "image_url", "image_url": {"url": address}},
        {"type": "image_url", "image_url": {"detail": "high", "url": address}},
        {"type": "image_url", "image_url": address},
        {"type": "input_image", "image_url": address},
    ):
        assert found_in(part) == ({"vision"}, Media((Picture(1920, 1080),)))


@pytest.mark.parametrize("order", [("detail", "url"), ("url", "detail")])
def test_low_detail_is_seen_on_either_side(order: tuple[str, str]) -> None:
    value = {"detail": "low", "url": url(jpeg(100, 50, before=90_000))}
    assert found_in({"type": "image_url", "image_url": {key: value[key] for key in order}})[1].pictures == (
        Picture(100, 50, low=True),
    )


def test_slashes_may_be_escaped_and_lines_broken() -> None:
    encoded = base64.encodebytes(FILES["camera"]).decode()
    text = json.dumps({"type": "image_url", "image_url": {"url": "data:image/jpeg;base64," + encoded}})
    for raw in (text, text.replace("/", "\\/"), text.replace("\\n", "\\r\\n")):
        assert media([[_PART.decode(raw)]])[1].pictures == (Picture(1920, 1080),)


@pytest.mark.parametrize(
    "value",
    ["https://a.example/x.png", {"url": "https:\\/\\/a.example/x.png"}, {"url": ""}, {"url": None}, {"no": "url"}, 5,
     "data:image/png,notbase64", "data:image/png;base64,####", {"url": "data:;base64,"}, [], {"url": ["x"]}],
)  # fmt: skip
def test_what_only_the_engine_sees_has_no_size(value: object) -> None:
    assert found_in({"type": "image_url", "image_url": value}) == ({"vision"}, Media((Picture(),)))


@given(st.binary(max_size=300))
def test_no_raw_json_of_a_part_is_too_odd(noise: bytes) -> None:
    file = inline_file(memoryview(b'{"url":"data:image/png;base64,' + noise))
    if file is not None:
        assert isinstance(size_in(file.head(512)), Size | More | None)
        assert file.length <= 300


def wav(seconds: float, rate: int = 32_000) -> bytes:
    size = int(seconds * rate)
    head = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate // 2, rate, 2, 16) + b"data" + struct.pack("<I", size)
    return b"RIFF" + struct.pack("<I", 36 + size) + b"WAVE" + head + bytes(size)


def test_sounds_have_seconds() -> None:
    data = base64.b64encode(wav(7.5)).decode()
    needs, found = found_in({"type": "input_audio", "input_audio": {"data": data, "format": "wav"}})
    assert (needs, round(found.seconds, 1)) == ({"audio"}, 7.5)
    mp3 = base64.b64encode(b"ID3" + bytes(48_000)).decode()
    assert round(found_in({"type": "input_audio", "input_audio": {"format": "mp3", "data": mp3}})[1].seconds) == 3
    assert found_in({"type": "audio_url", "audio_url": {"url": "https://a.example/x.wav"}})[1].seconds == 30


def test_documents_have_pages_by_their_size() -> None:
    file = url(b"%PDF-1.7" + bytes(200_000), "application/pdf")
    needs, found = found_in({"type": "file", "file": {"filename": "a.pdf", "file_data": file}})
    assert (needs, found.pages) == (set(), 4)
    assert found_in({"type": "file", "file": {"file_id": "file-1"}})[1].pages == 1


def test_videos_are_pictures_of_no_known_size() -> None:
    assert found_in({"type": "video_url", "video_url": {"url": "x"}}) == ({"vision"}, Media((Picture(),)))


@pytest.mark.parametrize(
    ("details", "told"),
    [
        ({"multimodal_tokens": {"image": 700, "audio": 50}}, 750),
        ({"multimodal_tokens": None, "cached_tokens": 5}, None),
        ({"multimodal_tokens": {}}, None),
        ({"multimodal_tokens": {"image": "700", "video": -1}}, None),
        ({"audio_tokens": 90, "image_tokens": 10}, 100),
        ({"audio_tokens": 0}, None),
        ({"multimodal_tokens": {"image": 5000}}, None),  # more than the prompt has
    ],
)
def test_engines_tell_the_tokens_of_media_apart(details: dict[str, object], told: int | None) -> None:
    usage = usage_of({"usage": {"prompt_tokens": 1000, "completion_tokens": 1, "prompt_tokens_details": details}})
    assert usage is not None
    assert usage.media_tokens == told
