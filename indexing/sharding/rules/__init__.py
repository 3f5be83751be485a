"""Sharding rules: the factors that the dimensions of an instruction share, derived from its maps.

In comes an instruction or a computation; out comes its `ShardingRule`, as Shardy writes it.
The maps are read as equal digits of indices; classes of equal digits are factors.
Read `derived_rules.sharding_rule` first.
"""
