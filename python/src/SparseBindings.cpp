#include "AnyArray.hpp"
#include "Arguments.hpp"
#include "Errors.hpp"
#include "SparseHandle.hpp"

#include "DNDS/Geom/Clusters/MeshClusters.hpp"
#include "DNDS/Sparse/SparseRows.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;

template <class T>
class SparseRowsOf final : public AnySparseRows {
  public:
    explicit SparseRowsOf(SparseField<T> &field) : field_(field), rows_(sparseRows(field)) {}
    ArrayBase &cells() override { return rows_.cells; }
    ArrayBase &blocks() override { return rows_.blocks; }
    const std::vector<index> &ids() const override { return rows_.ids; }
    void restore() override { setBlocks(field_, rows_); }

  private:
    SparseField<T> &field_;
    SparseRows<T> rows_;
};

template <class T>
class SparseFieldOf final : public AnySparseField {
  public:
    SparseFieldOf(const SparseArguments &arguments, std::shared_ptr<const SparsePattern> pattern)
        : field_(arguments.name, std::move(pattern), arguments.options, numberOf(arguments.defaultValue)) {}

    explicit SparseFieldOf(SparseField<T> field) : field_(std::move(field)) {}

    SparseFieldCore &core() override { return field_; }
    ElementKind kind() const override { return DNDS::elementKindOf<T>(); }
    nb::object defaultValue() const override { return nb::cast(field_.defaultValue()); }
    Block view(int local, int stage, bool ghosts) override {
        const BlockView<T> cells = field_.view(local, stage);
        Block block;
        block.kind = kind();
        T *first = cells.data();
        for (int d = 0; d < cells.dims(); ++d) {
            const index low = ghosts ? cells.ghostsLow(d) : 0;
            const index high = ghosts ? cells.ghostsHigh(d) : 0;
            first -= low * cells.stride(d);
            block.shape.push_back(toSize(low + cells.extent(d) + high));
            block.strides.push_back(cells.stride(d));
        }
        if (cells.components() > 1) {
            block.shape.push_back(toSize(cells.components()));
            block.strides.push_back(cells.stride(cells.dims()));
        }
        block.data = first;
        return block;
    }
    std::vector<real> sums() const override { return DNDS::sums(field_); }
    std::vector<real> norms2() const override { return DNDS::norms2(field_); }
    std::vector<Extrema> extrema() const override { return DNDS::extrema(field_); }
    void countDropped() override {
        dropped_.reset();
        dropped_.emplace(field_);
    }
    std::vector<real> dropped() const override {
        DNDS_CHECK(dropped_, StateError, "what '{}' loses is not counted: call count_dropped() on all ranks first",
                   field_.name());
        return dropped_->sums();
    }
    void toDense(AnyBlockField &dense) const override { DNDS::toDense(field_, typed(dense)); }
    void fromDense(AnyBlockField &dense) override { DNDS::fromDense(std::as_const(typed(dense)), field_); }
    std::unique_ptr<AnySparseRows> rows() override { return std::make_unique<SparseRowsOf<T>>(field_); }
    void addTo(SparseResults &results) const override { results.add(field_); }
    std::vector<Geom::FieldSlice> fields(const Geom::MeshClusters &clusters) const override {
        return Geom::fieldsOf(clusters, field_);
    }
    std::shared_ptr<AnySparseField> moved(const std::shared_ptr<const SparsePattern> &to) override {
        auto made = std::make_shared<SparseFieldOf>(field_.moved(to));
        if (dropped_) {
            made->dropped_.emplace(std::move(*dropped_));
            made->dropped_->follow(made->field_);
            dropped_.reset();
        }
        return made;
    }

  private:
    static T numberOf(nb::handle given) {
        T number{};
        DNDS_CHECK(nb::try_cast(given, number), ArgumentError, "the default value is no {}",
                   elementKindName(DNDS::elementKindOf<T>()));
        return number;
    }
    BlockField<T> &typed(AnyBlockField &dense) const {
        DNDS_CHECK(dense.array().shape().kind == kind(), ArgumentError, "'{}' has elements of {}, '{}' of {}",
                   field_.name(), elementKindName(kind()), dense.core().name(),
                   elementKindName(dense.array().shape().kind));
        return static_cast<BlockField<T> &>(dense.core());
    }

    SparseField<T> field_;
    std::optional<DroppedSums<T>> dropped_;
};

/// One number for one component, else a list.
nb::object perComponent(const std::vector<real> &values) {
    return values.size() == 1 ? nb::cast(values.front()) : nb::cast(values);
}

/// Lets other threads of Python run in a collective call.
template <class Call>
auto unlocked(Call &&call) {
    const nb::gil_scoped_release others;
    return call();
}

std::shared_ptr<const SparsePattern> patternOf(const GridHandle &grid, const GhostWidths &widths) {
    for (const auto &[known, pattern] : *grid.sparse)
        if (known == widths)
            return pattern;
    auto pattern = unlocked([&] { return SparsePattern::make(grid.comm->view, grid.grid, widths); });
    grid.sparse->emplace_back(widths, pattern);
    return pattern;
}

SparseHandle movedTo(const SparseHandle &self, const GridHandle &grid) {
    const std::shared_ptr<const SparsePattern> pattern = patternOf(grid, self.core().pattern()->ghosts());
    const nb::gil_scoped_release others;
    return {grid.comm, self.field->moved(pattern), blocksFingerprint(*grid.grid)};
}

template <class... Extra>
void bindBlocks(nb::class_<SparseHandle, Extra...> &type) {
    type.def(
            "__len__", [](const SparseHandle &self) { return self.core().blocks(); },
            "Blocks of this rank, there or not.")
        .def_prop_ro(
            "allocated_blocks", [](const SparseHandle &self) { return self.core().allocatedBlocks(); },
            "Blocks of this rank that have memory, ascending.")
        .def(
            "is_allocated", [](const SparseHandle &self, int block) { return self.core().isAllocated(block); },
            "block"_a, "Whether a block of this rank has memory.")
        .def(
            "allocate", [](const SparseHandle &self, int block) { return self.core().allocate(block); }, "block"_a,
            R"(Gives a block memory, at the default value; returns whether it had none. Local.

Raises MemoryError at the pool's limit.)")
        .def(
            "free", [](const SparseHandle &self, int block) { return self.core().free(block); }, "block"_a,
            "Takes its memory away, and with it what was there; returns whether it had any. Local. Views that exist "
            "show what was there.")
        .def(
            "view",
            [](const SparseHandle &self, int block, int stage, bool ghosts) {
                const Block shown = self.field->view(block, stage, ghosts);
                return numpyOf(shown, self.core().keep(block), true);
            },
            "block"_a, "stage"_a = 0, nb::kw_only(), "ghosts"_a = false,
            nb::sig("def view(self, block: int, stage: int = 0, *, ghosts: bool = False) -> NDArray"),
            R"(The cells of a block that is there, or cells and ghosts, without copying: [cells..., components], without the
last dimension for one component. On clusters of a mesh cells and then ghosts have one dimension.

Take views anew after an exchange and after `swap_stages`. Raises StateError for a block that is absent. Local.)")
        .def(
            "number", [](const SparseHandle &self, int block) { return self.core().block(block).block; }, "block"_a,
            "The number of a block of this rank in the grid, or of a cluster in the mesh. Local.")
        .def(
            "box",
            [](const SparseHandle &self, int block, bool ghosts) {
                const BlockMemory &memory = self.core().block(block);
                const Box &box = ghosts ? memory.extent : memory.cells;
                return nb::make_tuple(tupleOf(box.lower, box.dims), tupleOf(box.upper, box.dims));
            },
            "block"_a, nb::kw_only(), "ghosts"_a = false,
            nb::sig("def box(self, block: int, *, ghosts: bool = False) -> tuple[tuple[int, ...], tuple[int, ...]]"),
            "The first cell of a block and the one behind its last, in the grid's numbers. Local.")
        .def(
            "swap_stages", [](const SparseHandle &self, int a, int b) { self.core().swapStages(a, b); }, "a"_a = 0,
            "b"_a = 1, "Exchanges two stages of all blocks: old and new. Local, O(1).")
        .def(
            "moved", &movedTo, "grid"_a, nb::sig("def moved(self, grid: BlockGrid) -> SparseField"),
            R"(The same field on the blocks of a grid of `rebalanced`: what is there, all stages, ghosts, thresholds, counters, and
what was counted as dropped, which only that field counts then. This one keeps its blocks. Groups are made again. Collective.)");
}

template <class... Extra>
void bindValues(nb::class_<SparseHandle, Extra...> &type) {
    type.def(
            "exchange_ghosts", [](const SparseHandle &self) { self.core().exchangeGhosts(); }, Release(),
            R"(Refreshes the ghosts of stage 0, allocates blocks that something has reached, and frees those that have been empty.

Collective the first time, then between peers. Raises MemoryError on a rank where memory ends, which stops the others by
RevokedError.)")
        .def(
            "push_ghosts", [](const SparseHandle &self, std::string_view op) { pushGhosts(self.core(), op); },
            "op"_a = "sum", pushGhostsText)
        .def(
            "clear_ghosts", [](const SparseHandle &self, int stage) { self.core().clearGhosts(stage); }, "stage"_a = 0,
            "Sets the ghosts that stand for cells to the default: before deposits, where an exchange or `swap_stages` "
            "has filled them. Local.")
        .def_prop_ro(
            "traffic",
            [](const SparseHandle &self) {
                return trafficOf(unlocked([&] { return self.core().exchange().traffic(); }));
            },
            nb::sig("def traffic(self) -> dict[str, int]"),
            "What exchanges of this field alone have done on this rank. Collective the first time.")
        .def(
            "sums", [](const SparseHandle &self) { return perComponent(unlocked([&] { return self.field->sums(); })); },
            nb::sig("def sums(self) -> float | list[float]"),
            "The sum over all cells of all ranks, a list for several components; the same bits on any number of "
            "ranks. Collective.")
        .def(
            "norms2",
            [](const SparseHandle &self) { return perComponent(unlocked([&] { return self.field->norms2(); })); },
            nb::sig("def norms2(self) -> float | list[float]"),
            "The root of the sum of squares, as `sums`. Collective.")
        .def(
            "extrema",
            [](const SparseHandle &self) -> nb::object {
                nb::list all;
                for (const Extrema &one : unlocked([&] { return self.field->extrema(); }))
                    all.append(nb::make_tuple(one.least, one.largest));
                return nb::len(all) == 1 ? nb::object(all[0]) : nb::object(all);
            },
            nb::sig("def extrema(self) -> tuple[float, float] | list[tuple[float, float]]"),
            "The least and the largest value over all cells of all ranks, as `sums`. Collective.")
        .def(
            "count_dropped", [](const SparseHandle &self) { self.field->countDropped(); },
            "Counts from now on what is lost with blocks that exchanges free: see `dropped_sums`. On all ranks. Local.")
        .def(
            "dropped_sums",
            [](const SparseHandle &self) { return perComponent(unlocked([&] { return self.field->dropped(); })); },
            nb::sig("def dropped_sums(self) -> float | list[float]"),
            "What blocks held beyond the default when exchanges freed them, since `count_dropped`. What else a "
            "conservative scheme loses has left through faces whose ghosts were the default. Collective.")
        .def(
            "to_dense",
            [](const SparseHandle &self, const BlockFieldHandle &dense) {
                dense.requireLanded("be written");
                self.field->toDense(*dense.field);
            },
            "dense"_a, "Copies the cells to a BlockField on the same grid; absent blocks become the default. Local.")
        .def(
            "from_dense",
            [](const SparseHandle &self, const BlockFieldHandle &dense) { self.field->fromDense(*dense.field); },
            "dense"_a, "The other way round: blocks with something above the allocation threshold are there. Local.")
        .def(
            "write_vtk",
            [](const SparseHandle &self, nb::handle path, const std::array<real, 3> &origin,
               const std::array<real, 3> &spacing,
               bool centres) { writeVtk({self.field}, path, origin, spacing, centres); },
            "path"_a.none(), nb::kw_only(), "origin"_a = std::array<real, 3>{0, 0, 0},
            "spacing"_a = std::array<real, 3>{1, 1, 1}, "centres"_a = false, nb::sig(writeVtkSignature),
            R"(Writes a VTKHDF file with the field, its default where blocks are absent, and `<name>.allocated`, 1 where they are
there. For fields on a grid of one index space; those on a mesh are given to VtkFile.write. `origin` and `spacing` are
x, y, z, of which x is the last index. `centres`: as points in the cells' centres, which VTK 9.1 reads. Collective.)")
        .def_prop_ro(
            "name", [](const SparseHandle &self) { return self.core().name(); }, "The name in messages.")
        .def_prop_ro(
            "components", [](const SparseHandle &self) { return self.core().components(); }, "Numbers of each cell.")
        .def_prop_ro(
            "dtype",
            [](const SparseHandle &self) {
                return nb::module_::import_("numpy").attr("dtype")(std::string(elementKindName(self.field->kind())));
            },
            nb::sig("def dtype(self) -> DType"), "The NumPy type of elements.")
        .def_prop_ro(
            "default", [](const SparseHandle &self) { return self.field->defaultValue(); },
            nb::sig("def default(self) -> float"), "The value of cells in absent blocks.")
        .def_prop_ro(
            "memory_bytes", [](const SparseHandle &self) { return self.core().memoryBytes(); },
            "Bytes of memory that blocks of this field have on this rank.")
        .def("__repr__", [](const SparseHandle &self) {
            return fmt::format("<dnds.SparseField '{}': {} of {} blocks here have memory, {} x {}>", self.core().name(),
                               self.core().allocatedBlocks().size(), self.core().blocks(), self.core().components(),
                               elementKindName(self.field->kind()));
        });
}

SparseHandle sparseFieldOf(const GridHandle &grid, const std::string &name, rowsize components, nb::handle dtype,
                           nb::handle ghosts, std::string_view shape, int stages, real allocationThreshold,
                           real deallocationThreshold, int deallocationCount, bool sendBelowThreshold,
                           nb::handle defaultValue) {
    GhostWidths widths;
    guarded(grid.comm->view, [&] { widths = ghostWidthsOf(ghosts, grid.grid->dims(), shape); });
    return makeSparseField(
        grid.comm, patternOf(grid, widths), blocksFingerprint(*grid.grid),
        {name,
         dtype,
         defaultValue,
         {components, stages, allocationThreshold, deallocationThreshold, deallocationCount, sendBelowThreshold}});
}

} // namespace

SparseHandle makeSparseField(const CommPtr &comm, std::shared_ptr<const SparsePattern> pattern,
                             std::uint64_t fingerprint, const SparseArguments &arguments) {
    SparseHandle made{comm, nullptr, fingerprint};
    guarded(comm->view, [&] {
        made.field = withType(elementKindOf(arguments.dtype), RowKind::Fixed,
                              [&](auto element, auto) -> std::shared_ptr<AnySparseField> {
                                  return std::make_shared<SparseFieldOf<decltype(element)>>(arguments, pattern);
                              });
    });
    return made;
}

void bindSparse(nb::module_ &module) {
    nb::class_<SparseHandle> type(module, "SparseField",
                                  R"(A field that has memory only in blocks in which something is.

Made by `BlockGrid.sparse_field` and `Mesh.sparse_field`. The other blocks have the default value everywhere.

    grid = dnds.BlockGrid.blocks_of((256, 128), (16, 16), periodic=(True, True))
    dust = grid.sparse_field("dust", ghosts=1, stages=2, allocation_threshold=1e-9, deallocation_threshold=1e-10)
    dust.exchange_ghosts()                        # sends what is there; blocks come and go
    for b in dust.allocated_blocks:
        old, new = dust.view(b, ghosts=True), dust.view(b, 1)
)");
    bindBlocks(type);
    bindValues(type);
    bindSparseGroups(module);
    nb::class_<GridHandle> grids = nb::borrow<nb::class_<GridHandle>>(module.attr("BlockGrid"));
    grids.def(
        "sparse_field", &sparseFieldOf, "name"_a = "field", "components"_a = 1, "dtype"_a = "float64", nb::kw_only(),
        "ghosts"_a = 1, "ghost_shape"_a = "box", "stages"_a = 1, "allocation_threshold"_a = 0.0,
        "deallocation_threshold"_a = 0.0, "deallocation_count"_a = 5, "send_below_threshold"_a = true, "default"_a = 0,
        nb::sig("def sparse_field(self, name: str = 'field', components: int = 1, dtype: DTypeLike = 'float64', "
                "*, ghosts: object = 1, ghost_shape: str = 'box', stages: int = 1, allocation_threshold: float = 0.0, "
                "deallocation_threshold: float = 0.0, deallocation_count: int = 5, send_below_threshold: bool = True, "
                "default: float = 0) -> SparseField"),
        R"(A field that has memory only in blocks in which something is; at first nowhere. Collective.

Thresholds, stages and rims below the threshold are explained in the documentation of sparse fields; `ghosts` and `ghost_shape` as of BlockField. Fields
of one grid object with equal ghosts can be exchanged together. What is wrong on one rank raises on all.)");
}

} // namespace DNDS::Python
