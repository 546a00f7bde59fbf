"""A fit from its first start to its certificate."""
