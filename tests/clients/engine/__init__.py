"""A scripted engine for real clients: it talks, thinks and calls tools by rule, on any set of surfaces."""
