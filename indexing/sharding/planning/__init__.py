"""Plans: from the shardings of parameters to those of all instructions, by propagation and cost.

In come a program, a mesh and the specs of some arrays; out comes a `Plan`: the assignment of least
estimated cost, its local program, and what devices exchange.
Read `sharded_programs.shard` first, then `propagation.propagate`.
"""
