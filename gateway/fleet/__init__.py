"""The fleet: ask engines what they are and how they fare, and keep the answers as a snapshot."""
