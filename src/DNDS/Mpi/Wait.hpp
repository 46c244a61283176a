/// @file Wait.hpp
/// @brief The only loop of the library that waits for other ranks.
#pragma once

#include "DNDS/Mpi/Backoff.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <string_view>
#include <type_traits>

namespace DNDS {

/// Cost of one look at the awaited event, which decides the pause between looks.
enum class PollTarget : unsigned char {
    Memory, ///< a few loads: MPI gets a turn now and then
    Mpi     ///< a call of MPI, which makes progress itself
};

/// One wait for other ranks: call `pause` after each look at the awaited event. Between looks all operations in flight
/// on this thread make progress, as peers may need them first. Local.
class Waiting {
  public:
    /// Begins to wait. Local.
    explicit Waiting(CommunicatorContext &context, PollTarget target = PollTarget::Memory);

    /// `what` completes "waited for ...", as "rank 3 to send its rows of 'u'"; a text, or a function that returns it.
    /// Throws RevokedError if the communicator is revoked; PeerError, with a roll call, if the process of a rank
    /// of this node has ended, or after DNDS_WAIT_TIMEOUT seconds. Throws StateError if the communicator was freed.
    template <class What>
    void pause(What &&what) {
        if (!pauseOnce()) [[likely]]
            return;
        if constexpr (std::is_invocable_v<What>)
            lookAround(what());
        else
            lookAround(what);
    }

  private:
    /// Whether it is time for costly checks.
    bool pauseOnce();
    /// Checks that cost system calls, some ten times a second: ended processes and the time limit.
    void lookAround(std::string_view what);

    /// The communicator whose failures end the wait.
    CommunicatorContext &context_;
    PollTarget target_;
    Backoff backoff_;
};

/// Waits until `done()` is true. See Waiting.
template <class Done, class What>
void waitUntil(CommunicatorContext &context, Done &&done, What &&what, PollTarget target = PollTarget::Memory) {
    if (done())
        return;
    Waiting waiting(context, target);
    do
        waiting.pause(what);
    while (!done());
}

/// Throws PeerError if the process of a rank of this node has ended, or if `seconds` of waiting for `what` are
/// more than `timeout` (0: no limit). Local; a system call a rank of the node.
void requireAlive(const CommunicatorContext &context, std::string_view what, double seconds, double timeout);

} // namespace DNDS
