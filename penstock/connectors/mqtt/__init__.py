"""Messages of an MQTT broker, in and out."""
