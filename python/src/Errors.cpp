#include "Errors.hpp"

#include "DNDS/Base/Error.hpp"

#include <array>
#include <string>

namespace DNDS::Python {

namespace nb = nanobind;

namespace {

struct Kind {
    ErrorKind kind;
    PyObject **alsoA; ///< the exception of Python that means the same, if any
    const char *meaning;
};

/// The Python exception of each kind; they live as long as the process, as those of Python do.
std::array<PyObject *, 10> exceptions{};

PyObject *makeException(const std::string &name, PyObject *base, PyObject *alsoA, const char *meaning) {
    const nb::object bases = nb::steal(alsoA != nullptr ? PyTuple_Pack(2, base, alsoA) : PyTuple_Pack(1, base));
    PyObject *made = PyErr_NewExceptionWithDoc(("dnds." + name).c_str(), meaning, bases.ptr(), nullptr);
    if (made == nullptr)
        throw nb::python_error();
    return made;
}

void raise(const Error &error) {
    PyObject *type = exceptions.at(static_cast<std::size_t>(error.kind()));
    const nb::object value = nb::steal(PyObject_CallFunction(type, "s", error.what()));
    if (!value.is_valid())
        return; // Python has set why
    nb::setattr(value, "rank", nb::int_(error.rank()));
    nb::setattr(value, "message", nb::str(error.message().c_str()));
    PyErr_SetObject(type, value.ptr());
}

} // namespace

void bindErrors(nb::module_ &module) {
    PyObject *base = makeException("Error", PyExc_RuntimeError, nullptr,
                                   "Base of all exceptions of the library. The text has kind, rank and source "
                                   "location; `message` is the text alone, `rank` the rank in MPI.COMM_WORLD.");
    module.attr("Error") = nb::handle(base);
    const std::array kinds{
        Kind{ErrorKind::Argument, &PyExc_ValueError, "An argument is outside what the function accepts."},
        Kind{ErrorKind::Index, &PyExc_IndexError, "A row or element number is out of range."},
        Kind{ErrorKind::Layout, &PyExc_ValueError, "Row layouts, widths or types do not fit each other."},
        Kind{ErrorKind::State, nullptr, "Calls in the wrong order, or on something that is not set up."},
        Kind{ErrorKind::Stale, nullptr, "The copy (host or device) that is asked for is not the current one."},
        Kind{ErrorKind::Data, nullptr, "Values received or read contradict each other."},
        Kind{ErrorKind::Memory, &PyExc_MemoryError, "Memory could not be had."},
        Kind{ErrorKind::Mpi, nullptr, "A call of MPI failed."},
        Kind{ErrorKind::Peer, nullptr, "Another rank failed in an exchange with this one."},
        Kind{ErrorKind::NotBuilt, nullptr, "This build does not contain what is asked for."},
    };
    for (const Kind &kind : kinds) {
        const std::string name(errorKindName(kind.kind));
        PyObject *made = makeException(name, base, kind.alsoA != nullptr ? *kind.alsoA : nullptr, kind.meaning);
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
