"""The commands of `hlo-indexing`, one a module; `indexing.cli` loads the one that is asked for."""
