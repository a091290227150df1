"""Whether a backend may be sent requests: what probes say and what requests met there."""
