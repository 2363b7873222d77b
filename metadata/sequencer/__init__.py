"""Redis as the sequencer: one Lua script per verb, one Python file of keys, one typed client."""
