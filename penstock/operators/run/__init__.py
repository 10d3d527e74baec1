"""What every operator is at run time, and how a graph becomes operators."""
