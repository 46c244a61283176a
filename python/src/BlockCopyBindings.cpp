#include "Arguments.hpp"
#include "BlockHandles.hpp"
#include "Errors.hpp"
#include "Exchanger.hpp"

#include "DNDS/Blocks/BlockField.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;

BlockCopyHandle makeCopy(BlockFieldHandle &from, BlockFieldHandle &to, nb::handle axes, bool ghosts,
                         std::string_view op) {
    BlockCopyOptions options{.ghosts = ghosts};
    guarded(to.grid.comm->view, [&] {
        options.op = chosen(op, "operation", pushOps);
        from.requireLanded("be copied");
        to.requireLanded("be the target of a copy");
        if (axes.is_none())
            return;
        const int dims = from.grid.grid->dims();
        const IndexVector numbers = indicesOf(axes, dims, "axes");
        options.axes.assign(numbers.begin(), numbers.begin() + dims);
    });
    const nb::gil_scoped_release others;
    return {&from, &to, makeBlockCopy(from.field->core(), to.field->core(), options)};
}

} // namespace

void BlockCopyHandle::run() {
    from->requireLanded("be copied");
    to->requireLanded("be the target of a copy");
    copy->start();
    copy->wait();
}

void bindBlockCopy(nb::module_ &module) {
    nb::class_<BlockCopyHandle>(module, "BlockCopy",
                                R"(A copy of the cells of one BlockField to the cells of another, whatever their blocks.

    transpose = dnds.BlockCopy(a, b, axes=(1, 0))    # b[j, i] = a[i, j]
    transpose.run()
)")
        .def(
            "__init__",
            [](BlockCopyHandle *self, BlockFieldHandle &from, BlockFieldHandle &to, nb::handle axes, bool ghosts,
               std::string_view op) { new (self) BlockCopyHandle(makeCopy(from, to, axes, ghosts, op)); },
            "source"_a, "target"_a, nb::kw_only(), "axes"_a.none() = nb::none(), "ghosts"_a = false, "op"_a = "replace",
            nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
            nb::sig("def __init__(self, source: BlockField, target: BlockField, *, axes: Sequence[int] | None = None, "
                    "ghosts: bool = False, op: str = 'replace') -> None"),
            R"(Collective. Both fields have equal index spaces, components and dtype, and are on one side (host or device).

Dimension d of `source` runs along dimension `axes[d]` of `target`. `ghosts` fills the target's ghosts, too, with the
cells that they stand for in the source's grid. `op` is "replace", "sum", "min" or "max". Cells of the target that the
source's grid does not have keep their values.)")
        .def("run", &BlockCopyHandle::run, Release(), "Copies. Collective; as often as needed.")
        .def(
            "describe", [](const BlockCopyHandle &self) { return self.copy->describe(); },
            "A table of the path to each rank, with reasons. Local.");
}

} // namespace DNDS::Python
