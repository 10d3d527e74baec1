"""Baselines: what the product's mechanisms are compared with, behind the product's own interfaces."""
