#include "DNDS/Mpi/GpuAware.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <fmt/format.h>
#include <mpi.h>
#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <array>

namespace DNDS {

namespace {

/// Kinds are listed as "mpi,system,cuda:device"; absence means nothing.
bool listsCuda() {
    // The info key of MPI 4.1; older libraries do not set it, and newer ones may not list what they support.
    MPI_Info info = MPI_INFO_NULL;
    checkMpi(MPI_Comm_get_info(MPI_COMM_WORLD, &info), "MPI_Comm_get_info");
    std::array<char, 1024> value{};
    int found = 0;
    const int code =
        MPI_Info_get(info, "mpi_memory_alloc_kinds", static_cast<int>(value.size()) - 1, value.data(), &found);
    MPI_Info_free(&info);
    checkMpi(code, "MPI_Info_get");
    if (found == 0)
        return false;
    const std::string kinds = fmt::format(",{},", value.data());
    return kinds.find(",cuda,") != std::string::npos || kinds.find(",cuda:device") != std::string::npos;
}

/// Extensions of Open MPI and of MPICH; other libraries, and versions without them, claim nothing.
bool libraryClaims() {
#if defined(OPEN_MPI) && defined(OMPI_HAVE_MPI_EXT_CUDA) && OMPI_HAVE_MPI_EXT_CUDA
    // Asked even where the headers say no: the library that is loaded may be another one.
    return MPIX_Query_cuda_support() != 0;
#elif defined(MPIX_GPU_SUPPORT_CUDA) && !defined(OPEN_MPI)
    int supported = 0;
    return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &supported) == MPI_SUCCESS && supported != 0;
#else
    return false;
#endif
}

} // namespace

std::pair<bool, std::string> claimOfMpi() {
    if (listsCuda())
        return {true, "MPI lists the memory kind cuda"};
    if (libraryClaims())
        return {true, "the MPI library says that it takes CUDA memory"};
    if (const std::string switched = mpiSwitchForDevices(); !switched.empty())
        return {true, switched + " is set"};
    return {false, "the MPI library does not say that it takes CUDA memory"};
}

} // namespace DNDS
