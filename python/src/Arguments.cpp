#include "Arguments.hpp"

#include <nanobind/stl/string.h>

namespace DNDS::Python {

namespace nb = nanobind;

std::string pathOf(nb::handle path) {
    try {
        const nb::module_ os = nb::module_::import_("os");
        return nb::cast<std::string>(os.attr("fsdecode")(os.attr("fspath")(path)));
    } catch (nb::python_error &) {
        throw ArgumentError("a path must be a str or an os.PathLike, not " +
                            nb::cast<std::string>(nb::str(path.type().attr("__name__"))));
    }
}

bool isList(nb::handle value) {
    if (PySequence_Check(value.ptr()) == 0)
        return false;
    const bool has = PySequence_Size(value.ptr()) >= 0; // not a NumPy array without dimensions
    if (!has)
        PyErr_Clear();
    return has;
}

bool isIntegers(nb::handle list) {
    for (const nb::handle element : list)
        if (!nb::steal(PyNumber_Index(element.ptr()))
                 .is_valid()) { // all NumPy arrays have it, but those of floats throw
            PyErr_Clear();
            return false;
        }
    return true;
}

} // namespace DNDS::Python
