"""Programs on shards: collectives that change shardings, and the local program of an assignment.

In come a flat program and an assignment, the axes that split each factor; out comes the program
that every device executes, with the bytes that its collectives send.
Read `program.partition` first, then `moves.cheapest_moves`.
"""
