/// @file BlockEnd.hpp
/// @brief How all ranks come out of a block that an exception may have left on some of them alone.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <memory>

namespace DNDS::Python {

/// Where all ranks meet at the end of a block. Whoever failed must not wait for the others for long: they may wait for
/// it in the midst of the block, and its exception has to come out so that the job can end.
class BlockEnd {
  public:
    enum class Outcome : unsigned char {
        Whole,  ///< no rank failed
        Failed, ///< some did, and all ranks are here
        Apart   ///< some did, and one of them has left without the others: nothing collective may be done any more
    };

    /// Collective. The communicator of its own keeps what is asked here apart from what others are waiting for.
    explicit BlockEnd(CommunicatorView comm);
    ~BlockEnd();

    /// Called once. Collective, but a rank that failed waits for the others for some seconds only.
    Outcome meet(bool failed);

  private:
    struct Votes;
    std::unique_ptr<Votes> votes_;
};

} // namespace DNDS::Python
