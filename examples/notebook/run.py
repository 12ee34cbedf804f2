"""Runs the code cells of a notebook in order, without Jupyter: run.py NOTEBOOK.

The exit status is 1 if a cell fails. The message has the number of the cell, counted from 1 over the cells with code, and
its line.
"""
import json
import pathlib
import sys
import traceback


def run(notebook: pathlib.Path) -> None:
    """Runs all cells in one namespace, as a kernel does; raises what a cell raises."""
    document = json.loads(notebook.read_text(encoding="utf-8"))
    if document["nbformat"] != 4:
        raise ValueError(f"{notebook}: invalid nbformat {document['nbformat']}: want 4")
    cells = ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]
    names = {"__name__": "__main__"}
    for number, source in enumerate(cells, start=1):
        exec(compile(source, f"{notebook.name}, cell {number}", "exec"), names)
    print(f"{notebook.name}: {len(cells)} cells done")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: run.py NOTEBOOK")
    try:
        run(pathlib.Path(sys.argv[1]))
    except Exception:
        traceback.print_exc()
        sys.exit(1)
