"""Plans: from the shardings of parameters to those of all instructions, by propagation and cost."""
