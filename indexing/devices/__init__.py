"""Several devices: which elements of which devices an element of a device needs.

`indexing.devices.analysis` answers the questions; `Devices` says how many there are.
"""
