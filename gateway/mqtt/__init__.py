"""The mirror at an MQTT broker: events, states of lanes and the verdict go there, and nothing comes from it.

Nothing here may delay a lane or the start. Events that the broker has not taken wait in the store.
"""
