"""What clients' surfaces are translated to, for the table of surfaces."""

from __future__ import annotations

SPOKEN: dict[str, tuple[str, ...]] = {
    "chat": ("messages",),
    "responses": ("chat", "messages"),
    "messages": ("chat",),
    "ollama_chat": ("chat", "messages"),
    "ollama_generate": ("chat", "messages"),
    "ollama_embed": ("embeddings",),
}
