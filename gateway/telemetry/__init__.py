"""What can be seen from outside: metrics, the decision journal, logs (see README.md)."""
