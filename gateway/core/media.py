"""What a prompt holds beside text, as numbers: pictures, sounds and documents."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NO_MEDIA", "Media", "Picture"]


@dataclass(frozen=True, slots=True)
class Picture:
    """Pixels; None where they are not known, as of one that only an engine fetches. low: asked for at low detail."""

    width: int | None = None
    height: int | None = None
    low: bool = False


@dataclass(frozen=True, slots=True)
class Media:
    """seconds: of sound. pages: of documents that come as files, by their size."""

    pictures: tuple[Picture, ...] = ()
    seconds: float = 0.0
    pages: int = 0

    def __bool__(self) -> bool:
        return bool(self.pictures or self.seconds or self.pages)


NO_MEDIA = Media()
