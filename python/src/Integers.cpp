#include "Integers.hpp"

#include "DNDS/Base/Error.hpp"

#include <nanobind/stl/string.h>

#include <string>

namespace DNDS::Python {

namespace nb = nanobind;

Integers::Integers(nb::handle values, const char *what) {
    try {
        const nb::module_ numpy = nb::module_::import_("numpy");
        const nb::object array = numpy.attr("asarray")(values);
        const bool empty = nb::cast<std::size_t>(array.attr("size")) == 0; // the type of an empty list does not matter
        if (!empty && !nb::cast<bool>(numpy.attr("issubdtype")(array.attr("dtype"), numpy.attr("integer"))))
            throw ArgumentError(std::string(what) + " must be integers, not " +
                                nb::cast<std::string>(nb::str(nb::object(array.attr("dtype")))));
        if (nb::cast<int>(array.attr("ndim")) != 1)
            throw ArgumentError(std::string(what) + " must be a list of one dimension");
        const nb::object wide = numpy.attr("ascontiguousarray")(array, "int64");
        list_ = nb::cast<decltype(list_)>(wide);
    } catch (nb::python_error &error) {
        throw ArgumentError(std::string(what) + " are not a list of integers: " + error.what());
    }
}

std::vector<index> integersOrNone(nanobind::handle values, const char *what) {
    if (values.is_none())
        return {};
    const Integers list(values, what);
    return {list.span().begin(), list.span().end()};
}

} // namespace DNDS::Python
