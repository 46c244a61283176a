#include "Field.hpp"

#include "DNDS/Mpi/Reductions.hpp"

#include <nanobind/eigen/dense.h>
#include <nanobind/ndarray.h>

#include <span>
#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// A number, another field, or a row [width] for all rows.
using Row = nb::ndarray<const real, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Eigen::Map<const Eigen::VectorXd> vectorOf(const Row &row) {
    return {row.data(), static_cast<Eigen::Index>(row.size())};
}

/// Calls `apply(u, operand)` with the Python operand as a number, a vector or a field.
template <class Apply>
void withOperand(Field &self, nb::handle operand, const Apply &apply) {
    Dof &u = self.dof();
    self.requireLanded("be changed");
    const auto run = [&](const auto &value) {
        const nb::gil_scoped_release others;
        apply(u, value);
    };
    if (nb::isinstance<Field>(operand)) {
        const Field &other = nb::cast<const Field &>(operand);
        other.requireLanded("be read");
        run(static_cast<const Dof &>(other.dof()));
    } else if (nb::isinstance<nb::float_>(operand) || nb::isinstance<nb::int_>(operand)) {
        run(nb::cast<real>(operand));
    } else {
        const nb::object numpy = nb::module_::import_("numpy");
        const nb::object given = numpy.attr("asarray")(operand, "float64");
        if (nb::cast<int>(given.attr("ndim")) == 0)
            run(nb::cast<real>(given.attr("item")()));
        else {
            Row row;
            DNDS_CHECK(nb::try_cast(numpy.attr("ascontiguousarray")(given), row), ArgumentError,
                       "an operand of {} dimensions: give a number, a Field, or the values of a row [width]",
                       nb::cast<int>(given.attr("ndim")));
            run(Eigen::VectorXd(vectorOf(row)));
        }
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

/// The result of `reduce` on the owned rows of all ranks. While a push in flight may change them, StateError is thrown,
/// but only after this rank has taken part: the others wait for it.
template <class Reduce>
auto reduced(const Reduce &reduce) {
    return [reduce](const Field &self) {
        const nb::gil_scoped_release others;
        auto found = reduce(self);
        self.requireSettled("be reduced");
        return found;
    };
}

/// The same of two fields.
template <class Reduce>
auto reducedWith(const Reduce &reduce) {
    return [reduce](const Field &self, const Field &other) {
        const nb::gil_scoped_release others;
        const real found = reduce(self, other);
        self.requireSettled("be reduced");
        other.requireSettled("be reduced");
        return found;
    };
}

real exactSumOf(const Field &self) {
    const auto &rows = std::as_const(*self.dof().father);
    return exactSum(self.comm()->view, std::span<const real>(rows.data(), static_cast<std::size_t>(rows.dataSize())));
}

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
            "Sets every element to a number, or every row to the values [width]; ghosts, too. Local.")
        .def(
            "copy_from",
            [](Field &self, const Field &other) {
                self.requireLanded("be changed");
                other.requireLanded("be read");
                const nb::gil_scoped_release others;
                self.dof().copyFrom(other.dof());
            },
            "other"_a, "Takes the values of another field of one mapping, ghosts included. Local.")
        .def(
            "axpy",
            [](nb::handle self, real alpha, const Field &x) {
                auto &field = nb::cast<Field &>(self);
                field.requireLanded("be changed");
                x.requireLanded("be read");
                {
                    const nb::gil_scoped_release others;
                    field.dof().axpy(alpha, x.dof());
                }
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
    type.def("dot", reducedWith([](const Field &u, const Field &v) { return u.dof().dot(v.dof()); }), "other"_a,
             "The sum of products of all owned elements of all ranks. Collective.")
        .def("norm2", reduced([](const Field &u) { return u.dof().norm2(); }),
             "The Euclidean norm of all owned elements of all ranks. Collective.")
        .def("distance2", reducedWith([](const Field &u, const Field &v) { return u.dof().norm2(v.dof()); }), "other"_a,
             "The Euclidean norm of the difference. Collective.")
        .def("sum", reduced([](const Field &u) { return u.dof().sum(); }),
             "The sum of all owned elements of all ranks. Collective.")
        .def("exact_sum", reduced(&exactSumOf),
             "The sum of all owned elements, with the same bits on any number of ranks. Collective.")
        .def("min", reduced([](const Field &u) { return u.dof().min(); }),
             "The smallest owned element of all ranks; NaN where one is NaN. Collective.")
        .def("max", reduced([](const Field &u) { return u.dof().max(); }),
             "The largest owned element of all ranks; NaN where one is NaN. Collective.")
        .def("component_norm1", reduced([](const Field &u) { return Eigen::VectorXd(u.dof().componentNorm1()); }),
             "The sum of magnitudes of each component: [width]. Collective.")
        .def("component_norm2", reduced([](const Field &u) { return Eigen::VectorXd(u.dof().componentNorm2()); }),
             "The Euclidean norm of each component: [width]. Collective.")
        .def("component_norm_inf", reduced([](const Field &u) { return Eigen::VectorXd(u.dof().componentNormInf()); }),
             "The largest magnitude of each component: [width]. Collective.");
}

} // namespace DNDS::Python
