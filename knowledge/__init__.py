"""What flagwise knows: data only, read through `importlib.resources` by `solver.knowledge`."""
