"""Rolling: repeated segments of a tape become loops."""
