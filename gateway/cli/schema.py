"""`kvgate schema`: the JSON Schema of the file, or the OpenAPI description of the public port."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

__all__ = ["add_parser", "run"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `schema` to the command line."""
    parser = subparsers.add_parser(
        "schema",
        help="print the JSON Schema of the file, for editors",
        description="Prints the JSON Schema of the file. Editors with a YAML language server use it when the file "
        "begins with `# yaml-language-server: $schema=./kvgate.schema.json`.",
    )
    parser.add_argument(
        "--openapi", action="store_true", help="print the OpenAPI description of the public port instead"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write it to a file instead")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print or write the schema; 0, or 1 when the file can't be written."""
    if args.openapi:
        from gateway.edge.openapi import openapi_text as text
    else:
        from gateway.config.schema import schema_text as text

    if args.out is None:
        print(text(), end="")
        return 0
    try:
        args.out.write_text(text(), encoding="utf-8")
    except OSError as error:
        print(f"kvgate schema: {args.out}: {error.strerror}", file=sys.stderr)
        return 1
    return 0
