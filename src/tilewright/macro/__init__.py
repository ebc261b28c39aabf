"""How to cut: target-independent models and the loop nests they shape."""
