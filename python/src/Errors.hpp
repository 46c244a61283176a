/// @file Errors.hpp
/// @brief The exceptions of the library as Python exceptions, with their whole C++ text, and those of Python as
/// failures of all ranks.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <nanobind/nanobind.h>

#include <exception>
#include <utility>

namespace DNDS::Python {

/// Makes dnds.Error and a subclass for each ErrorKind, and translates what C++ throws. Local.
void bindErrors(nanobind::module_ &module);

/// As CommunicatorView::agree, for exceptions of Python, too: they are raised again where they come from, and other
/// ranks get an Error with their text. Called with Python's lock, which others have while ranks wait for each other.
/// Collective.
void agree(CommunicatorView comm, const std::exception_ptr &mine, SourceLocation where = SourceLocation::current());

/// Runs `body`, which may use Python but not communicate, and `agree`s on what it threw. Collective.
template <class Body>
void guarded(CommunicatorView comm, Body &&body, SourceLocation where = SourceLocation::current()) {
    std::exception_ptr failure;
    try {
        std::forward<Body>(body)();
    } catch (...) {
        failure = std::current_exception();
    }
    agree(comm, failure, where);
}

} // namespace DNDS::Python
