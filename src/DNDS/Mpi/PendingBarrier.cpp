#include "DNDS/Mpi/PendingBarrier.hpp"

#include <new>

namespace DNDS {

PendingBarrier::PendingBarrier(CommunicatorContext &context)
    : context_(context), request_(std::make_shared<MPI_Request>(MPI_REQUEST_NULL)) {
    checkMpi(MPI_Ibarrier(context.comm().handle(), request_.get()), "MPI_Ibarrier");
}

PendingBarrier::~PendingBarrier() {
    if (*request_ == MPI_REQUEST_NULL || !mpiActive())
        return;
    try {
        context_.park(request_, [request = request_] {
            int done = 1;
            return MPI_Test(request.get(), &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
        });
    } catch (...) { // no memory: MPI completes it, or the job ends
    }
}

bool PendingBarrier::reached() {
    int done = 0;
    checkMpi(MPI_Test(request_.get(), &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
}

} // namespace DNDS
