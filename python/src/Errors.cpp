#include "Errors.hpp"

#include "DNDS/Base/Error.hpp"

#include <nanobind/stl/string.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

struct Kind {
    ErrorKind kind;
    PyObject **alsoA; ///< the corresponding exception of Python, if any
    const char *meaning;
};

/// The Python exception of each kind; they live as long as the process, like Python's own.
std::array<PyObject *, 11> exceptions{};
PyObject *anyOfOurs = nullptr; ///< dnds.Error

PyObject *makeException(const std::string &name, PyObject *base, PyObject *alsoA, const char *meaning) {
    const nb::object bases = nb::steal(alsoA != nullptr ? PyTuple_Pack(2, base, alsoA) : PyTuple_Pack(1, base));
    PyObject *made = PyErr_NewExceptionWithDoc(("dnds." + name).c_str(), meaning, bases.ptr(), nullptr);
    if (made == nullptr)
        throw nb::python_error();
    return made;
}

void raise(const Error &error) {
    PyObject *type = exceptions.at(static_cast<std::size_t>(error.kind()));
    const nb::object text = stringOf(error.what());
    const nb::object value = nb::steal(PyObject_CallFunctionObjArgs(type, text.ptr(), nullptr));
    if (!value.is_valid())
        return; // Python has set why
    nb::setattr(value, "rank", nb::int_(error.rank()));
    nb::setattr(value, "message", stringOf(error.message()));
    PyErr_SetObject(type, value.ptr());
}

/// The kind of error closest to an exception of Python.
ErrorKind kindOf(nb::handle type) {
    for (std::size_t kind = exceptions.size(); kind-- > 0;) // RevokedError is a PeerError
        if (PyErr_GivenExceptionMatches(type.ptr(), exceptions[kind]) != 0)
            return static_cast<ErrorKind>(kind);
    for (const auto &[same, kind] :
         {std::pair{PyExc_TypeError, ErrorKind::Argument}, std::pair{PyExc_ValueError, ErrorKind::Argument},
          std::pair{PyExc_LookupError, ErrorKind::Index}, std::pair{PyExc_MemoryError, ErrorKind::Memory}})
        if (PyErr_GivenExceptionMatches(type.ptr(), same) != 0)
            return kind;
    return ErrorKind::State;
}

/// An exception as reported to other ranks.
std::exception_ptr asError(const std::exception_ptr &thrown, const SourceLocation &where) {
    try {
        std::rethrow_exception(thrown);
    } catch (const nb::python_error &error) {
        const ErrorKind kind = kindOf(error.type());
        const nb::handle value = error.value();
        std::string text;
        if (PyErr_GivenExceptionMatches(error.type().ptr(), anyOfOurs) != 0)
            text = textOf(nb::getattr(value, "message", value)); // errors that Python raises have none
        else
            text = textOf(error.type().attr("__name__")) + ": " + textOf(value);
        return attempt([&] { throwError(kind, text, where); });
    } catch (const std::bad_cast &) {
        return std::make_exception_ptr(ArgumentError("an argument is of a type that does not fit", where));
    } catch (...) {
        return thrown;
    }
}

} // namespace

nb::object stringOf(std::string_view text) {
    return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

nb::list stringsOf(const std::vector<std::string> &texts) {
    nb::list strings;
    for (const std::string &text : texts)
        strings.append(stringOf(text));
    return strings;
}

std::string textOf(nb::handle value) {
    const nb::object text = nb::steal(PyObject_Str(value.ptr()));
    const nb::object bytes =
        text.is_valid() ? nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace")) : nb::object();
    if (!bytes.is_valid()) {
        PyErr_Clear();
        return "(no text)";
    }
    return {PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
}

void agree(CommunicatorView comm, const std::exception_ptr &mine, SourceLocation where) {
    const std::exception_ptr told = mine ? asError(mine, where) : nullptr;
    try {
        const nb::gil_scoped_release others;
        comm.agree(told, where);
    } catch (const Error &) {
        if (holds<nb::python_error>(mine))
            std::rethrow_exception(mine);
        throw;
    }
}

void rethrowWithNote(const std::exception_ptr &raised, std::string_view note) {
    try {
        std::rethrow_exception(raised);
    } catch (nb::python_error &error) {
        if (nb::hasattr(error.value(), "add_note"))
            error.value().attr("add_note")(nb::str(note.data(), note.size()));
        throw;
    }
}

namespace {

/// Calls a Python function with each warning; what it raises is shown as Python shows what destructors raise.
void giveWarningsTo(const nb::object &function) {
    if (function.is_none())
        return setWarningSink({});
    DNDS_CHECK(nb::isinstance<nb::callable>(function), ArgumentError,
               "a warning sink is a function of a text, or None");
    const std::shared_ptr<nb::object> kept(new nb::object(function), [](nb::object *ended) {
        const nb::gil_scoped_acquire lock;
        delete ended;
    });
    setWarningSink([kept](std::string_view text) {
        if (!nb::is_alive()) // Python has ended
            return;
        const nb::gil_scoped_acquire lock;
        try {
            (*kept)(nb::str(text.data(), text.size()));
        } catch (nb::python_error &error) {
            error.discard_as_unraisable(*kept);
        }
    });
}

} // namespace

void bindErrors(nb::module_ &module) {
    module.def(
        "set_warning_sink", &giveWarningsTo, "sink"_a.none(),
        nb::sig("def set_warning_sink(sink: collections.abc.Callable[[str], object] | None) -> None"),
        R"(Gives what the library has to say where it cannot raise to `sink`, say `logging.warning`, instead of stderr
or where DNDS_WARNINGS says, to which None goes back. Failures that end the job go to stderr always. Local.)");
    PyObject *base = makeException("Error", PyExc_RuntimeError, nullptr,
                                   "Base of all exceptions of the library. The text has kind, rank and source "
                                   "location; `message` is the text alone, `rank` the rank in MPI.COMM_WORLD.");
    module.attr("Error") = nb::handle(base);
    anyOfOurs = base;
    const std::array kinds{
        Kind{ErrorKind::Argument, &PyExc_ValueError, "An argument is outside what the function accepts."},
        Kind{ErrorKind::Index, &PyExc_IndexError, "A row or element number is out of range."},
        Kind{ErrorKind::Layout, &PyExc_ValueError, "Row layouts, widths or types do not fit each other."},
        Kind{ErrorKind::State, nullptr, "Calls in the wrong order, or on something that is not set up."},
        Kind{ErrorKind::Stale, nullptr, "The requested copy (host or device) is not current."},
        Kind{ErrorKind::Data, nullptr, "Values received or read contradict each other."},
        Kind{ErrorKind::Memory, &PyExc_MemoryError, "Out of memory."},
        Kind{ErrorKind::Mpi, nullptr, "An MPI call failed."},
        Kind{ErrorKind::Peer, nullptr, "Another rank failed in an exchange with this one."},
        Kind{ErrorKind::NotBuilt, nullptr, "This build lacks the requested part."},
        Kind{ErrorKind::Revoked, nullptr, "A running call failed on some rank: recover() on all ranks goes on."},
    };
    for (const Kind &kind : kinds) {
        const std::string name(errorKindName(kind.kind));
        PyObject *const parent =
            kind.kind == ErrorKind::Revoked ? exceptions.at(static_cast<std::size_t>(ErrorKind::Peer)) : base;
        PyObject *made = makeException(name, parent, kind.alsoA != nullptr ? *kind.alsoA : nullptr, kind.meaning);
        exceptions.at(static_cast<std::size_t>(kind.kind)) = made;
        module.attr(name.c_str()) = nb::handle(made);
    }
    nb::register_exception_translator([](const std::exception_ptr &thrown, void *) {
        try {
            std::rethrow_exception(thrown);
        } catch (const Error &error) {
            raise(error);
        }
    });
}

} // namespace DNDS::Python
