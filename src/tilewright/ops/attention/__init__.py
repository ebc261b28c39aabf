"""Fused attention and its gradients."""
