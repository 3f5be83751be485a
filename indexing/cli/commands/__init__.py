"""The commands, one module each; their work is done by the rooms below."""
