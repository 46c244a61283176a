import dnds
import numpy as np
import pytest
from mpi4py import MPI

meshio = pytest.importorskip("meshio", reason="needs the package meshio (Debian: python3-meshio)")
plugin = pytest.importorskip("dnds.meshio")


@pytest.mark.parametrize(("fill", "kinds"), [
    ("mixed-surface", {"triangle", "quad", "line"}),
    ("mixed-volume", {"tetra", "pyramid", "wedge", "hexahedron", "triangle", "quad"}),
])
def test_files_are_read_in_their_order(tmp_path, fill, kinds):
    mesh = dnds.Mesh.box(fill, (5, 4, 3), shuffled=True, comm=MPI.COMM_SELF)
    path = tmp_path / "box.cgns"
    mesh.write_cgns(path)
    read = meshio.read(path, "dnds")
    assert {block.type for block in read.cells} == kinds
    order = np.argsort(mesh.nodes.file_numbers)
    np.testing.assert_array_equal(read.points, mesh.coordinates[order])
    assert sum(len(block) for block in read.cells if block.dim == mesh.dimension) == mesh.cells.owned
    centres = np.empty((mesh.cells.owned, 3))
    for cell in range(mesh.cells.owned):
        centres[mesh.cells.file_numbers[cell]] = mesh.coordinates[mesh.cell_nodes[cell]].mean(axis=0)
    written = {kind: rows.mean(axis=1) for kind, rows in ((b.type, read.points[b.data]) for b in read.cells)}
    for kind, found in written.items():
        if kind != "line" and not (mesh.dimension == 3 and kind in ("triangle", "quad")):
            expected = [centre for centre in centres if np.abs(found - centre).max(axis=1).min() < 1e-12]
            np.testing.assert_allclose(found, expected, atol=1e-12)
    sizes = {patch["name"]: len(patch["faces"]) for patch in mesh.patches if len(patch["faces"])}
    assert {name: sum(map(len, chosen)) for name, chosen in read.cell_sets.items()} == sizes


def test_polyhedra_have_faces(tmp_path):
    mesh = dnds.Mesh.box("polyhedra", (3, 3, 3), comm=MPI.COMM_SELF)
    read = plugin.of_mesh(mesh)
    blocks = [block for block in read.cells if block.type.startswith("polyhedron")]
    assert sum(len(block) for block in blocks) == mesh.cells.owned
    for block in blocks:
        for faces in block.data:
            assert len(np.unique(np.concatenate(faces))) == int(block.type[len("polyhedron"):])


def test_errors_are_those_of_meshio(tmp_path):
    (tmp_path / "no.cgns").write_text("nothing")
    with pytest.raises(meshio.ReadError, match=r"no\.cgns"):
        plugin.read(tmp_path / "no.cgns")


def test_a_part_is_no_mesh():
    if MPI.COMM_WORLD.size == 1:
        pytest.skip("needs two ranks")
    with pytest.raises(dnds.ArgumentError, match="COMM_SELF"):
        plugin.of_mesh(dnds.Mesh.box("triangles", (4, 4), comm=MPI.COMM_WORLD))
