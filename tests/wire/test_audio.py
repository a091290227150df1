from __future__ import annotations

import io
import struct
import wave
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import MalformedRequest
from gateway.wire.audio import WINDOW_FRAMES, WINDOW_TOKENS, parse_transcription, parse_translation
from gateway.wire.audio_length import seconds_of
from gateway.wire.image_edits import parse_image_edits
from tests.wire.test_multipart import END, TYPE, field, file


def wav(seconds: float, rate: int = 8_000) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(b"\0\0" * int(seconds * rate))
    return out.getvalue()


def flac(rate: int, samples: int, size: int) -> bytes:
    packed = rate << 44 | 0 << 41 | 15 << 36 | samples
    info = bytes(10) + packed.to_bytes(8, "big") + bytes(16)
    return (b"fLaC\x80\x00\x00\x22" + info).ljust(size, b"\1")


def seconds(data: bytes) -> float:
    return seconds_of(memoryview(data))


def test_a_wav_says_how_long_it_is() -> None:
    sound = wav(2.5)
    assert seconds(sound) == 2.5
    with_a_note = sound[:12] + b"LIST" + struct.pack("<I", 5) + b"note!\0" + sound[12:]
    assert seconds(with_a_note) == 2.5
    assert seconds(sound[:-8_000]) == 2.0  # cut: what is there counts
    at = sound.index(b"data") + 4
    for unknown in (0, 0xFFFFFFFF):  # recorded into a pipe
        assert seconds(sound[:at] + struct.pack("<I", unknown) + sound[at + 4 :]) == 2.5


def test_a_flac_says_how_long_it_is() -> None:
    assert seconds(flac(16_000, 48_000, 50_000)) == 3.0
    assert seconds(flac(16_000, 0, 80_000)) == 10.0  # it does not


@pytest.mark.parametrize(
    ("magic", "rate"), [(b"OggS", 4_000), (b"\x1aE\xdf\xa3", 4_000), (b"ID3", 16_000), (b"\0\0\0 ftypM4A", 8_000)]
)
def test_the_length_of_others_is_guessed_from_their_size(magic: bytes, rate: int) -> None:
    assert seconds(magic.ljust(80_000, b"\1")) == 80_000 / rate


def test_no_header_makes_a_small_file_last_for_ever() -> None:
    sound = bytearray(wav(1))
    struct.pack_into("<I", sound, 28, 1)  # one byte a second
    assert seconds(bytes(sound)) == len(sound) / 1_000
    struct.pack_into("<I", sound, 28, 0)
    assert seconds(bytes(sound)) == len(sound) / 8_000
    assert seconds(flac(1, 2**36 - 1, 1_000)) == 1.0
    assert seconds(b"") == 0.0


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.binary(max_size=80), st.binary(max_size=60).map(lambda rest: b"RIFF\0\0\0\0WAVE" + rest)))
def test_any_bytes_have_a_length(data: bytes) -> None:
    assert 0 <= seconds(data) <= len(data) / 1_000


@pytest.mark.parametrize(
    ("parse", "surface"), [(parse_transcription, "transcriptions"), (parse_translation, "translations")]
)
def test_what_is_said(parse: Any, surface: str) -> None:
    body = (
        file("file", wav(61))
        + field("model", b"whisper")
        + field("stream", b"true")
        + field("response_format", b"srt")
        + field("prompt", b"Names")
        + field("timestamp_granularities[]", b"word")
        + field("timestamp_granularities[]", b"segment")
        + END
    )
    read = parse(body, TYPE)
    chat = read.chat
    assert (chat.surface, chat.model, chat.stream, chat.n, chat.prompts) == (surface, "whisper", True, 1, 1)
    assert (chat.prompt_tokens, chat.max_tokens) == (3 * WINDOW_FRAMES, 3 * WINDOW_TOKENS)
    assert (chat.text.pieces, chat.members, chat.max_tokens_field) == ([b"Names"], (), None)
    assert read.response_format == "srt"
    assert read.form.value("model") == "whisper"


def test_what_is_unsaid() -> None:
    read = parse_transcription(file("file", b"") + END, TYPE)
    assert (read.chat.model, read.chat.stream, read.response_format) == ("", False, None)
    assert read.chat.prompt_tokens == WINDOW_FRAMES
    for no in (b"false", b"", b"no"):
        assert not parse_transcription(file("file", b"") + field("stream", no) + END, TYPE).chat.stream


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (field("model", b"w") + END, "file"),
        (field("file", b"text") + END, "file"),
        (file("file", b"1") + file("file", b"2") + END, "file"),
        (file("file", b"1") + field("model", b"a") + field("model", b"a") + END, "model"),
        (file("file", b"1") + file("model", b"a") + END, "model"),
        (file("file", b"1") + field("stream", b"a") * 2 + END, "stream"),
        (file("file", b"1") + field("response_format", b"a") * 2 + END, "response_format"),
    ],
)
def test_what_is_refused(body: bytes, param: str) -> None:
    with pytest.raises(MalformedRequest) as caught:
        parse_transcription(body, TYPE)
    assert caught.value.param == param


def test_image_edits() -> None:
    body = file("image[]", b"1") + file("image[]", b"2") + file("mask", b"3") + field("prompt", b"a hat")
    read = parse_image_edits(body + field("n", b"2") + field("model", b"pix") + END, TYPE)
    chat = read.chat
    assert (chat.surface, chat.model, chat.n, chat.images, chat.max_tokens) == ("image_edits", "pix", 2, 3, 0)
    assert chat.text.pieces == [b"a hat"]
    assert parse_image_edits(body + field("stream", b"True") + END, TYPE).chat.stream


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (file("image", b"1") + END, "prompt"),
        (field("prompt", b"a") + END, "image"),
        (file("image", b"1") + field("prompt", b"a") + field("n", b"0") + END, "n"),
        (file("image", b"1") + field("prompt", b"a") + field("n", b"many") + END, "n"),
        (file("image", b"1") + field("prompt", b"a") + field("n", "²".encode()) + END, "n"),
        (file("image", b"1") + field("prompt", b"a") + field("n", b"9" * 5000) + END, "n"),
    ],
)
def test_image_edits_that_are_refused(body: bytes, param: str) -> None:
    with pytest.raises(MalformedRequest) as caught:
        parse_image_edits(body, TYPE)
    assert caught.value.param == param
