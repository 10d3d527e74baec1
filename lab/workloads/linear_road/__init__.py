"""The Linear Road benchmark: tolls that depend on traffic, and accidents that make them fall away."""
