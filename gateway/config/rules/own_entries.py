"""Own entries of the catalogue: usable, and each name once."""

from __future__ import annotations

from gateway.config.catalog.names import loose_name, plain_name
from gateway.config.document import Config
from gateway.config.problems import Path
from gateway.config.rules.findings import Findings

__all__ = ["own_entries"]


def own_entries(config: Config, findings: Findings) -> None:
    """Every entry can be counted with, and no two go by one name."""
    _, wrong = config.catalogue.read
    for path, why, absent in wrong:
        say = findings.warn if absent and findings.lenient else findings.error
        say(("catalogue", *path), f"can't be used: {why}")
    models, devices = config.catalogue.models, config.catalogue.devices
    _once("models", [[loose_name(plain_name(n)) for n in (m.id, *m.aliases)] for m in models], findings)
    _once("devices", [[d.id, *d.aliases] for d in devices], findings)
    for i, model in enumerate(models):
        _layers(("catalogue", "models", i), model.layers, sum(one.layers for one in model.attention), findings)


def _once(section: str, names: list[list[str]], findings: Findings) -> None:
    seen: dict[str, int] = {}
    for i, own in enumerate(names):
        if twice := next((name for name in own if name in seen), None):
            other = f"catalogue.{section}[{seen[twice]}]"
            findings.error(("catalogue", section, i, "id"), f"goes by a name of {other}", "names tell entries apart")
        for name in own:
            seen.setdefault(name, i)


def _layers(path: Path, depth: int | None, sorted_out: int, findings: Findings) -> None:
    if depth is not None and 0 < sorted_out < depth:
        message = f"says {depth} layers, and {sorted_out} by kind"
        findings.warn((*path, "attention"), message, "layers that keep no cache of their own are `kind: kv_shared`")
