import gc
import inspect

import dnds
import h5py
import numpy as np
import pytest
from memory import assert_alive
from mpi4py import MPI

SURFACES = ["triangles", "quadrilaterals", "mixed-surface"]
VOLUMES = ["tetrahedra", "hexahedra", "prisms", "mixed-volume", "polyhedra"]


def box(fill, cells, comm, **options):
    """Cut by the curve, which takes far less time than PT-Scotch on more ranks than cores."""
    return dnds.Mesh.box(fill, cells, comm=comm, **{"partitioner": "curve"} | options)


@pytest.mark.parametrize("fill", SURFACES + VOLUMES)
def test_boxes_have_their_volume_and_neighbours(comm, fill):
    mesh = box(fill, (6, 4, 4), comm, lengths=(3, 2, 1), jitter=0.1)
    metrics = mesh.metrics()
    size = 6.0
    cells = mesh.cells
    volume = comm.allreduce(metrics.volumes[: cells.owned].sum())
    assert np.isclose(volume, size) and np.isclose(mesh.report["volume"], size) and metrics.closure < 1e-12
    assert comm.allreduce(cells.owned) == cells.global_count == mesh.report["cells_total"]
    assert len(cells) == cells.owned + cells.ghosts == len(mesh.cell_types) == len(mesh.cell_nodes)
    # Both sides of a face agree, and its normal points from the first to the second.
    first, second = mesh.face_cells.T
    inner = (first >= 0) & (second >= 0)
    way = metrics.centroids[second[inner]] - metrics.centroids[first[inner]]
    assert (np.einsum("ij,ij->i", way, metrics.area_vectors[inner]) > 0).all()
    for cell in range(0, cells.owned, 7):
        faces, others = mesh.cell_faces[cell], mesh.cell_cells[cell]
        assert len(faces) == len(others) and len(mesh.cell_nodes[cell]) >= 3
        for face, other in zip(faces, others, strict=True):
            assert set(mesh.face_cells[face]) == {cell, other}
    names = {dnds.element_name(int(kind)) for kind in mesh.cell_types}
    assert names <= set(mesh.report["cells"])


def test_lists_are_shared_read_only_and_outlive_the_mesh(comm):
    mesh = box("hexahedra", (5, 4, 3), comm)
    nodes, coordinates, metrics = mesh.cell_nodes, mesh.coordinates, mesh.metrics()
    data, offsets, volumes, layers = nodes.data, nodes.offsets, metrics.volumes, mesh.cell_layers
    assert np.shares_memory(data, mesh.cell_nodes.data) and np.shares_memory(offsets, nodes.offsets)
    for view in (data, offsets, coordinates, volumes, layers, mesh.face_cells, mesh.boundary_faces):
        assert not view.flags.writeable
    copies = [np.array(view) for view in (data, offsets, coordinates, volumes, layers)]
    del mesh, nodes, metrics
    gc.collect()
    again = [box("hexahedra", (5, 4, 3), comm) for _ in range(3)]
    for view, copy in zip((data, offsets, coordinates, volumes, layers), copies, strict=True):
        assert_alive(view)
        np.testing.assert_array_equal(view, copy)
    assert len(again) == 3 and (np.diff(offsets) == 8).all() and data.max() < len(coordinates)


def test_curved_metrics_follow_second_order_elements(comm, shared_path):
    path = shared_path / "curved.msh"
    # A tetrahedron under the map x (1 + y / 5): the corners stay, the middle of the edge from x to y moves.
    nodes = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (.5, 0, 0), (.55, .5, 0), (0, .5, 0), (0, 0, .5), (0, .5, .5),
             (.5, 0, .5)]
    if comm.rank == 0:
        lines = "".join(f"{i} {x} {y} {z}\n" for i, (x, y, z) in enumerate(nodes, 1))
        path.write_text(f"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{len(nodes)}\n{lines}$EndNodes\n"
                        "$Elements\n1\n1 11 2 1 1 1 2 3 4 5 6 7 8 9 10\n$EndElements\n")
    comm.barrier()
    mesh = dnds.Mesh.read(path, comm=comm)
    corners, curved = mesh.metrics(), mesh.metrics(curved=True)
    for metrics, volume in ((corners, 1 / 6), (curved, 1 / 6 + 1 / 120)):
        assert np.isclose(comm.allreduce(metrics.volumes[: mesh.cells.owned].sum()), volume) and metrics.closure < 1e-15
    assert len(corners.surface_areas) == 0 and len(curved.surface_areas) == len(mesh.faces)
    assert (curved.surface_areas >= curved.areas - 1e-15).all() and curved.inverted_cells == 0


def test_parts_of_a_mesh_say_what_they_are(comm):
    mesh = box("hexahedra", (5, 4, 3), comm)
    for at in ("cells", "nodes", "faces"):
        part = getattr(mesh, at)
        assert repr(part) == (
            f"<dnds.Entities: {at} of {mesh.origin}, on rank {comm.rank} of {comm.size}: {part.owned} owned, "
            f"{part.ghosts} ghosts, {part.global_count} on all ranks>")
    nodes = mesh.cell_nodes
    assert f"{len(nodes)} rows, {8 * len(nodes)} entries>" in repr(nodes) and "<dnds.Adjacency '" in repr(nodes)
    assert repr(mesh.metrics()).startswith(
        f"<dnds.Metrics of {len(mesh.cells)} cells and {len(mesh.faces)} faces, ghosts included: closure ")


@pytest.mark.parametrize("at", ["cells", "nodes", "faces", "edges"])
def test_fields_on_entities_are_pulled(comm, at):
    mesh = box("mixed-volume", (8, 4, 4), comm)
    entities = mesh.edges() if at == "edges" else getattr(mesh, at)
    u = mesh.field(2, at=at, name="u")
    assert len(u) == len(entities) and u.owned_count == entities.owned
    np.testing.assert_array_equal(u.global_rows, entities.global_numbers)
    u.owned[:, 1] = entities.global_numbers[: entities.owned]
    u.pull()
    np.testing.assert_array_equal(u.data[:, 1], entities.global_numbers)
    owners = mesh.field(None, "int32", at=at)
    owners.owned[:] = comm.rank
    owners.pull()
    np.testing.assert_array_equal(owners.data, entities.owners)
    with pytest.raises(dnds.ArgumentError, match="cells, nodes, faces or edges"):
        mesh.field(at="vertices")


def test_adjacencies_connect_all_kinds_of_entities(comm):
    mesh = box("mixed-volume", (6, 3, 3), comm)
    kinds = {"cells": mesh.cells, "faces": mesh.faces, "edges": mesh.edges(), "nodes": mesh.nodes}
    counts = [kinds[kind].global_count for kind in ("nodes", "edges", "faces", "cells")]
    assert counts[0] - counts[1] + counts[2] - counts[3] == 1  # Euler's characteristic of a ball
    for of in kinds:
        for to in kinds:
            if of == to:
                continue
            rows, back = mesh.adjacency(of, to), mesh.adjacency(to, of)
            assert len(rows) == len(kinds[of]) and np.shares_memory(rows.data, mesh.adjacency(of, to).data)
            pairs = set(zip(*map(np.ndarray.tolist, rows.pairs(np.arange(len(rows)))), strict=True))
            inverse = set(zip(*map(np.ndarray.tolist, back.pairs(np.arange(len(back)))), strict=True))
            assert pairs == {(a, b) for b, a in inverse}
    np.testing.assert_array_equal(mesh.adjacency("cells", "faces").data, mesh.cell_faces.data)
    low, high = mesh.nodes.file_numbers[mesh.adjacency("edges", "nodes").data].reshape(-1, 2).T
    assert (low < high).all() and "edges of" in repr(mesh.edges())
    with pytest.raises(dnds.ArgumentError, match="'edges' has no region 'nowhere'"):
        mesh.edges().region("nowhere")
    with pytest.raises(dnds.ArgumentError, match="from cells to cells"):
        mesh.adjacency("cells", "cells")


def test_looking_at_a_mesh_on_one_rank_waits_for_no_other(comm):
    mesh = box("tetrahedra", (3, 3, 3), comm)
    if comm.rank == 0:
        assert "edges" in dict(inspect.getmembers(mesh))
    comm.barrier()
    assert mesh.edges().global_count == 3 * 3 * 16 + 3 * 4 * 9 + 27  # of bricks, their faces and their diagonals


def test_ghosts_bring_coordinates_of_their_cells(comm):
    mesh = box("tetrahedra", (5, 5, 5), comm, jitter=0.15, shuffled=True, ghost_layers=2)
    x = mesh.field(3)
    x.owned[:] = mesh.metrics().centroids[: mesh.cells.owned]
    with x.start_pull():
        inner = x.owned[x.inner_rows].sum()
    np.testing.assert_array_equal(x.data, mesh.metrics().centroids)
    assert np.isfinite(inner) and mesh.cell_layers.max(initial=0) <= 2


def test_the_first_layers_of_ghosts_alone(comm):
    mesh = box("tetrahedra", (5, 5, 5), comm, ghost_layers=2)
    u, v = mesh.field(), mesh.field(None, "int32", name="v")
    near = mesh.first_layers(1, [u, v])
    u.owned[:] = 1 + mesh.cells.global_numbers[: mesh.cells.owned]
    v.owned[:] = 1
    near.pull()
    layers = mesh.cell_layers
    np.testing.assert_array_equal(u.data, np.where(layers <= 1, 1 + mesh.cells.global_numbers, 0))
    np.testing.assert_array_equal(v.data, layers <= 1)
    with pytest.raises(dnds.ArgumentError, match="on the cells of the mesh"):
        mesh.first_layers(1, [mesh.field(at="nodes")])
    with pytest.raises(dnds.ArgumentError, match="at least one field"):
        mesh.first_layers(1, [])
    with pytest.raises(dnds.ArgumentError):
        mesh.first_layers(-1, [u])


def test_options_of_build(comm):
    steps = []
    source = dnds.SourceMesh.box("hexahedra", (4, 4, 4), comm=comm)
    count = source.cell_count
    first = comm.rank * count // comm.size
    mine = (comm.rank + 1) * count // comm.size - first
    mesh = dnds.Mesh.build(source, part=np.full(mine, comm.size - 1 - comm.rank), ghosts_by="faces",
                           progress=steps.append)
    assert mesh.cells.owned > 0 and "faces" in steps and "number" in steps
    with pytest.raises(dnds.StateError, match="used up"):
        dnds.Mesh.build(source)
    with pytest.raises(dnds.ArgumentError, match="graph or curve"):
        dnds.Mesh.box(partitioner="metis", comm=comm)
    with pytest.raises(dnds.ArgumentError):
        dnds.Mesh.box("tetrahedra", (2, 2, 2), part=[7000], comm=comm)
    with pytest.raises(dnds.ArgumentError, match="two or three directions"):
        dnds.Mesh.box("tetrahedra", (2,), comm=comm)
    other = dnds.Mesh.box("triangles", (9, 9), partitioner="curve", cell_order="reverse-cuthill-mckee", comm=comm)
    assert f"{other.cells.owned} owned cells" in repr(other) and "162 cells on all ranks" in repr(other)
    assert other.dimension == 2 and other.report["cells"] == {"TRI_3": 162}


def test_boundaries_and_periodic_images(comm):
    mesh = box("hexahedra", (6, 4, 4), comm, periodic=(True,))
    assert mesh.report["periodic_pairs"] == 16
    assert [patch["name"] for patch in mesh.patches][:4] == ["y-", "y+", "z-", "z+"]
    metrics = mesh.metrics()
    owned = mesh.patch("y-")[mesh.patch("y-") < mesh.faces.owned]
    assert np.isclose(comm.allreduce(metrics.areas[owned].sum()), 1)
    assert np.allclose(metrics.face_centres[mesh.patch("y-"), 1], 0)
    np.testing.assert_array_equal(mesh.face_cells[mesh.boundary_faces, 0], mesh.boundary_cells)
    shifts = [image["shift"][0] for image in mesh.images]
    assert shifts[0] == 0 and set(np.abs(shifts)) <= {0, 1}
    ghosts = slice(mesh.cells.owned, None)
    x = mesh.field(3)
    x.owned[:] = metrics.centroids[: mesh.cells.owned]
    x.pull()
    moved = x.data[ghosts] + np.array([mesh.images[i]["shift"] for i in mesh.cells.images[ghosts]]).reshape(-1, 3)
    np.testing.assert_allclose(moved, metrics.centroids[ghosts], atol=1e-14)
    assert np.array_equal(mesh.patch("y-", owned=True), owned)
    assert np.array_equal(mesh.cells.own_file_numbers, mesh.cells.file_numbers[: mesh.cells.owned])
    names = [patch["name"] for patch in mesh.patches]
    assert set(mesh.face_patches[mesh.patch("y-")]) <= {names.index("y-")}
    assert np.array_equal(np.flatnonzero(mesh.face_patches != -1), mesh.boundary_faces)
    with pytest.raises(dnds.ArgumentError, match="there is no patch 'wing'; there are: 'y-'"):
        mesh.patch("wing")


@pytest.mark.parametrize("partitioner", ["graph", "curve"])
def test_weights_of_cells(comm, partitioner):
    """Pyramids, prisms and tetrahedra cost 1, hexahedra 50."""
    source = dnds.SourceMesh.box("mixed-volume", (8, 8, 8), comm=comm)
    hexahedra = np.array([dnds.element_name(int(kind)) == "HEXA_8" for kind in source.cell_types], bool)
    mesh = dnds.Mesh.build(source, partitioner=partitioner, weights=np.where(hexahedra, 50, 1))
    costs = np.array([50 if dnds.element_name(int(kind)) == "HEXA_8" else 1 for kind in mesh.cell_types])
    owned = costs[: mesh.cells.owned]
    total = comm.allreduce(int(owned.sum()))
    assert total == comm.allreduce(int(np.where(hexahedra, 50, 1).sum()))
    assert comm.allreduce(int(owned.sum()), MPI.MAX) <= 1.1 * total / comm.size

    part = mesh.partition(3, partitioner=partitioner, weights=owned)
    report = mesh.partition_report(part, 3, weights=owned)
    assert sum(entry["weight"] for entry in report["parts"]) == total
    assert report["imbalance"] < 0.1
    with pytest.raises(dnds.ArgumentError, match="weight"):
        mesh.partition(3, partitioner=partitioner, weights=owned[1:])
    with pytest.raises(dnds.ArgumentError, match="weight"):
        mesh.partition(3, partitioner=partitioner, weights=0 * owned)


def test_partitions_of_any_number_of_parts(comm):
    mesh = dnds.Mesh.box("tetrahedra", (6, 6, 6), comm=comm)
    for partitioner in ("graph", "curve"):
        part = mesh.partition(5, partitioner=partitioner)
        assert len(part) == mesh.cells.owned and part.dtype == np.int32
        report = mesh.partition_report(part, 5)
        assert sum(cost["cells"] for cost in report["parts"]) == mesh.cells.global_count
        assert 0 < report["cut"] < report["inner_faces"] and report["imbalance"] < 0.2
    with pytest.raises(dnds.ArgumentError):
        mesh.partition_report([9] * mesh.cells.owned, 5)


def test_vtk_files_hold_fields_in_file_order(comm, shared_path):
    mesh = box("mixed-volume", (6, 3, 3), comm, shuffled=True)
    u = mesh.field(3, name="u")
    path = shared_path / "flow.vtkhdf"
    with dnds.VtkFile(mesh, path, ranks=True) as file:
        for step in range(3):
            u.owned[:] = mesh.cells.file_numbers[: mesh.cells.owned, None] + step
            file.write(0.5 * step, {"u": u, "one": np.ones(mesh.cells.owned)},
                       nodes={"height": mesh.coordinates[: mesh.nodes.owned, 2]})
    comm.Barrier()
    with h5py.File(path) as content:
        cells = mesh.cells.global_count
        root = content["VTKHDF"]
        np.testing.assert_array_equal(root["Steps/Values"], [0, 0.5, 1])
        np.testing.assert_array_equal(root["CellData/u"][-cells:, 1], np.arange(cells) + 2)
        np.testing.assert_array_equal(root["PointData/height"][: mesh.nodes.global_count], root["Points"][:, 2])
        assert set(root["CellData"]) == {"u", "one", "rank"}
    with dnds.VtkFile(mesh, path, ranks=True) as file:
        assert file.continue_from(path, 0.5) == 2
        with pytest.raises(dnds.StateError, match="2 steps already"):
            file.continue_from(path)
        file.write(0.75, {"u": u, "one": np.ones(mesh.cells.owned)},
                   nodes={"height": mesh.coordinates[: mesh.nodes.owned, 2]})
    comm.Barrier()
    with h5py.File(path) as content:
        root = content["VTKHDF"]
        np.testing.assert_array_equal(root["Steps/Values"], [0, 0.5, 0.75])
        np.testing.assert_array_equal(root["CellData/u"][cells : 2 * cells, 1], np.arange(cells) + 1)
    with pytest.raises(dnds.StateError, match="closed"):
        file.write(2)
    with pytest.raises(dnds.DataError, match="no-such-folder"):
        dnds.VtkFile(mesh, shared_path / "no-such-folder" / "x.vtkhdf")
    with pytest.raises(dnds.ArgumentError, match="dimensions"):
        mesh.write_cgns(shared_path / "x.cgns", {"v": np.zeros((1, 1, 1))})


def test_errors_of_writers_name_the_field(comm, shared_path):
    mesh = box("triangles", (3, 3), comm)
    good, short = np.ones(mesh.cells.owned), np.ones(mesh.cells.owned + 1)
    with dnds.VtkFile(mesh, shared_path / "fields.vtkhdf") as file:
        with pytest.raises(dnds.ArgumentError, match="cell field 'short' has"):
            file.write(0, {"good": good, "short": short})
        with pytest.raises(dnds.ArgumentError, match="node field 'short' has"):
            file.write(0, cells={"good": good}, nodes={"short": np.ones(mesh.nodes.owned + 1)})
        with pytest.raises(dnds.ArgumentError, match="'text' are not numbers"):
            file.write(0, {"text": np.full(mesh.cells.owned, "a")})
        file.write(0, {"good": good})
    with pytest.raises(dnds.ArgumentError, match="cell field 'short' has"):
        mesh.write_cgns(shared_path / "fields.cgns", {"short": short})


def test_an_exception_leaves_no_complete_file(comm, shared_path):
    mesh = box("triangles", (3, 3), comm)
    path = shared_path / "never.vtkhdf"
    with pytest.raises(ZeroDivisionError), dnds.VtkFile(mesh, path):
        raise ZeroDivisionError
    comm.Barrier()
    assert not path.exists()


def test_a_file_that_was_not_closed_is_named(comm, shared_path, capfd):
    mesh = box("triangles", (3, 3), comm)
    path = shared_path / "open.vtkhdf"
    file = dnds.VtkFile(mesh, path)
    capfd.readouterr()
    del file
    gc.collect()
    said = capfd.readouterr().err
    assert (f"{path} is not complete: its VtkFile was neither closed nor used by 'with'" in said) == (comm.rank == 0)
    heard = []
    dnds.set_warning_sink(heard.append)
    file = dnds.VtkFile(mesh, path)
    del file
    gc.collect()
    dnds.set_warning_sink(None)
    assert capfd.readouterr().err == "" and len(heard) == (1 if comm.rank == 0 else 0)
    with pytest.raises(dnds.ArgumentError, match="sink"):
        dnds.set_warning_sink(3)
    comm.Barrier()
    assert not path.exists()


@pytest.mark.parametrize("file_type", ["hdf5", "adf"])
def test_cgns_files_are_written_and_read(comm, shared_path, file_type):
    mesh = box("prisms", (4, 3, 2), comm, jitter=0.1)
    path = shared_path / f"box-{file_type}.cgns"
    rank = mesh.field(name="rank")
    mesh.write_cgns(path, {"rank": rank}, {"x": mesh.coordinates[: mesh.nodes.owned, 0].copy()}, file_type=file_type)
    again = dnds.Mesh.read(path, comm, partitioner="curve")
    assert again.report["cells"] == mesh.report["cells"] and again.report["patches"] == mesh.report["patches"]
    assert np.isclose(again.report["volume"], 1) and again.origin == str(path)
    with pytest.raises(dnds.DataError, match="missing.cgns"):
        dnds.Mesh.read(shared_path / "missing.cgns", comm)


def test_cases_of_openfoam_are_read(comm, shared_path):
    """Two cubes of which the second has a cyclic partner: the far side of the first."""
    def file(name, kind, content):
        return f"FoamFile {{ format ascii; class {kind}; object {name}; }}\n{content}\n"

    corners = [(x, y, z) for z in (0, 1) for y in (0, 1) for x in (0, 1, 2)]
    faces = [(1, 4, 10, 7), (0, 6, 9, 3), (2, 5, 11, 8)]  # between the cubes; at x = 0; at x = 2
    for x in (0, 1):
        faces += [tuple(x + i for i in face) for face in ((0, 1, 7, 6), (3, 9, 10, 4), (0, 3, 4, 1), (6, 7, 10, 9))]
    owner = [0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1]
    patches = [("left", 1, "type cyclic; neighbourPatch right; startFace 1;"),
               ("right", 1, "type cyclic; neighbourPatch left; startFace 2;"), ("walls", 8, "type wall; startFace 3;")]
    lines = [" ".join(map(str, corner)) for corner in corners]
    case = shared_path / "cubes"
    if comm.rank == 0:
        (case / "constant/polyMesh").mkdir(parents=True)
        for name, kind, content in (
                ("points", "vectorField", f"{len(lines)}({''.join(f'({line})' for line in lines)})"),
                ("faces", "faceList", f"{len(faces)}({' '.join('4(%d %d %d %d)' % face for face in faces)})"),
                ("owner", "labelList", f"{len(owner)}({' '.join(map(str, owner))})"),
                ("neighbour", "labelList", "1(1)"),
                ("boundary", "polyBoundaryMesh",
                 "3(" + "".join(f"{name} {{ nFaces {size}; {more} }}" for name, size, more in patches) + ")")):
            (case / "constant/polyMesh" / name).write_text(file(name, kind, content))
    comm.Barrier()
    mesh = dnds.Mesh.read(case, comm, partitioner="curve")
    assert mesh.report["cells"] == {"HEXA_8": 2} and np.isclose(mesh.report["volume"], 2)
    assert mesh.report["periodic_pairs"] == 1 and mesh.report["warnings"] == []
    assert mesh.report["patches"] == {"walls": 8} and mesh.patches[0]["kind"] == "BCWall"
    with pytest.raises(dnds.DataError, match="has no region 'air'"):
        dnds.Mesh.read(case, comm, base="air")


def test_repartitioning_keeps_values_by_file_number(comm):
    mesh = box("tetrahedra", (6, 4, 4), comm)
    u, p, f = mesh.field(2, name="u"), mesh.field(at="nodes", name="p"), mesh.field(at="faces", name="f")
    u.owned[:, 1] = mesh.cells.own_file_numbers
    p.owned[:] = mesh.nodes.own_file_numbers
    f.owned[:] = 3
    u.pull()
    targets = ((mesh.cells.own_file_numbers * 7 // 3) % comm.size).astype("int32")
    after, fields = mesh.repartition(targets, fields=[u, p, f])
    assert (u.owned[:, 1] == mesh.cells.own_file_numbers).all()  # as it was
    assert after.cells.global_count == mesh.cells.global_count
    assert ((after.cells.own_file_numbers * 7 // 3) % comm.size == comm.rank).all()
    moved, nodal, on_faces = fields
    moved.pull()
    nodal.pull()
    assert (moved.data[:, 1] == after.cells.file_numbers).all() and (moved.data[:, 0] == 0).all()
    assert (nodal.data == after.nodes.file_numbers).all()
    assert len(on_faces.owned) == after.faces.owned and (on_faces.owned == 3).all()
    weights = np.where(after.cells.own_file_numbers < 100, 5, 1)
    balanced, [again] = after.repartition(weights=weights, fields=[moved])
    cost = np.where(balanced.cells.own_file_numbers < 100, 5, 1).sum()
    assert cost * comm.size < 1.1 * comm.allreduce(cost)
    assert (again.owned[:, 1] == balanced.cells.own_file_numbers).all()
    with pytest.raises(dnds.ArgumentError, match="is given to rank"):
        mesh.repartition(np.full(mesh.cells.owned, comm.size))
    for other in (moved, mesh.field(at="edges")):
        with pytest.raises(dnds.ArgumentError, match="fields on edges do not move"):
            mesh.repartition(targets, fields=[other])


def test_repartitioning_keeps_ghosts_and_pulls_fields(comm):
    mesh = box("tetrahedra", (6, 4, 4), comm, ghosts_by="faces", ghost_layers=2)
    targets = (mesh.cells.own_file_numbers * 7 // 3) % comm.size

    def fields():  # made while they are listed: kept only by repartition
        for shift in range(3):
            made = mesh.field(name=f"u{shift}")
            made.owned[:] = mesh.cells.own_file_numbers + shift
            yield made

    after, moved = mesh.repartition(targets, fields=fields())
    assert comm.allreduce(int(after.cell_layers.max()), op=max) == (2 if comm.size > 1 else 0)
    for shift, field in enumerate(moved):
        assert (field.data == after.cells.file_numbers + shift).all(), "ghosts are current"
    near, _ = mesh.repartition(targets, ghost_layers=1)
    assert near.cell_layers.max() <= 1


def test_repartitioning_agrees_on_what_is_given(comm):
    mesh = box("tetrahedra", (4, 4, 4), comm)
    u, p = mesh.field(name="u"), mesh.field(at="nodes", name="p")
    targets = np.zeros(mesh.cells.owned, int)
    last = comm.rank == comm.size - 1
    with pytest.raises(dnds.ArgumentError, match="leave out one"):
        mesh.repartition(targets, weights=targets + 1)
    if comm.size == 1:
        return
    for wrong in ([u] if last else [u, u], [u] if last else [p]):
        with pytest.raises(dnds.ArgumentError, match="move different fields"):
            mesh.repartition(targets, fields=wrong)
    with pytest.raises(dnds.ArgumentError, match="targets = "):
        mesh.repartition(None if last else targets)
