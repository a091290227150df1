"""The door: HTTP in, answers out, keys, limits, the admin port (see README.md)."""
