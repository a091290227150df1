"""Command line: every subcommand is a file of its own."""
