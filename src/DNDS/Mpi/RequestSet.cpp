#include "DNDS/Mpi/RequestSet.hpp"

#include <utility>

namespace DNDS {

MPI_Request *RequestSet::add() {
    if (kind_ == Kind::Receive)
        statuses_.emplace_back();
    return &requests_.emplace_back(MPI_REQUEST_NULL);
}

void RequestSet::startAll() {
    if (requests_.empty())
        return;
    checkMpi(MPI_Startall(static_cast<int>(requests_.size()), requests_.data()), "MPI_Startall");
    active_ = true;
    cancelled_ = false;
}

void RequestSet::start(std::size_t which) {
    checkMpi(MPI_Start(&requests_[which]), "MPI_Start");
    active_ = true;
    cancelled_ = false;
}

// O(requests). Statuses are kept for receives only, whose own error codes say more than the common one.
bool RequestSet::testAll() {
    if (requests_.empty())
        return true;
    int complete = 0;
    const int code = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &complete,
                                 statuses_.empty() ? MPI_STATUSES_IGNORE : statuses_.data());
    // Only receives are given statuses; their own codes say more than the common one.
    if (code == MPI_ERR_IN_STATUS)
        for (const MPI_Status &status : statuses_)
            if (status.MPI_ERROR != MPI_ERR_PENDING)
                checkMpi(status.MPI_ERROR, "MPI_Testall");
    checkMpi(code, "MPI_Testall");
    active_ = active_ && complete == 0;
    return complete != 0;
}

bool RequestSet::complete(std::size_t which) const {
    // Asks without completing: MPI_Test would deactivate the request, and `testAll` would not see its status.
    int complete = 0;
    checkMpi(MPI_Request_get_status(requests_[which], &complete, MPI_STATUS_IGNORE), "MPI_Request_get_status");
    return complete != 0;
}

// Sends are not cancelled: MPI deprecates that, and their receivers drain them (CommunicatorContext::recover).
bool RequestSet::settle() noexcept {
    if (active_ && kind_ == Kind::Receive && !std::exchange(cancelled_, true))
        for (MPI_Request &request : requests_)
            MPI_Cancel(&request); // has no effect on complete requests
    try {
        return testAll();
    } catch (const Error &) { // of MPI: then it may still use the buffers
        return false;
    }
}

void RequestSet::clear() noexcept {
    if (!requests_.empty() && mpiActive()) {
        for (MPI_Request &request : requests_) {
            if (request == MPI_REQUEST_NULL)
                continue;
            // Freeing an active receive would let MPI write to the buffer later; of a send MPI lets go when it is
            // complete.
            if (active_ && kind_ == Kind::Receive) {
                MPI_Cancel(&request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            MPI_Request_free(&request);
        }
    }
    requests_.clear();
    statuses_.clear();
    active_ = false;
}

} // namespace DNDS
