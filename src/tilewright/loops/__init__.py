"""Loop recognition: loop nests of any language replaced by kernels."""
