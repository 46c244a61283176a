#include "DNDS/Mpi/PendingBarrier.hpp"

namespace DNDS {

PendingBarrier::PendingBarrier(const CommunicatorView &comm, const Channel &channel) : comm_(comm), channel_(channel) {
    tell();
}

void PendingBarrier::tell() const {
    if (distance_ >= comm_.size())
        return;
    MPI_Request request = MPI_REQUEST_NULL;
    checkMpi(MPI_Isend(nullptr, 0, MPI_BYTE, (comm_.rank() + distance_) % comm_.size(), channel_.tag, channel_.comm,
                       &request),
             "MPI_Isend");
    checkMpi(MPI_Request_free(&request), "MPI_Request_free"); // there is no buffer to wait for
}

bool PendingBarrier::reached() {
    for (; distance_ < comm_.size(); distance_ *= 2, tell()) {
        const int from = (comm_.rank() + comm_.size() - distance_) % comm_.size();
        int found = 0;
        checkMpi(MPI_Iprobe(from, channel_.tag, channel_.comm, &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
        if (found == 0)
            return false;
        checkMpi(MPI_Recv(nullptr, 0, MPI_BYTE, from, channel_.tag, channel_.comm, MPI_STATUS_IGNORE), "MPI_Recv");
    }
    return true;
}

} // namespace DNDS
