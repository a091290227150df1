"""How long a sound lasts, by the first bytes of its file: exact for WAV and FLAC, from usual bit rates for others."""

from __future__ import annotations

import struct

__all__ = ["seconds_of", "seconds_of_head"]

_BYTES_PER_SECOND = (
    (b"OggS", 4_000),  # Opus speech in full band, 28 to 40 kbit/s (RFC 6716, section 2.1.1)
    (b"\x1aE\xdf\xa3", 4_000),  # WebM, as browsers record it, is Opus too
    (b"ID3", 16_000),  # MP3 of 128 kbit/s, LAME's default
    (b"\xff\xfb", 16_000),
    (b"\xff\xf3", 8_000),  # MPEG 2, as for 16 and 24 kHz
)
_UNKNOWN = 8_000
"""Bytes a second: AAC in MP4 of 64 kbit/s, usual for speech."""
_SLOWEST = 1_000
"""Bytes a second: no header is believed that says less (8 kbit/s)."""
_MOST_CHUNKS = 32


def seconds_of(data: memoryview) -> float:
    """The length of the file `data` in seconds, at most what 8 kbit/s would make of its size."""
    return seconds_of_head(data, len(data))


def seconds_of_head(data: memoryview | bytes, size: int) -> float:
    """The same of a file of `size` bytes of which only the first ones, `data`, are at hand."""
    head = bytes(data[:64])
    seconds = _wav(data, size) if head[:4] == b"RIFF" and head[8:12] == b"WAVE" else _flac(head)
    if seconds is None:
        rate = next((rate for magic, rate in _BYTES_PER_SECOND if head.startswith(magic)), _UNKNOWN)
        seconds = size / rate
    return min(seconds, size / _SLOWEST)


def _wav(data: memoryview | bytes, whole: int) -> float | None:
    at, rate = 12, 0
    for _ in range(_MOST_CHUNKS):
        if at + 8 > len(data):
            return (whole - at) / rate if rate and whole > len(data) else None
        name, size = struct.unpack_from("<4sI", data, at)
        at += 8
        if name == b"fmt " and at + 12 <= len(data):
            rate = struct.unpack_from("<I", data, at + 8)[0]
        if name == b"data":
            # A recorder that could not go back says 0 or 2^32 - 1.
            real = whole - at
            return (min(size, real) or real) / rate if rate else None
        at += size + (size & 1)
    return None


def _flac(head: bytes) -> float | None:
    # STREAMINFO comes first (RFC 9639, section 8.2): 20 bits of rate, 3 of channels, 5 of depth, 36 of samples.
    if len(head) < 26 or head[:4] != b"fLaC":
        return None
    packed = int.from_bytes(head[18:26], "big")
    rate, samples = packed >> 44, packed & (1 << 36) - 1
    return samples / rate if rate and samples else None
