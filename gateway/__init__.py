"""kvgate: an admission-controlling inference gateway."""

__version__ = "0.1.0"
