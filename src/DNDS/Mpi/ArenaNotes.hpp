/// @file ArenaNotes.hpp
/// @brief Exchange of arena locations between ranks of a node.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/PeerMemory.hpp"
#include "DNDS/Mpi/RollCall.hpp"

#include <cstddef>
#include <vector>

namespace DNDS {

/// The notes that this rank sends to some peers and receives from others in a set-up. Local, except `exchange`.
class ArenaNotes {
  public:
    /// Adds a note: to a peer, about a place in this rank's arena; or from a peer.
    void tell(int peer, const ArenaLocation &place) { told_.push_back({peer, place, MPI_REQUEST_NULL}); }
    void expect(int peer) { heard_.push_back({peer, {}, MPI_REQUEST_NULL}); }
    /// Sends and receives all. Waits for the peers to do the same. Allocates nothing.
    void exchange(const Channel &channel) {
        // Receives are posted before any send, and no call waits before all are posted: ranks cannot wait for each
        // other in a circle. Several notes to one peer arrive in the order of `tell`, as MPI keeps the order of
        // messages of one channel.
        const ActivityScope activity = ActivityScope::collective("MPI_Wait");
        for (Note &note : heard_)
            checkMpi(MPI_Irecv(&note.place, sizeof note.place, MPI_BYTE, note.peer, channel.tag, channel.comm,
                               &note.request),
                     "MPI_Irecv");
        for (Note &note : told_)
            checkMpi(MPI_Isend(&note.place, sizeof note.place, MPI_BYTE, note.peer, channel.tag, channel.comm,
                               &note.request),
                     "MPI_Isend");
        for (std::vector<Note> *notes : {&heard_, &told_})
            for (Note &note : *notes)
                checkMpi(MPI_Wait(&note.request, MPI_STATUS_IGNORE), "MPI_Wait");
    }
    /// The location in note number `k` of the expected ones.
    const ArenaLocation &heard(std::size_t k) const { return heard_[k].place; }

  private:
    /// One message of sizeof(ArenaLocation) bytes. MPI reads or writes `place` until `request` is complete, so the
    /// lists must not grow during `exchange`.
    struct Note {
        int peer;
        ArenaLocation place;
        MPI_Request request;
    };
    /// In the order of `tell` and `expect`.
    std::vector<Note> told_;
    std::vector<Note> heard_;
};

} // namespace DNDS
