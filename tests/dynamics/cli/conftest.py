from sketches import sketched

__all__ = ["sketched"]
