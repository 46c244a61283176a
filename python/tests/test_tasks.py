"""Graphs and plans: what they compute is what one gets by pulling everything before each task, to the bit."""

import gc
import sys
import weakref

import dnds
import numpy as np
import pytest
from mpi4py import MPI


def box(comm, fill="triangles", cells=(12, 12), **options):
    return dnds.Mesh.box(fill, cells, jitter=0.1, shuffled=True, partitioner="curve", comm=comm, **options)


def start(field):
    """Values that depend on the global number only."""
    numbers = field.global_rows[: field.owned_count].astype(float)
    shape = numbers.reshape((-1,) + (1,) * (field.owned.ndim - 1))
    field.owned[:] = np.sin(shape + np.arange(field.owned.shape[-1] if field.owned.ndim > 1 else 1))
    return field


class Diffusion:
    """A gradient over cells, fluxes over faces and an update, as functions of row lists and arrays."""

    def __init__(self, mesh, recompute=False):
        self.mesh = mesh
        cells = mesh.face_cells
        self.sides = np.where(cells < 0, cells[:, :1], cells)
        self.u = start(mesh.field(3, name="u"))
        self.g = mesh.field(3, name="g")
        self.flux = mesh.field(3, at="faces", name="flux")
        self.recompute = recompute

    def gradient(self, cells, u, g):
        place, others = self.mesh.cell_cells.pairs(cells)
        there = others >= 0
        g[cells] = 0
        np.add.at(g, cells[place[there]], 0.25 * (u[others[there]] - u[cells[place[there]]]))

    def fluxes(self, faces, u, g, flux):
        first, second = self.sides[faces].T
        flux[faces] = 0.1 * (u[second] - u[first]) + 0.01 * (g[first] + g[second]) * u[first]

    def update(self, cells, flux, u):
        place, faces = self.mesh.cell_faces.pairs(cells)
        sign = np.where(self.mesh.face_cells[faces, 0] == cells[place], 1.0, -1.0)
        change = np.zeros((len(cells), 3))
        np.add.at(change, place, sign[:, None] * flux[faces])
        u[cells] += change

    def graph(self):
        mesh, u, g, flux = self.mesh, self.u, self.g, self.flux
        graph = dnds.Graph("diffusion", mesh.comm)
        graph.task(mesh.cells, reads=[u, u.through(mesh.cell_cells)], writes=g,
                   recompute_ghosts=self.recompute)(self.gradient)
        graph.task(mesh.faces, reads=[u.through(mesh.face_cells), g.through(mesh.face_cells)], writes=[flux],
                   recompute_ghosts=self.recompute)(self.fluxes)
        graph.task(mesh.cells, reads=[flux.through(mesh.cell_faces)], reads_writes=[u])(self.update)
        return graph

    def by_hand(self):
        mesh, u, g, flux = self.mesh, self.u, self.g, self.flux
        cells, faces = np.arange(mesh.cells.owned), np.arange(mesh.faces.owned)
        u.pull()
        self.gradient(cells, u.data, g.data)
        g.pull()
        self.fluxes(faces, u.data, g.data, flux.data)
        flux.pull()
        self.update(cells, flux.data, u.data)


@pytest.mark.parametrize("options", [{}, {"overlap": False}, {"fuse": False, "drop_pulls": False},
                                     {"recompute": "where-possible"}, {"transport": "packed"}])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_plan_computes_what_pulls_by_hand_do(comm, layers, options):
    mesh = box(comm, ghost_layers=layers)
    mine, expected = Diffusion(mesh, recompute=layers == 2), Diffusion(mesh)
    plan = mine.graph().compile(**options)
    for _ in range(4):
        plan.run()
        expected.by_hand()
        np.testing.assert_array_equal(mine.u.owned, expected.u.owned)
        np.testing.assert_array_equal(mine.g.owned, expected.g.owned)
    assert plan.statistics["runs"] == 4
    assert "gradient" in plan.describe() and "digraph" in plan.dot()


class Step:
    """A random task and the same by hand: pull everything, then call the function for all owned rows."""

    def __init__(self, random, mesh, cells, faces):
        self.mesh, self.kind = mesh, random.choice(["mean", "jump", "gather", "add", "swap"])
        self.a, self.b = random.choice(len(cells), 2, replace=False)
        self.p, self.recompute = random.integers(len(faces)), bool(random.integers(2))
        self.factor = random.uniform(0.1, 0.4)

    def mean(self, cells, read, written):
        place, others = self.mesh.cell_cells.pairs(cells)
        there = others >= 0
        written[cells] = np.cos(read[cells])
        np.add.at(written, cells[place[there]], self.factor * read[others[there]])

    def jump(self, faces, read, written):
        first, second = self.mesh.face_cells[faces].T
        second = np.where(second < 0, first, second)
        written[faces] = self.factor * np.sin(read[first] - 2 * read[second])

    def gather(self, cells, read, written):
        place, faces = self.mesh.cell_faces.pairs(cells)
        np.add.at(written, cells[place], self.factor * read[faces])

    def add(self, faces, read, sums):
        sums.add(self.mesh.face_cells[faces], self.factor * np.stack([read[faces], -read[faces]], axis=1))

    def declare(self, graph, cells, faces):
        mesh, a, b, p = self.mesh, cells[self.a], cells[self.b], faces[self.p]
        if self.kind == "mean":
            graph.task(mesh.cells, reads=[a, a.through(mesh.cell_cells)], writes=b,
                       recompute_ghosts=self.recompute)(self.mean)
        elif self.kind == "jump":
            graph.task(mesh.faces, reads=a.through(mesh.face_cells), writes=p,
                       recompute_ghosts=self.recompute)(self.jump)
        elif self.kind == "gather":
            graph.task(mesh.cells, reads=p.through(mesh.cell_faces), reads_writes=a,
                       recompute_ghosts=self.recompute)(self.gather)
        elif self.kind == "add":
            graph.task(mesh.faces, reads=p, adds=a.through(mesh.face_cells))(self.add)
        else:
            graph.swap(a, b)

    def by_hand(self, cells, faces):
        a, b, p = cells[self.a], cells[self.b], faces[self.p]
        if self.kind == "swap":
            return a.swap(b)
        for field in (a, b, p):
            field.pull()
        own_cells, own_faces = np.arange(self.mesh.cells.owned), np.arange(self.mesh.faces.owned)
        if self.kind == "mean":
            self.mean(own_cells, a.data, b.data)
        elif self.kind == "jump":
            self.jump(own_faces, a.data, p.data)
        elif self.kind == "gather":
            self.gather(own_cells, p.data, a.data)
        else:
            a.ghosts[:] = 0
            sides = self.mesh.face_cells[own_faces]
            values = self.factor * np.stack([p.data[own_faces], -p.data[own_faces]], axis=1)
            np.add.at(a.data, sides[sides >= 0], values[sides >= 0])
            a.push("sum")


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_are_what_pulls_by_hand_give(comm, seed):
    random = np.random.default_rng(seed)
    mesh = box(comm, ["triangles", "quadrilaterals", "mixed-surface"][seed % 3], (8, 8), ghost_layers=1 + seed % 2)
    mine, expected = ([[start(mesh.field(name=f"{at}{k}", at=at)) for k in range(3)] for at in ("cells", "faces")]
                      for _ in range(2))
    steps = [Step(random, mesh, *mine) for _ in range(8)]
    graph = dnds.Graph("random", comm)
    for step in steps:
        step.declare(graph, *mine)
    plan = graph.compile(recompute=["as-declared", "where-possible", "never"][seed // 2 % 3], fuse=seed % 5 != 0)
    for run in range(3):
        plan.run()
        for step in steps:
            step.by_hand(*expected)
        for one, other in zip(sum(mine, []), sum(expected, []), strict=True):
            np.testing.assert_array_equal(one.owned, other.owned, f"{one.name}: {[s.kind for s in steps]}")
        if run == 1 and comm.rank == seed % comm.size:
            mine[0][0].owned[0] = expected[0][0].owned[0] = 0.5


def test_recomputing_ghosts_saves_pulls(comm):
    mesh = box(comm, ghost_layers=2)
    plain, saving = Diffusion(mesh).graph().compile(), Diffusion(mesh, recompute=True).graph().compile()
    for plan in (plain, saving):
        plan.run()
    pulls = plain.statistics["transfers"] - saving.statistics["transfers"]
    assert pulls == 0 if comm.size == 1 else comm.allreduce(pulls, MPI.MIN) > 0


def counting(comm, mesh):
    """A plan that reads neighbours of u, and how many pulls it made."""
    u, v = start(mesh.field(name="u")), mesh.field(name="v")
    graph = dnds.Graph("counting", comm)

    @graph.task(mesh.cells, reads=[u.through(mesh.cell_cells)], writes=[v])
    def largest(cells, u, v):
        place, others = mesh.cell_cells.pairs(cells)
        there = others >= 0
        v[cells] = -9
        np.maximum.at(v, cells[place[there]], u[others[there]])

    def expected():
        u.pull()
        out = np.full(len(v), -9.0)
        largest(np.arange(mesh.cells.owned), u.data, out)
        return out[: mesh.cells.owned]

    return u, v, graph.compile(), expected


def test_current_ghosts_are_not_pulled_again(comm):
    mesh = box(comm)
    u, v, plan, expected = counting(comm, mesh)

    def pulls():
        before = plan.statistics["transfers"]
        plan.run()
        return plan.statistics["transfers"] - before

    some = int(comm.size > 1)
    assert (pulls(), pulls(), pulls()) == (some, 0, 0)
    u.owned[:] += 1
    assert (pulls(), pulls()) == (some, 0)
    u.owned[:] += 1
    u.pull()
    assert (pulls(), pulls()) == (0, 0)
    kept = u.owned
    assert pulls() == some, "who takes a view may write"
    kept[:] *= 2
    assert pulls() == 0, "what a kept view writes is not seen"
    dnds.changed(u)
    assert (pulls(), pulls()) == (some, 0)
    np.testing.assert_array_equal(v.owned, expected())


def test_one_rank_may_write_or_look_alone(comm):
    mesh = box(comm)
    u, v, plan, expected = counting(comm, mesh)
    for rank in range(comm.size):
        plan.run()
        if comm.rank == rank:
            u.owned[:] += 10
        plan.run()
        got = v.owned.copy()
        np.testing.assert_array_equal(got, expected())
        if comm.rank == rank:
            assert u.owned.max() >= 9
            _ = u.ghosts
        plan.run()
        np.testing.assert_array_equal(v.owned, got)


@pytest.mark.parametrize("width", [None, 2])
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_sums_are_those_of_pushes(comm, dtype, width):
    mesh = box(comm)
    sums, expected = (mesh.field(width, dtype, name=name) for name in ("sums", "expected"))
    weights = mesh.field(name="weights", at="faces", width=width, dtype=dtype)
    weights.owned[:] = (weights.global_rows[: weights.owned_count] % 97).reshape((-1,) + (1,) * (width is not None))
    graph = dnds.Graph("sums", comm)

    @graph.task(mesh.faces, reads=[weights], adds=[sums.through(mesh.face_cells)])
    def spread(faces, weights, sums):
        sums.add(mesh.face_cells[faces, 0], weights[faces])
        sums.add(mesh.face_cells[faces, 1], -2 * weights[faces])
        sums.add(mesh.face_cells[faces], 1)

    plan = graph.compile()
    own = mesh.face_cells[: mesh.faces.owned]
    for _ in range(3):
        plan.run()
        expected.ghosts[:] = 0
        for rows, values in ((own[:, 0], weights.owned), (own[:, 1], -2 * weights.owned), (own, 1)):
            there = rows >= 0
            np.add.at(expected.data, rows[there], values if np.isscalar(values) else values[there])
        expected.push("sum")
        np.testing.assert_array_equal(sums.owned, expected.owned)


def test_added_values_are_checked(comm):
    mesh = box(comm)
    sums = mesh.field(2, "int32", name="sums")
    for values, error in ((0.5, dnds.ArgumentError), (np.ones((3, 5), int), ValueError), (1, dnds.IndexError)):
        graph = dnds.Graph("sums", comm)
        rows = [0, 1, len(sums)] if error is dnds.IndexError else [0, 1, 2]

        @graph.task(mesh.faces, adds=[sums.through(mesh.face_cells)])
        def wrong(faces, sums, rows=rows, values=values):
            sums.add(rows, values)

        with pytest.raises((error, dnds.RevokedError)):
            graph.compile().run()
        dnds.recover(comm)


def test_fields_are_swapped_inside_a_plan(comm):
    mesh = box(comm)
    old, new = start(mesh.field(name="old")), mesh.field(name="new")
    graph = dnds.Graph("relaxation", comm)

    @graph.task(mesh.cells, reads=[old, old.through(mesh.cell_cells)], writes=[new])
    def mean(cells, old, new):
        place, others = mesh.cell_cells.pairs(cells)
        values = old[np.where(others < 0, cells[place], others)]
        new[cells] = np.bincount(place, values, len(cells)) / np.bincount(place, minlength=len(cells))

    with pytest.raises(dnds.ArgumentError, match="through"):
        graph.task(mesh.cells, writes=[old.through(mesh.cell_cells)])(mean)
    with pytest.raises(dnds.ArgumentError, match="Declare once that it reads and writes its own row"):
        dnds.Graph("contradiction", comm).task(mesh.cells, reads=[old.through(mesh.cell_cells)], writes=[old])(mean)
    graph.swap(old, new)
    plan = graph.compile()
    a, b = start(mesh.field(name="a")), mesh.field(name="b")
    for _ in range(5):
        plan.run()
        a.pull()
        mean(np.arange(mesh.cells.owned), a.data, b.data)
        a.swap(b)
        np.testing.assert_array_equal(old.owned, a.owned)


def test_calls_and_regions(comm):
    mesh = box(comm)
    u, v = start(mesh.field(name="u")), mesh.field(name="v")
    left = mesh.metrics().centroids[:, 0] < 0.4
    region = mesh.cells.region("left", left & (np.arange(len(left)) < mesh.cells.owned))
    np.testing.assert_array_equal(region.rows, np.flatnonzero(left[: mesh.cells.owned]))
    np.testing.assert_array_equal(mesh.cells.region("inner").rows, u.inner_rows)
    np.testing.assert_array_equal(u.region("boundary").rows, u.boundary_rows)
    assert "left" in repr(region) and region.name == "left"
    with pytest.raises(dnds.ArgumentError, match="owned, ghosts, inner, boundary, all"):
        mesh.cells.region("nowhere")
    with pytest.raises(dnds.ArgumentError, match="truth values"):
        mesh.cells.region("half", [True])
    with pytest.raises(dnds.IndexError):
        mesh.cells.region("far", [len(u)])
    graph = dnds.Graph("calls", comm)
    seen = []

    @graph.task(region, writes=[v])
    def inflow(cells, v):
        assert len(cells) > 0 and not cells.flags.writeable
        v[cells] = 7

    @graph.call(reads=[u, v.without_ghosts(), v.within(region)], reads_writes=[])
    def look(u, v):
        seen.append((u.copy(), v[: mesh.cells.owned].copy()))

    plan = graph.compile()
    plan.run()
    u.pull()
    np.testing.assert_array_equal(seen[0][0], u.data)
    np.testing.assert_array_equal(seen[0][1], np.where(left[: mesh.cells.owned], 7, 0))


def test_tasks_loop_over_rows_of_fields_without_a_mesh(comm):
    rows = 4
    u, v = dnds.Field(rows, comm=comm, name="u"), dnds.Field(rows, comm=comm, name="v")
    numbers = rows * comm.rank + np.arange(rows)
    total = rows * comm.size
    u.set_ghosts([(numbers[0] - 1) % total, (numbers[-1] + 1) % total])
    v.share_ghosts(u)
    neighbours = np.stack([u.to_local((numbers - 1) % total), u.to_local((numbers + 1) % total)], axis=1)
    graph = dnds.Graph("ring", comm)

    @graph.task(u, reads=[u.through(neighbours)], writes=[v], name="differences")
    def difference(rows, u, v):
        v[rows] = u[neighbours[rows, 1]] - u[neighbours[rows, 0]]

    u.owned[:] = numbers**2
    plan = graph.compile()
    plan.run()
    np.testing.assert_array_equal(v.owned, ((numbers + 1) % total) ** 2 - ((numbers - 1) % total) ** 2)
    assert "differences" in plan.describe()
    u.set_ghosts([])
    with pytest.raises((dnds.StateError, dnds.RevokedError), match="other ghosts"):
        plan.run()
    with pytest.raises(dnds.IndexError, match="32 bits"):
        u.through([2**40])
    with pytest.raises(dnds.ArgumentError, match="integers"):
        u.through([0.5])


def test_pulled_ghosts_are_finished(comm):
    mesh = box(comm, "quadrilaterals", (8, 8))
    u, v = start(mesh.field(name="u")), mesh.field(name="v")
    graph = dnds.Graph("finished", comm)

    @graph.finish_pulls(u, u.region("ghosts"))
    def turn(ghosts, u):
        u[ghosts] *= -1

    @graph.call(reads=[u], writes=[v])
    def copy(u, v):
        v[:] = u

    plan = graph.compile()
    for _ in range(3):
        plan.run()
        np.testing.assert_array_equal(v.owned, u.owned)
        np.testing.assert_array_equal(v.ghosts, -np.sin(u.global_rows[u.owned_count :]))
    with pytest.raises(dnds.ArgumentError, match="owned rows"):
        graph.finish_pulls(u, u.region("all"))(turn)


def test_what_finishes_pulls_may_raise(comm):
    mesh = box(comm)
    u, _, _, _ = counting(comm, mesh)
    graph = dnds.Graph("unfinished", comm)
    graph.call(reads=[u], name="look")(lambda u: None)

    @graph.finish_pulls(u, u.region("ghosts"))
    def turn(ghosts, u):
        raise Unusual

    plan = graph.compile()
    if comm.size == 1:
        plan.run()
        return
    with pytest.raises((Unusual, dnds.RevokedError)) as caught:
        plan.run()
    if sys.version_info >= (3, 11) and isinstance(caught.value, Unusual):
        assert "finished" in caught.value.__notes__[0]


class Unusual(Exception):
    pass


def test_arrays_that_are_read_cannot_be_written(comm):
    mesh = box(comm)
    u, v = mesh.field(name="u"), mesh.field(name="v")
    graph = dnds.Graph("wrong", comm)

    @graph.task(mesh.cells, reads=[u], writes=[v])
    def wrong(cells, u, v):
        u[cells] = 1

    plan = graph.compile()
    with pytest.raises((ValueError, dnds.RevokedError), match="read-only"):
        plan.run()
    comm.Barrier()
    plan.recover()


def test_debug_builds_refuse_rows_that_were_not_declared():
    comm = MPI.COMM_SELF  # each rank sees its own error, and continues without a recovery
    mesh = box(comm)
    u, v, sums = mesh.field(name="u"), mesh.field(2, name="v"), mesh.field(name="sums")
    before = np.roll(np.arange(mesh.cells.owned), 1)
    first, face = u.region("first", [0]), mesh.faces.region("face", [0])
    far = max(set(range(mesh.cells.owned)) - set(mesh.face_cells[0].tolist()))

    def message(kernel, rows, **accesses):
        graph = dnds.Graph("undeclared", comm)
        graph.task(rows, name="task", **accesses)(kernel)
        plan = graph.compile()
        try:
            plan.run()
        except dnds.IndexError as error:
            return error.message

    def reading(key):
        def kernel(cells, u, v):
            v[cells] = np.sum(u[key])

        return message(kernel, first, reads=[u.through(before)], writes=[v])

    def writing(key):
        def kernel(cells, v):
            v[key] = 1

        return message(kernel, first, writes=[v])

    declared = [reading(key) for key in ([before[0]], before[0], (before[0], None))]
    declared += [writing(key) for key in ([0], (0, 1), (slice(0, 1), 0))]
    others = [reading(key) for key in ([0], slice(0, 2), ..., before[:2])]
    others += [writing(key) for key in (1, np.arange(len(v)) < 2)]
    others.append(message(lambda _, sums: sums.add([far], 1), face, adds=[sums.through(mesh.face_cells)]))
    assert declared == [None] * 6
    if not dnds._core._debug_checks:
        assert others == [None] * 7
    else:
        for found, text in zip(others, ["reads row 0 of 'u'"] * 4 + ["writes row 1 of 'v'"] * 2 + ["adds to row"],
                               strict=True):
            assert f"task 'task' {text}" in found


def test_contradictions_are_found(comm):
    mesh = box(comm)
    u, at_nodes = mesh.field(name="u"), mesh.field(at="nodes", name="at_nodes")
    graph = dnds.Graph("wrong", comm)

    def nothing(*_):
        pass

    for options in ({"reads": [at_nodes]}, {"reads": [u], "writes": [u]}, {"reads": [u.through(mesh.face_cells)]},
                    {"reads": [dnds.Field(3, layout="csr", sizes=[1, 2, 3], comm=comm)]}):
        with pytest.raises(dnds.Error):
            graph.task(mesh.cells, **options)(nothing)
    for wrong in (lambda: graph.task(3), lambda: graph.task(mesh.cells, reads=[3])(nothing),
                  lambda: graph.task(mesh.cells)(3), lambda: graph.call(reads=3)(nothing)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(dnds.ArgumentError, match="as-declared"):
        graph.compile(recompute="always")
    with pytest.raises(dnds.ArgumentError):
        graph.compile(transport="pigeons")


def test_ranks_must_declare_the_same(comm):
    mesh = box(comm)
    graph = dnds.Graph("different", comm)
    graph.task(mesh.cells, writes=[mesh.field(name="u")], name=f"task {min(comm.rank, 1)}")(lambda cells, u: None)
    if comm.size == 1:
        graph.compile().run()
    else:
        with pytest.raises(dnds.StateError, match="different graphs"):
            graph.compile()


def test_a_plan_waits_for_other_exchanges(comm):
    mesh = box(comm)
    u, _, plan, _ = counting(comm, mesh)
    u.start_pull()
    comm.Barrier()
    with pytest.raises((dnds.StateError, dnds.RevokedError), match="used by a plan"):
        plan.run()
    comm.Barrier()
    dnds.recover(comm)  # gives the pull up, too
    plan.run()


def test_a_plan_is_not_run_by_its_own_task(comm):
    graph = dnds.Graph("nested", comm)
    plans = []

    @graph.call()
    def nested():
        plans[0].run()

    plans.append(graph.compile())
    with pytest.raises((dnds.StateError, dnds.RevokedError), match="is running"):
        plans[0].run()
    comm.Barrier()


def test_plans_keep_what_they_need_and_are_collected(comm):
    class Solver:
        pass

    def make():
        solver = Solver()
        mesh = box(comm)
        solver.u, solver.v = start(mesh.field(name="u")), mesh.field(name="v")
        graph = dnds.Graph("cycle", comm)

        @graph.task(mesh.cells, reads=[solver.u], writes=[solver.v])
        def copy(cells, u, v):
            v[cells] = u[cells]
            assert solver.plan is not None

        solver.graph, solver.plan = graph, graph.compile()
        return solver

    solver = make()
    gc.collect()
    solver.plan.run()
    np.testing.assert_array_equal(solver.v.owned, solver.u.owned)
    plan, seen = solver.plan, weakref.ref(solver)
    del solver
    gc.collect()
    plan.run()
    assert seen() is not None, "the plan's function holds it"
    del plan
    gc.collect()
    assert seen() is None, "a plan that its function holds goes with it"


def test_ranks_may_have_no_rows(comm):
    source = dnds.SourceMesh.box("triangles", (6, 6), comm=comm)
    mesh = dnds.Mesh.build(source, part=np.zeros(len(source.cell_types), int))
    mine, expected = Diffusion(mesh), Diffusion(mesh)
    plan = mine.graph().compile()
    for _ in range(2):
        plan.run()
        expected.by_hand()
    np.testing.assert_array_equal(mine.u.owned, expected.u.owned)
