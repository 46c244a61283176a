/// @file MatchedMessage.hpp
/// @brief A message whose size only its sender knows: found first, received when there is room.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <cstddef>

namespace DNDS {

/// The next message of a rank on a channel, between the moment when it was found and that when its receive is started.
/// No other receive can take it then, and if it is large its sender waits: never drop one. Local.
class MatchedMessage {
  public:
    bool isFound() const noexcept { return message_ != MPI_MESSAGE_NULL; }
    /// The size of the message that was found last.
    std::size_t bytes() const noexcept { return bytes_; }
    /// Looks for a message, unless one was found already. Whether there is one. Does not wait.
    bool find(int rank, const Channel &channel) {
        if (isFound())
            return true;
        int found = 0;
        MPI_Status status;
        checkMpi(MPI_Improbe(rank, channel.tag, channel.comm, &found, &message_, &status), "MPI_Improbe");
        if (found == 0)
            return false;
        MPI_Count bytes = 0;
        checkMpi(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
        bytes_ = static_cast<std::size_t>(bytes);
        return true;
    }
    /// Starts to receive the message that was found, into memory for `bytes()`; `request` shows the end.
    void receive(std::byte *to, MPI_Request &request) {
        const ByteCount size(bytes_);
        checkMpi(MPI_Imrecv(to, size.count(), size.type(), &message_, &request), "MPI_Imrecv");
    }

  private:
    /// MPI's handle between the matched probe and the receive; then null again.
    MPI_Message message_ = MPI_MESSAGE_NULL;
    std::size_t bytes_ = 0;
};

/// Whether the operation is over; then `request` is null. Local, does not wait.
inline bool isComplete(MPI_Request &request) {
    int done = 1;
    if (request != MPI_REQUEST_NULL)
        checkMpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
}

} // namespace DNDS
