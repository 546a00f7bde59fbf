"""The one loop of the search, and where it begins."""
