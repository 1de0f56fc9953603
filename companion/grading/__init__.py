"""The instructor's desk: marking apart from what marks, in a sandbox, on plain data."""
