#include "DNDS/Mpi/BroadcastText.hpp"

namespace DNDS {

ShortText broadcastText(const CommunicatorView &comm, std::string_view text) {
    ShortText shared(text);
    comm.beforeCollective();
    checkMpi(MPI_Bcast(shared.bytes_.data(), static_cast<int>(shared.bytes_.size()), MPI_CHAR, 0, comm.handle()),
             "MPI_Bcast");
    return shared;
}

} // namespace DNDS
