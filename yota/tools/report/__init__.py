"""The tape explorer: one HTML page that links source, tape, rules and generated code."""
