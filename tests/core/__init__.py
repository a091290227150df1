"""Pure values in, pure values out: no event loop, no sleeps."""
