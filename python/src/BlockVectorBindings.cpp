#include "BlockHandles.hpp"
#include "Errors.hpp"

#include "DNDS/Blocks/BlockField.hpp"

#include <nanobind/stl/optional.h>

#include <optional>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Fields = nb::class_<BlockFieldHandle>;
using Component = std::optional<rowsize>;
using Ghosts = std::optional<bool>;

/// Throws ArgumentError for fields of other types.
BlockField<real> &vectorOf(const BlockFieldHandle &self) {
    DNDS_CHECK(self.field->array().shape().kind == ElementKind::Float64, ArgumentError,
               "'{}' has elements of {}: fields of float64 are vectors", self.field->core().name(),
               elementKindName(self.field->array().shape().kind));
    return static_cast<BlockField<real> &>(self.field->core());
}

/// On the side on which the field is.
BlockElements elementsOf(const BlockFieldHandle &self, Component component, Ghosts ghosts, bool exact = false) {
    const bool device = self.field->core().side() == MemorySpace::Device;
    return {component.value_or(-1), ghosts, exact, device ? Executor::device(nullptr) : Executor::host()};
}

/// Changes a field by `change(u, elements)`. Local.
template <class Change>
void changed(BlockFieldHandle &self, Component component, Ghosts ghosts, const Change &change) {
    self.requireLanded("be changed");
    BlockField<real> &u = vectorOf(self);
    const BlockElements elements = elementsOf(self, component, ghosts);
    const nb::gil_scoped_release others;
    change(u, elements);
    elements.on.synchronize();
}

/// The same with a second field.
template <class Change>
void changedWith(BlockFieldHandle &self, const BlockFieldHandle &other, Component component, Ghosts ghosts,
                 const Change &change) {
    other.requireLanded("be read");
    const BlockField<real> &v = vectorOf(other);
    changed(self, component, ghosts,
            [&](BlockField<real> &u, const BlockElements &elements) { change(u, v, elements); });
}

using Reduction = real (*)(const BlockField<real> &, const BlockElements &);

real reduced(const BlockFieldHandle &self, Component component, Ghosts ghosts, bool exact, Reduction reduce) {
    guarded(self.grid.comm->view, [&] {
        (void)vectorOf(self);
        if (ghosts.value_or(false))
            self.requireLanded("be reduced with its ghosts");
    });
    const nb::gil_scoped_release others;
    return reduce(vectorOf(self), elementsOf(self, component, ghosts, exact));
}

void bindChanges(Fields &type) {
    type.def(
            "set_constant",
            [](BlockFieldHandle &self, real value, Component component, Ghosts ghosts) {
                changed(self, component, ghosts,
                        [&](BlockField<real> &u, const BlockElements &elements) { setConstant(u, value, elements); });
            },
            "value"_a, nb::kw_only(), "component"_a.none() = nb::none(), "ghosts"_a.none() = nb::none(),
            R"(Sets every element. Local.

Changes act on ghosts, too, unless `ghosts` is False, so that copies stay copies, and on all components unless one is
named. They are for fields of float64, on the host or the device, wherever the field is.)")
        .def(
            "copy_from",
            [](BlockFieldHandle &self, const BlockFieldHandle &other, Component component, Ghosts ghosts) {
                changedWith(self, other, component, ghosts,
                            [](auto &u, const auto &v, const BlockElements &elements) { copy(u, v, elements); });
            },
            "other"_a, nb::kw_only(), "component"_a.none() = nb::none(), "ghosts"_a.none() = nb::none(),
            "Takes the values of another field with equal grid, ghosts, centring and components. Local.")
        .def(
            "scale",
            [](BlockFieldHandle &self, real factor, Component component, Ghosts ghosts) {
                changed(self, component, ghosts,
                        [&](BlockField<real> &u, const BlockElements &elements) { scale(u, factor, elements); });
            },
            "factor"_a, nb::kw_only(), "component"_a.none() = nb::none(), "ghosts"_a.none() = nb::none(),
            "self *= factor. Local.")
        .def(
            "axpy",
            [](BlockFieldHandle &self, real alpha, const BlockFieldHandle &x, Component component, Ghosts ghosts) {
                changedWith(self, x, component, ghosts, [&](auto &u, const auto &v, const BlockElements &elements) {
                    axpy(u, alpha, v, elements);
                });
            },
            "alpha"_a, "x"_a, nb::kw_only(), "component"_a.none() = nb::none(), "ghosts"_a.none() = nb::none(),
            "self += alpha * x. Local.");
}

void bindReduction(Fields &type, const char *name, Reduction reduce, const char *text) {
    type.def(
        name,
        [reduce](const BlockFieldHandle &self, Component component, Ghosts ghosts, bool exact) {
            return reduced(self, component, ghosts, exact, reduce);
        },
        nb::kw_only(), "component"_a.none() = nb::none(), "ghosts"_a.none() = nb::none(), "exact"_a = false, text);
}

} // namespace

void bindBlockVectors(nb::module_ &module) {
    Fields type = nb::borrow<Fields>(module.attr("BlockField"));
    bindChanges(type);
    type.def(
        "dot",
        [](const BlockFieldHandle &self, const BlockFieldHandle &other, Component component, bool exact) {
            guarded(self.grid.comm->view, [&] {
                (void)vectorOf(self);
                (void)vectorOf(other);
            });
            const nb::gil_scoped_release others;
            return dot(vectorOf(self), vectorOf(other), elementsOf(self, component, {}, exact));
        },
        "other"_a, nb::kw_only(), "component"_a.none() = nb::none(), "exact"_a = false,
        R"(The sum of products over the cells of all ranks; points that blocks share count once. Collective.

With `exact` sums have the same bits on any number of ranks and blocks.)");
    bindReduction(type, "sum", &sum, "The sum over the cells of all ranks, ghosts only if asked for. Collective.");
    bindReduction(type, "norm1", &norm1, "The sum of magnitudes, as `sum`. Collective.");
    bindReduction(type, "norm2", &norm2, "The Euclidean norm, as `sum`. Collective.");
    bindReduction(type, "norm_inf", &normInf, "The largest magnitude, as `sum`. Collective.");
    bindReduction(type, "min", &min, "The smallest element, as `sum`; NaN where one is NaN. Collective.");
    bindReduction(type, "max", &max, "The largest element, as `sum`; NaN where one is NaN. Collective.");
}

} // namespace DNDS::Python
