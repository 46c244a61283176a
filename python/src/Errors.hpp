/// @file Errors.hpp
/// @brief The exceptions of the library as Python exceptions with their whole C++ text, and Python's exceptions as
/// failures of all ranks.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <nanobind/nanobind.h>

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS::Python {

/// Text of files and messages for Python: what is not UTF-8 is replaced. Local, with Python's lock, as the next.
nanobind::object stringOf(std::string_view text);
nanobind::list stringsOf(const std::vector<std::string> &texts);
/// The `str` of a value as UTF-8, "(no text)" where that raises.
std::string textOf(nanobind::handle value);

/// Makes dnds.Error and a subclass for each ErrorKind, and translates C++ exceptions. Local.
void bindErrors(nanobind::module_ &module);

/// As CommunicatorView::agree, also for exceptions of Python: they are raised again on their rank, and other ranks get
/// an Error with their text. Called with Python's lock, which is released while ranks wait for each other. Collective.
void agree(CommunicatorView comm, const std::exception_ptr &mine, SourceLocation where = SourceLocation::current());

/// Raises an exception of Python again, with a note where Python has notes (3.11).
[[noreturn]] void rethrowWithNote(const std::exception_ptr &raised, std::string_view note);

/// Runs `body`, which may use Python but not communicate, and `agree`s on its exception. Collective.
template <class Body>
void guarded(CommunicatorView comm, Body &&body, SourceLocation where = SourceLocation::current()) {
    const std::exception_ptr failure = attempt([&] { std::forward<Body>(body)(); });
    agree(comm, failure, where);
}

} // namespace DNDS::Python
