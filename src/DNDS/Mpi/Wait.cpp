#include "DNDS/Mpi/Wait.hpp"

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Mpi/ProgressEngine.hpp"
#include "DNDS/Mpi/Revocation.hpp"
#include "DNDS/Mpi/RollCall.hpp"

namespace DNDS {

// Failures first: a revoked communicator ends the wait before anything else. The usual call costs a few loads, the
// steps of this thread's other operations, and a pause.
bool Detail::pauseOnce(CommunicatorContext &context, Backoff &backoff, PollTarget target) {
    // A look for notices of failures is a call of MPI, and costs as much as the rest of a short wait.
    constexpr unsigned pausesPerListen = 32;
    static thread_local unsigned pauses = 0;
    if (++pauses % pausesPerListen == 0)
        context.revocation().listen();
    if (context.revocation().revoked()) [[unlikely]]
        context.revocation().throwRevoked(SourceLocation::current());
    // A peer may wait for something else that this thread has started; without progress of that, both would wait
    // for ever.
    ProgressEngine::progressAll();
    context.progressParked();
    if (target == PollTarget::Mpi)
        backoff.pauseIfCrowded();
    else
        backoff.pause();
    return backoff.longWait();
}

void requireAlive(const CommunicatorContext &context, std::string_view what, double seconds, double timeout) {
    // Only processes of this node can be looked at. The end of others shows by notices of ranks there, or by the
    // time limit.
    const NodeTopology &node = context.node();
    for (std::size_t k = 0; node.arena && k < node.members.size(); ++k)
        DNDS_CHECK(node.arena->alive(static_cast<int>(k)), PeerError,
                   "the process of rank {} has ended while this rank waited for {}{}", node.members[k], what,
                   rollCall(node.arena.get()));
    DNDS_CHECK(timeout <= 0.0 || seconds < timeout, PeerError,
               "waited {:.3g} s for {} (DNDS_WAIT_TIMEOUT): do all ranks make the same calls, or is one stuck?{}",
               seconds, what, rollCall(node.arena.get()));
}

} // namespace DNDS
