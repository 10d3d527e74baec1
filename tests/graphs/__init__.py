"""Random graphs: their data, the menu of their steps, and how they are drawn."""
