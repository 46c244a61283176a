/// @file Comm.hpp
/// @brief Communicators of mpi4py as communicators of DNDS.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <nanobind/nanobind.h>

#include <memory>

namespace DNDS::Python {

/// A communicator of mpi4py. It keeps the Python object, which owns the communicator.
struct Comm {
    nanobind::object python;
    CommunicatorView view;
};
using CommPtr = std::shared_ptr<const Comm>;

/// The communicator given to a Python function; MPI.COMM_WORLD for None. Local. Throws TypeError for anything but an
/// mpi4py communicator, ArgumentError for MPI.COMM_NULL, ImportError without mpi4py or if it uses another MPI.
CommPtr commOf(nanobind::handle comm);

/// The version text of the MPI that the library was linked with. Local.
void bindComm(nanobind::module_ &module);

} // namespace DNDS::Python
