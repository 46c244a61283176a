/// @file MatchedMessage.hpp
/// @brief A message whose size only its sender knows: found first, received when there is room.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/Datatype.hpp"

#include <cstddef>

namespace DNDS {

/// The next message of a rank on a channel, between the moment when it was found and that when its receive is started.
/// Nobody else can receive it then, and where it is large its sender waits: never forget one. Local.
class MatchedMessage {
  public:
    bool isFound() const noexcept { return message_ != MPI_MESSAGE_NULL; }
    /// Of what was found last.
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
    /// Starts to receive what was found into memory for so many bytes, which `request` shows the end of.
    void receive(std::byte *to, MPI_Request &request) {
        const ByteCount size(bytes_);
        checkMpi(MPI_Imrecv(to, size.count(), size.type(), &message_, &request), "MPI_Imrecv");
    }
    /// Receives none of its bytes: for those without memory, so that its sender does not wait. MPI reports it as
    /// truncated.
    void refuse(MPI_Request &request) noexcept { MPI_Imrecv(nullptr, 0, MPI_BYTE, &message_, &request); }

  private:
    MPI_Message message_ = MPI_MESSAGE_NULL;
    std::size_t bytes_ = 0;
};

} // namespace DNDS
