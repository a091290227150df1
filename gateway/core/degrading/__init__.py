"""Whether a backend works worse than it used to, why, and how that is known."""
