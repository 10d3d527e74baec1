"""MQTT: a source and a sink of the messages of a broker."""
