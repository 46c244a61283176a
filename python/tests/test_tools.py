import ast
import json
import pathlib

import dnds
import h5py
import numpy as np
import pytest
from dnds import mesh as mesh_tool
from dnds import plot
from dnds.plotting import VtkContent


@pytest.fixture
def results(comm, shared_path):
    """A file with fields, one without a plane, and a history."""
    for fill, cells in (("mixed-surface", (6, 4)), ("mixed-volume", (6, 3, 3))):
        mesh = dnds.Mesh.box(fill, cells, partitioner="curve", comm=comm)
        with dnds.VtkFile(mesh, shared_path / f"{fill}.vtkhdf", ranks=True) as file:
            for step in range(3):
                centres = mesh.metrics().centroids[: mesh.cells.owned]
                file.write(step, {"speed": centres * step, "numbers": mesh.cells.file_numbers[: mesh.cells.owned]},
                           {"height": mesh.coordinates[: mesh.nodes.owned, 1].copy()})
        mesh.write_cgns(shared_path / f"{fill}.cgns")
    if comm.rank == 0:
        (shared_path / "history.csv").write_text("step, density, lift\n1, 1.0, -0.1\n2, 0.1, 0.1\n3, 0.01, 0.2\n")
    comm.Barrier()
    return shared_path


def test_pictures_of_lines():
    from dnds.plotting import draw_line
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    points = dnds.line((0, 0, 0), (3, 4, 0), 3)
    (line,) = draw_line(axes, points, np.array([1.0, np.nan, 2.0]), label="u")
    np.testing.assert_allclose(line.get_xdata(), [0, 2.5, 5])
    assert len(draw_line(axes, points, np.zeros((3, 2)))) == 2


def test_pictures(comm, results, tmp_path, capsys):
    picture = tmp_path / "flow.png"
    history = ["--history", str(results / "history.csv")]
    for name in ("mixed-surface", "mixed-volume"):
        assert plot.main([str(results / f"{name}.vtkhdf"), "--output", str(picture), *history]) == 0
        assert picture.read_bytes().startswith(b"\x89PNG") and "the picture is" in capsys.readouterr().out
    figure = plot.draw(results / "mixed-surface.vtkhdf", "numbers", step=1, zoom=(0, 0.5, 0, 0.5))
    titles = [axes.get_title("left") for axes in figure.axes]
    field = figure.axes[0]
    np.testing.assert_array_equal(np.sort(field.collections[0].get_array()), np.arange(36))
    assert titles[0] == "numbers, t = 1" and any(title.startswith(f"owners: {comm.size} rank") for title in titles)
    low, high = field.collections[0].get_clim()
    assert 0 <= low < high < 35, "the colours are those of what is seen"
    labels = {text.get_text() for axes in plot.draw(results / "mixed-surface.vtkhdf").axes for text in axes.texts}
    assert labels == ({f"rank {rank}" for rank in range(comm.size)} if comm.size > 1 else set())
    heights = plot.draw(results / "mixed-surface.vtkhdf", "height").axes[0].collections[0].get_array()
    assert 0 < heights.min() and heights.max() < 1
    volume = plot.draw(results / "mixed-volume.vtkhdf", "numbers").axes[0].collections[0]
    assert len(volume.get_array()) == dnds.Mesh.box("mixed-volume", (6, 3, 3), comm=comm).report["boundary_faces"]


def test_pictures_of_vectors_say_what_is_drawn(results):
    def drawn(**choice):
        axes = plot.draw(results / "mixed-surface.vtkhdf", "speed", **choice).axes[0]
        return axes.get_title("left"), axes.collections[0].get_array()

    titles, values = zip(drawn(), drawn(component=0), drawn(component=1), strict=True)
    assert titles == ("|speed|, t = 2", "speed[0], t = 2", "speed[1], t = 2")
    np.testing.assert_allclose(values[0], np.hypot(values[1], values[2]))
    assert plot.draw(results / "mixed-surface.vtkhdf", "height").axes[0].get_title("left") == "height, t = 2"


def test_pictures_of_what_is_not_there(results, tmp_path, capsys):
    path = str(results / "mixed-surface.vtkhdf")
    for arguments, message in ((["--field", "wind"], "no field 'wind', but numbers, speed, height"),
                               (["--field", "speed", "--component", "3"], "has components 0 to 2: there is no 3"),
                               (["--step", "9"], "has 3 steps: there is no step 9"),
                               (["--history", str(results / "mixed-surface.vtkhdf")], "mixed-surface")):
        assert plot.main([path, "-o", str(tmp_path / "x.png"), *arguments]) == 1
        assert message in capsys.readouterr().err
    assert plot.main([str(tmp_path / "missing.vtkhdf")]) == 1
    assert plot.main([str(results / "mixed-volume.vtkhdf"), "--zoom", "0", "1", "0", "1"]) == 1
    assert "not flat" in capsys.readouterr().err
    forces = tmp_path / "forces.csv"
    forces.write_text("step, lift\n1, -0.1\n2, 0.2\n")
    assert plot.main([path, "--output", str(tmp_path / "x.png"), "--history", str(forces)]) == 1
    assert "no column of the history is positive" in capsys.readouterr().err
    other = tmp_path / "other.h5"
    for content, message in (("else", "not a VTKHDF file"), ("VTKHDF", "not a file of an unstructured mesh")):
        with h5py.File(other, "w") as file:
            file.create_group(content)
        assert plot.main([str(other)]) == 1
        assert f"other.h5 is {message}" in capsys.readouterr().err


def test_values_at_nodes_are_those_of_cells(results):
    """Of what is linear the mean over corners is known: its value at the mean of the corners."""
    for name in ("mixed-surface", "mixed-volume"):
        content = VtkContent(results / f"{name}.vtkhdf")
        with h5py.File(results / f"{name}.vtkhdf") as file:
            offsets, nodes = file["VTKHDF/Offsets"][:], file["VTKHDF/Connectivity"][:]
        means = plot.values_of(content, "height")
        for cell in range(content.cell_count):
            corners = content.points[nodes[offsets[cell] : offsets[cell + 1]]]
            assert np.isclose(means[cell], corners[:, 1].mean(), atol=1e-14)
        content.point_fields["height"][nodes[0]] = np.nan
        of_node = [cell for cell in range(content.cell_count) if nodes[0] in nodes[offsets[cell] : offsets[cell + 1]]]
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(plot.values_of(content, "height"))), of_node)


def test_mesh_info(comm, results, capsys):
    path = results / "mixed-volume.cgns"
    assert mesh_tool.main(["info", str(path)]) == 0
    text = capsys.readouterr().out
    assert mesh_tool.main(["info", str(path), "--json"]) == 0
    report = capsys.readouterr().out
    assert mesh_tool.main(["info", str(results / "missing.cgns")]) == 2
    errors = capsys.readouterr().err
    if comm.rank == 0:
        assert "HEXA_8" in text and "volume      1" in text and "x-: " in text
        described = json.loads(report)
        assert np.isclose(described["volume"], 1) and described["bbox"] == [[0, 1]] * 3
        assert described["boundaries"]["x-"] > 0 and described["faces_unassigned"] == 0
        assert "missing.cgns" in errors
    else:
        assert text == report == errors == ""


def test_the_package_is_typed():
    folder = pathlib.Path(dnds.__file__).parent
    assert (folder / "py.typed").exists()
    stub = folder / "_core.pyi"
    if not stub.exists():
        pytest.skip("a build under sanitizers has no stubs")
    text = stub.read_text()
    for line in ("class Field:", "def pull(self) -> None", "def owned(self) -> ", "def read(path: str | os.PathLike"):
        assert line in text
    public = {name: value for name, value in vars(dnds._core).items() if not name.startswith("_")}
    assert len(public) > 20 and all(value.__doc__ for value in public.values() if callable(value))
    known = {getattr(node, "name", None) or node.target.id for node in ast.parse(text).body
             if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AnnAssign))}
    assert set(public) <= known and {"__version__", "_check_mpi"} <= known
