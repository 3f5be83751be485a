"""Programs on shards: collectives that change shardings, and the local program of an assignment."""
