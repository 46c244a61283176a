/// @file BlockEnd.hpp
/// @brief Lets all ranks leave a block together that an exception may have left on some of them only.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <memory>

namespace DNDS::Python {

/// The meeting of all ranks at the end of a block. A rank that failed must not wait long for the others: they may wait
/// for it within the block, and its exception must get out so that the job can end.
class BlockEnd {
  public:
    enum class Outcome : unsigned char {
        Whole,  ///< no rank failed
        Failed, ///< some did, and all ranks are here
        Apart   ///< some did, and one of them has left without the others: no more collective calls are possible
    };

    /// Collective. Its own communicator separates these messages from the messages that others wait for.
    explicit BlockEnd(CommunicatorView comm);
    ~BlockEnd();

    /// Call once. Collective, but a rank that failed waits for the others for some seconds only.
    Outcome meet(bool failed);

  private:
    struct Votes;
    std::unique_ptr<Votes> votes_;
};

} // namespace DNDS::Python
