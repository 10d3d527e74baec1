"""Records of Kafka topics as events, and results as records."""
