"""Code generation for recognised products: a guarded kernel call in front of the original loops."""
