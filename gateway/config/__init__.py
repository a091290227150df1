"""The YAML that operators write: read, checked, explained, and compiled into the values that decisions use."""
