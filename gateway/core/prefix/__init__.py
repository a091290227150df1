"""Which backend already holds the start of a prompt, and how far to believe it (see README.md)."""
