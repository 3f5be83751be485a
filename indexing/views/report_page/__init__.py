"""Pages about modules for browsers: graph, table, maps, tiles and traffic in one HTML file.

`page` assembles the file, from chunks of compressed JSON (`chunks`): the structure of the module
(`structure`), and the details of each instruction (`details`), with the tiles of its outputs
(`tile_details`).  `changes` compares two modules by their `correspondence`.  ``assets/`` has the
style and the scripts, in ``vendor/`` the graph layout.

`explorer_graphs` and `schedule_trace` write the same for Model Explorer and Perfetto.
"""
