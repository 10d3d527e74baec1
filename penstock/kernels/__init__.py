"""What the kernel of an operator is made of: the expression compiler, and hashing."""
