"""Write the table of docs/surfaces.md anew."""

from __future__ import annotations

from gateway.engines.offering import markdown
from gateway.wire.translations import SPOKEN
from tests.engines.test_offering import DOCUMENT

if __name__ == "__main__":
    head, _, _ = DOCUMENT.read_text().partition("\n| surface |")
    DOCUMENT.write_text(f"{head}\n{markdown(SPOKEN)}")
