"""The start of `tilewright cc`: loads Tilewright for files with nests of loops only.

`import tilewright` takes longer than a compiler takes for most files. What stands between a build and its
compiler therefore imports the standard library alone; `launch.py` loads the rest when a module needs it.
"""
