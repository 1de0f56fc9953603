"""Trust regions and proximal policy optimization: the shared code of the executable chapter."""

__version__ = "0.1.0"
