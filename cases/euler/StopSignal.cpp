#include "StopSignal.hpp"

#include <exception>

namespace Euler {

namespace {

volatile std::sig_atomic_t noted = 0;

extern "C" void note(int) { noted = 1; }

enum : unsigned { stopBit = 1, requestBit = 2 };

} // namespace

struct StopSignal::Reduction {
    MPI_Request request = MPI_REQUEST_NULL;
    unsigned mine = 0;
    unsigned all = 0;
};

StopSignal::StopSignal(DNDS::CommunicatorView comm) : comm_(comm), reduction_(std::make_unique<Reduction>()) {
    noted = 0;
    struct sigaction action {};
    action.sa_handler = note;
    action.sa_flags = SA_RESTART;
    sigaction(SIGTERM, &action, &terminate_);
    sigaction(SIGUSR1, &action, &user_);
}

StopSignal::~StopSignal() {
    sigaction(SIGTERM, &terminate_, nullptr);
    sigaction(SIGUSR1, &user_, nullptr);
    if (reduction_->request == MPI_REQUEST_NULL)
        return;
    if (std::uncaught_exceptions() > 0) // others may never answer: MPI keeps the memory
        (void)reduction_.release();
    else
        wait();
}

void StopSignal::wait() { DNDS::checkMpi(MPI_Wait(&reduction_->request, MPI_STATUS_IGNORE), "MPI_Wait"); }

StopSignal::Notice StopSignal::exchange(bool request) {
    wait();
    const unsigned said = reduction_->all;
    reduction_->mine = (noted != 0 ? stopBit : 0U) | (request && comm_.rank() == 0 ? requestBit : 0U);
    DNDS::checkMpi(MPI_Iallreduce(&reduction_->mine, &reduction_->all, 1, MPI_UNSIGNED, MPI_BOR, comm_.handle(),
                                  &reduction_->request),
                   "MPI_Iallreduce");
    return {(said & stopBit) != 0, (said & requestBit) != 0};
}

} // namespace Euler
