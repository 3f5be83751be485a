"""Splits of arrays over one mesh axis: the shards of operands that go with a shard of the result.

In come a subject, that is an instruction or a computation with its maps, and a number of shards;
out come its split choices, each with the proof that the shards contain all elements needed.
Read `split_choices.SplitChoices` first, then `containment.containment`.
"""
