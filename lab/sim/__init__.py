"""The simulator: the product's own policies on machines that are not there."""
