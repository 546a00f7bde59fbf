"""The commands, one file each: its function ``command`` is the command, and the file's name is its name.

A file that is put here is a command; nothing else has to be changed.
"""
