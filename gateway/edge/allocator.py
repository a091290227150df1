"""The C library's memory, made to go back to the system when something large is freed."""

from __future__ import annotations

import ctypes

__all__ = ["MAPPED_BYTES", "give_back_large"]

MAPPED_BYTES = 1024 * 1024
"""Bytes from which each piece of memory is mapped on its own. By default glibc raises this to the largest piece freed
so far, 32 MiB at most, and what lies in its heaps then stays: 250 MB after four bodies of 60 MB."""
_M_MMAP_THRESHOLD = -3  # malloc.h


def give_back_large() -> bool:
    """Have large pieces unmapped when they are freed; False where the C library has no such setting (musl, macOS)."""
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES))
    except (AttributeError, OSError):
        return False
