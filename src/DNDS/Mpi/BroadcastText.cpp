#include "DNDS/Mpi/BroadcastText.hpp"

#include "DNDS/Mpi/Whereabouts.hpp"

namespace DNDS {

ShortText broadcastText(const CommunicatorView &comm, std::string_view text) {
    ShortText shared(text);
    comm.beforeCollective();
    const Doing doing = Doing::collective("MPI_Bcast");
    checkMpi(MPI_Bcast(shared.bytes_.data(), static_cast<int>(shared.bytes_.size()), MPI_CHAR, 0, comm.handle()),
             "MPI_Bcast");
    return shared;
}

} // namespace DNDS
