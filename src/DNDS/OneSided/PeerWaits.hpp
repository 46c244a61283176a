/// @file PeerWaits.hpp
/// @brief Waiting for other ranks: serves them meanwhile, and gives up where one has died.
#pragma once

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Transport/Backoff.hpp"
#include "DNDS/Transport/PeerFailure.hpp"
#include "DNDS/Transport/ProgressEngine.hpp"

#include <memory>
#include <utility>

namespace DNDS {

/// What a rank knows of the others while it waits for them. Copied freely; the context outlives it.
class PeerWaits {
  public:
    static constexpr int anyone = -1;

    explicit PeerWaits(CommunicatorContext &context) : context_(&context), patience_(readEnvironment().waitTimeout) {}

    /// Calls `progress` until `done` returns true. Local. Throws PeerError where the process of `peer` has ended (for
    /// `anyone`, that of any rank of this node), or after DNDS_WAIT_TIMEOUT seconds. `what` is what the peer should do.
    template <class Done, class Progress>
    void waitFor(int peer, const char *what, Done &&done, Progress &&progress) const {
        if (done())
            return;
        Backoff backoff(context_->comm().handle(), context_->node().crowded);
        while (true) {
            progress();
            if (done())
                return;
            ProgressEngine::progressAll();
            context_->progressParked();
            backoff.pause();
            if (backoff.longWait())
                check(peer, what, backoff.seconds());
        }
    }

  private:
    void check(int peer, const char *what, double seconds) const;

    CommunicatorContext *context_;
    double patience_;
};

} // namespace DNDS
