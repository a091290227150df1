"""One engine model with two clocks: simulated in virtual time, or served on loopback in real time."""
