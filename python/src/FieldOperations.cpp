#include "Field.hpp"

#include "DNDS/Mpi/ExactSum.hpp"

#include <nanobind/eigen/dense.h>
#include <nanobind/ndarray.h>

#include <variant>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;

/// A number, another field, or a row [width] that stands for all.
using Row = nb::ndarray<const real, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Eigen::Map<const Eigen::VectorXd> vectorOf(const Row &row) {
    return {row.data(), static_cast<Eigen::Index>(row.size())};
}

/// Calls `apply(u, operand)` with what Python gave, as a number, a vector or a field.
template <class Apply>
void withOperand(Field &self, nb::handle operand, const Apply &apply) {
    Dof &u = self.dof();
    self.needLanded("be changed");
    if (nb::isinstance<Field>(operand)) {
        const Field &other = nb::cast<const Field &>(operand);
        other.needLanded("be read");
        apply(u, static_cast<const Dof &>(other.dof()));
    } else if (nb::isinstance<nb::float_>(operand) || nb::isinstance<nb::int_>(operand)) {
        apply(u, nb::cast<real>(operand));
    } else {
        const nb::object list = nb::module_::import_("numpy").attr("ascontiguousarray")(operand, "float64");
        if (nb::cast<int>(list.attr("ndim")) == 0)
            apply(u, nb::cast<real>(list.attr("item")()));
        else
            apply(u, Eigen::VectorXd(vectorOf(nb::cast<Row>(list))));
    }
}

/// u[op] = operand, returning the field itself, as Python's operators do.
template <class Apply>
auto inPlace(const Apply &apply) {
    return [apply](nb::handle self, nb::handle operand) {
        withOperand(nb::cast<Field &>(self), operand, apply);
        return nb::borrow(self);
    };
}

real exactSumOf(Field &self) {
    const std::span<const real> rows(self.dof().father->data(),
                                     static_cast<std::size_t>(self.dof().father->dataSize()));
    return exactSum(self.comm()->view, rows);
}

Eigen::VectorXd componentsOf(Field &self, Dof::Matrix (Dof::*norm)() const) { return (self.dof().*norm)(); }

} // namespace

void bindFieldOperations(nb::module_ &module) {
    nb::class_<Field> type = nb::borrow<nb::class_<Field>>(module.attr("Field"));
    type.def(
            "set_constant",
            [](Field &self, nb::handle value) {
                withOperand(self, value, [](Dof &u, const auto &constant) {
                    if constexpr (std::is_same_v<std::decay_t<decltype(constant)>, Dof>)
                        u.copyFrom(constant);
                    else
                        u.setConstant(constant);
                });
            },
            "value"_a, nb::sig("def set_constant(self, value: float | numpy.typing.ArrayLike) -> None"),
            "Gives every element a number, or every row the values [width]; ghosts, too. Local.")
        .def(
            "copy_from",
            [](Field &self, const Field &other) {
                self.needLanded("be changed");
                other.needLanded("be read");
                const nb::gil_scoped_release others;
                self.dof().copyFrom(other.dof());
            },
            "other"_a, "Takes the values of another field of one mapping, ghosts included. Local.")
        .def(
            "axpy",
            [](nb::handle self, real alpha, const Field &x) {
                auto &field = nb::cast<Field &>(self);
                field.needLanded("be changed");
                x.needLanded("be read");
                field.dof().axpy(alpha, x.dof());
                return nb::borrow(self);
            },
            "alpha"_a, "x"_a, nb::sig("def axpy(self, alpha: float, x: Field) -> Field"),
            "self += alpha * x, ghosts included. Local.");
    const char *const meaning =
        "With a number, another field, or values [width] for every row; component-wise, ghosts included. Local.";
    type.def("__iadd__", inPlace([](Dof &u, const auto &x) { u += x; }), "operand"_a,
             nb::sig("def __iadd__(self, operand: float | Field | numpy.typing.ArrayLike) -> Field"), meaning)
        .def("__isub__", inPlace([](Dof &u, const auto &x) { u -= x; }), "operand"_a,
             nb::sig("def __isub__(self, operand: float | Field | numpy.typing.ArrayLike) -> Field"), meaning)
        .def("__imul__", inPlace([](Dof &u, const auto &x) { u *= x; }), "operand"_a,
             nb::sig("def __imul__(self, operand: float | Field | numpy.typing.ArrayLike) -> Field"), meaning)
        .def("__itruediv__", inPlace([](Dof &u, const auto &x) { u /= x; }), "operand"_a,
             nb::sig("def __itruediv__(self, operand: float | Field | numpy.typing.ArrayLike) -> Field"), meaning);
    type.def(
            "dot", [](const Field &self, const Field &other) { return self.dof().dot(other.dof()); }, "other"_a,
            Release(), "The sum of products of all owned elements of all ranks. Collective.")
        .def(
            "norm2", [](const Field &self) { return self.dof().norm2(); }, Release(),
            "The Euclidean norm of all owned elements of all ranks. Collective.")
        .def(
            "distance2", [](const Field &self, const Field &other) { return self.dof().norm2(other.dof()); }, "other"_a,
            Release(), "The Euclidean norm of the difference. Collective.")
        .def(
            "sum", [](const Field &self) { return self.dof().sum(); }, Release(),
            "The sum of all owned elements of all ranks. Collective.")
        .def("exact_sum", &exactSumOf, Release(), "The same, with the same bits on any number of ranks. Collective.")
        .def(
            "min", [](const Field &self) { return self.dof().min(); }, Release(),
            "The smallest owned element of all ranks; NaN where one is NaN. Collective.")
        .def(
            "max", [](const Field &self) { return self.dof().max(); }, Release(),
            "The largest owned element of all ranks; NaN where one is NaN. Collective.")
        .def(
            "component_norm1", [](Field &self) { return componentsOf(self, &Dof::componentNorm1); },
            "The sum of magnitudes of each component: [width]. Collective.")
        .def(
            "component_norm2", [](Field &self) { return componentsOf(self, &Dof::componentNorm2); },
            "The Euclidean norm of each component: [width]. Collective.")
        .def(
            "component_norm_inf", [](Field &self) { return componentsOf(self, &Dof::componentNormInf); },
            "The largest magnitude of each component: [width]. Collective.");
}

} // namespace DNDS::Python
