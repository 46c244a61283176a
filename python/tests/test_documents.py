"""What the documents quote is real: code stands in the examples, and output is what they print. Starts its own MPI.

DNDS_TEST_MPIEXEC=LIST: how CTest starts ranks: mpiexec and its flags separated by ;, RANKS for the number.
"""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs/guides/python.md").read_text()
EXAMPLES = ROOT / "python/examples"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)


def run(ranks, *command):
    """The standard output of a program on `ranks` ranks."""
    launcher = os.environ["DNDS_TEST_MPIEXEC"].split(";")
    start = [part.replace("RANKS", str(ranks)) for part in launcher]
    done = subprocess.run([*start, sys.executable, *command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_code_stands_in_the_examples():
    sources = [textwrap.dedent(path.read_text()) for path in sorted(EXAMPLES.glob("*.py"))]
    quoted = blocks("python")
    assert len(quoted) >= 5
    for block in quoted:
        assert any(block in source for source in sources), f"no example holds\n{block}"


def test_expressions_for_users_of_other_libraries_work():
    text = (ROOT / "docs/start/coming_from.md").read_text()
    table = text[text.index("| DOLFINx in Python | DNDS |"):].split("\n\n")[0]
    expressions = [code for line in table.splitlines() for code in re.findall(r"`([^`]*)`", line.split("|")[2])
                   if code.startswith("mesh.") or code.startswith("u.")]
    assert len(expressions) >= 8
    program = ["import dnds", "mesh = dnds.Mesh.box('triangles', (4, 4))", "u = mesh.field(name='u')",
               "i, rows, c, points = 0, [0], 0, [[0.5, 0.5]]"]
    program += [code.replace('"wall"', '"x-"') for code in expressions]
    run(1, "-c", "\n".join(program))


@pytest.mark.parametrize("notebook", sorted((ROOT / "docs/notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_cells_of_notebooks_show_what_is_stored(notebook, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("h5py")
    program = pathlib.Path(__file__).with_name("notebook.py")
    code = f"import os, runpy, sys; os.chdir({str(tmp_path)!r}); sys.argv[1:] = [{str(notebook)!r}]; " \
           f"runpy.run_path({str(program)!r}, run_name='__main__')"
    assert "show what is stored" in run(1, "-c", code)


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: block.splitlines()[0])
def test_output_is_what_examples_print(block):
    command, expected = block.split("\n", 1)
    ranks, program = re.fullmatch(r"\$ mpiexec -n (\d+) python3 (\w+\.py)", command).groups()
    assert run(int(ranks), str(EXAMPLES / program)) == expected
