"""Real clients, as their makers ship them, against kvgate before a scripted engine; see README.md beside this file."""
