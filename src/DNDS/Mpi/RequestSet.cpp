#include "DNDS/Mpi/RequestSet.hpp"

#include <utility>

namespace DNDS {

RequestSet &RequestSet::operator=(RequestSet &&other) noexcept {
    if (this == &other)
        return *this;
    clear();
    kind_ = other.kind_;
    active_ = std::exchange(other.active_, false);
    requests_.swap(other.requests_);
    return *this;
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

void RequestSet::waitAll(std::span<MPI_Status> statuses) {
    if (requests_.empty())
        return;
    const int code = MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(),
                                 statuses.empty() ? MPI_STATUSES_IGNORE : statuses.data());
    active_ = false;
    check(code, "MPI_Waitall", statuses);
}

bool RequestSet::testAll(std::span<MPI_Status> statuses) {
    if (requests_.empty())
        return true;
    int complete = 0;
    const int code = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &complete,
                                 statuses.empty() ? MPI_STATUSES_IGNORE : statuses.data());
    check(code, "MPI_Testall", statuses);
    if (complete != 0)
        active_ = false;
    return complete != 0;
}

bool RequestSet::complete(std::size_t which) const {
    int complete = 0;
    checkMpi(MPI_Request_get_status(requests_[which], &complete, MPI_STATUS_IGNORE), "MPI_Request_get_status");
    return complete != 0;
}

void RequestSet::check(int code, const char *call, std::span<const MPI_Status> statuses) {
    if (code == MPI_ERR_IN_STATUS)
        for (const MPI_Status &status : statuses)
            if (status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING)
                checkMpi(status.MPI_ERROR, call);
    checkMpi(code, call);
}

void RequestSet::cancelReceives() noexcept {
    if (!active_ || kind_ != Kind::Receive || std::exchange(cancelled_, true))
        return;
    for (MPI_Request &request : requests_)
        if (request != MPI_REQUEST_NULL)
            MPI_Cancel(&request); // has no effect on those that are complete
}

bool settleRequests(RequestSet &receives, RequestSet &sends) noexcept {
    receives.cancelReceives();
    try {
        const bool received = receives.testAll();
        return sends.testAll() && received;
    } catch (const Error &) { // of MPI: then it may still use the buffers
        return false;
    }
}

void RequestSet::clear() noexcept {
    if (!requests_.empty() && mpiActive()) {
        for (MPI_Request &request : requests_) {
            if (request == MPI_REQUEST_NULL)
                continue;
            if (active_ && kind_ == Kind::Receive) {
                MPI_Cancel(&request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            MPI_Request_free(&request);
        }
    }
    requests_.clear();
    active_ = false;
}

} // namespace DNDS
