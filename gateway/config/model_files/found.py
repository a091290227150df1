"""A model by whatever it is called: a folder, a config.json, a GGUF file, or a name that the catalogue knows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gateway.config.catalog.book import SHIPPED, Catalogue
from gateway.config.catalog.names import weights_in_name
from gateway.config.formats import WEIGHT_BYTES
from gateway.config.model_files.config_folder import described_by_config
from gateway.config.model_files.gguf_files import described_by_gguf, gguf_in
from gateway.core.kv.described import DescribedModel
from gateway.errors import ConfigError

__all__ = ["FoundModel", "find_model"]


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model and where it was found: `origin` in words, `path` of the file, None for the catalogue."""

    described: DescribedModel
    origin: str
    path: Path | None = None


def find_model(name: str, catalogue: Catalogue = SHIPPED) -> FoundModel:
    """The model behind a path or a name. Raises ConfigError that says what is wrong, or which name is near.

    A catalogue's model has a number format of its weights only if its name tells one.
    """
    path = Path(name).expanduser()
    try:
        if path.is_dir():
            return _in_folder(path)
        if path.is_file():
            return _file(path)
    except OSError as error:
        raise ConfigError(f"{name} can't be read: {(error.strerror or str(error)).lower()}") from None
    except ValueError as error:  # a broken file, or a name that can be no path
        raise ConfigError(f"{name}: {error}", code="model_file_invalid") from None
    shape = catalogue.model(name)
    if shape is None:
        raise ConfigError(_unknown(name, catalogue), code="unknown_model")
    given = weights_in_name(name) or ("mxfp4" if shape.family == "gpt-oss" else "")
    size = round(shape.params_total * WEIGHT_BYTES[given]) if given else 0
    caveats = () if shape.kv_known else ("its layers are not published: nothing can be said of its KV cache",)
    found = DescribedModel(shape, shape.family, size, given, caveats=caveats)
    return FoundModel(found, "the catalogue")


def _in_folder(folder: Path) -> FoundModel:
    config = folder / "config.json"
    if config.is_file():
        return FoundModel(described_by_config(config), "its config.json", config)
    for snapshot in sorted(folder.glob("snapshots/*/config.json")):  # as the Hugging Face cache keeps it
        name = folder.name.removeprefix("models--").replace("--", "/")
        return FoundModel(described_by_config(snapshot, name=name), "its config.json", snapshot)
    found = gguf_in(folder)
    if not found:
        raise ConfigError(f"{folder} has neither a config.json nor a .gguf file")
    if len(found) > 1:
        names = ", ".join(one.name for one in found[:5])
        raise ConfigError(f"{folder} has {len(found)} models: name one of {names}{', ...' if len(found) > 5 else ''}")
    return _file(found[0])


def _file(path: Path) -> FoundModel:
    if path.suffix == ".json":
        return FoundModel(described_by_config(path), "its config.json", path)
    return FoundModel(described_by_gguf(path), "its GGUF header", path)


def _unknown(name: str, catalogue: Catalogue) -> str:
    if name.endswith((".gguf", ".json")) or name.startswith(("/", "./", "../", "~")):
        return f"there is no file {name}"
    near = catalogue.nearest_model(name)
    hint = f"did you mean {near}?" if near else "a config.json or a .gguf file will do too"
    return f"the catalogue has no model {name}, and there is no such file; {hint}"
