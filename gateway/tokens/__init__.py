"""From a body to numbers: what was asked, how long it is, what it starts with."""
