/// @file Errors.hpp
/// @brief The exceptions of the library as Python exceptions, with their whole C++ text.
#pragma once

#include <nanobind/nanobind.h>

namespace DNDS::Python {

/// Makes dnds.Error and a subclass for each ErrorKind, and translates what C++ throws. Local.
void bindErrors(nanobind::module_ &module);

} // namespace DNDS::Python
