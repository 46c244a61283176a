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

bool isIntegers(nb::handle sequence) {
    for (const nb::handle element : sequence)
        if (PyIndex_Check(element.ptr()) == 0)
            return false;
    return true;
}

} // namespace DNDS::Python
