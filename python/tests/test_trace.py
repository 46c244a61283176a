"""The tool for traces, as users start it: in a process without MPI and without the compiled module."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("matplotlib")
PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "dnds"


def event(phase, rank, name, category, begin, took=None, thread=0, **more):
    found = {"ph": phase, "pid": rank, "tid": thread, "name": name, "cat": category, "ts": begin}
    return found | ({} if took is None else {"dur": took}) | {key: value for key, value in more.items() if value != ""}


def events():
    """Two ranks in a second: 0 computes for 0.6 s and waits for 0.4 s; 1 computes all the time. Rank 0's pull runs for
    0.8 s, of which 0.4 s are hidden."""
    return [
        {"ph": "M", "pid": 0, "tid": 0, "name": "process_name", "args": {"name": "rank 0 on a"}},
        event("X", 0, 'flux "of" \u00e4', "part", 0.0, 600000.0, args={"rows": 5}),
        event("b", 0, "state", "pull", 200000.0, id="0x1", args={"bytes": 2000000}),
        event("X", 0, "state", "wait", 600000.0, 300000.0, args={"peer": 1}),
        event("X", 0, "state", "wait", 900000.0, 100000.0, args={"peer": 1}),
        event("e", 0, "state", "pull", 1000000.0, id="0x1"),
        event("X", 1, "flux", "part", 0.0, 1000000.0),
        event("b", 1, "never ends", "pull", 0.0, id="0x2"),
    ]


def text_of(some, end="\n]\n"):
    return "[\n" + ",\n".join(json.dumps(one) for one in some) + end


@pytest.fixture
def run(tmp_path):
    """Runs the tool with an mpi4py that cannot be imported."""
    (tmp_path / "mpi4py.py").write_text("raise ImportError('the tool wants MPI')\n")
    (tmp_path / "dnds").symlink_to(PACKAGE)

    def of(*arguments):
        return subprocess.run([sys.executable, "-m", "dnds.trace", *arguments], cwd=tmp_path, text=True,
                              capture_output=True, env=os.environ | {"PYTHONPATH": str(tmp_path)}, timeout=100)

    return of


def row_of(done, rank):
    """What the table says of a rank."""
    return next(line.split() for line in done.stdout.splitlines() if line.split()[:1] == [str(rank)])


def test_the_table_and_the_picture(tmp_path, run):
    (tmp_path / "trace.json").write_text(text_of(events()))
    done = run("trace.json")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "trace.png").read_bytes().startswith(b"\x89PNG")
    assert row_of(done, 0) == ["0", "1", "60.0%", "40.0%", "0.0%", "1", "800", "ms", "50.0%", "2", "MB"]
    assert row_of(done, 1)[:5] == ["1", "1", "100.0%", "0.0%", "0.0%"]
    assert "rank 0: 400 ms for rank 1, most in 'state' (2 waits, the longest 300 ms)" in done.stdout
    assert "5 spans of 2 ranks in 1 s" in done.stdout


def test_a_part_of_the_run(tmp_path, run):
    (tmp_path / "trace.json").write_text(text_of(events()))
    done = run("trace.json", "--first", "0.5", "--last", "0.7", "-o", "part.png")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "part.png").exists() and not (tmp_path / "trace.png").exists()
    assert row_of(done, 0)[2:4] == ["50.0%", "50.0%"]
    done = run("trace.json", "--first", "3")
    assert done.returncode == 1 and "is about 0 s to 1 s" in done.stderr


def test_files_of_killed_runs_and_of_other_programs(tmp_path, run):
    whole = text_of(events())
    for content in (text_of(events(), ",\n" + '{"ph":"X","name":"to'), text_of(events(), ""), json.dumps(events()),
                    json.dumps({"traceEvents": events()}), json.dumps({"traceEvents": events()}, indent=1)):
        assert content != whole
        (tmp_path / "trace.json").write_text(content)
        done = run("trace.json")
        assert done.returncode == 0, done.stderr
        assert "5 spans of 2 ranks" in done.stdout


def test_what_is_no_trace(tmp_path, run):
    done = run("missing.json")
    assert done.returncode == 1 and "there is no missing.json" in done.stderr and "DNDS_TRACE" in done.stderr
    for content, message in (("[\n]\n", "has no spans"), ("", "has no spans"), ("some text\n", "is not a trace"),
                             ('{"a": 1}', "has no spans"), ("[1, 2]", "is not a trace"), ("\x00\xff", "is not a trace"),
                             ('[{"ph": "X", "name": "x"}]', "is not a trace")):
        (tmp_path / "trace.json").write_bytes(content.encode("latin-1"))
        done = run("trace.json")
        assert done.returncode == 1, content
        assert message in done.stderr and "Traceback" not in done.stderr, (content, done.stderr)


def test_many_spans(tmp_path, run):
    with open(tmp_path / "trace.json", "w") as file:
        file.write("[\n")
        for k in range(100000):
            file.write(json.dumps(event("X", k % 2, f"task {k % 12}", "part", 10.0 * k, 12.0)) + ",\n")
        file.write(json.dumps(event("X", 0, "w", "wait", 1e6, 1.0)) + "\n]\n")
    done = run("trace.json")
    assert done.returncode == 0, done.stderr
    assert "100,001 spans" in done.stdout and row_of(done, 0)[2] == "60.0%"
    assert "rank 0: 1 us in 'w' (1 wait" in done.stdout
