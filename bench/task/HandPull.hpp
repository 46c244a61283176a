/// @file HandPull.hpp
/// @brief Pulls by persistent MPI without the library.
#pragma once

#include "DNDS/Exchange/ExchangePattern.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <vector>

namespace DNDS::Bench {

/// One message a peer with the rows of all its fields. Received straight into the ghosts if there is one field.
class HandPull {
  public:
    struct Field {
        const real *own;
        real *ghosts;
        int width;
    };

    /// Local: no messages yet. The fields and `comm` must outlive it; `tag` is no other's on `comm`.
    HandPull(const ExchangePattern &pattern, CommunicatorView comm, int tag, std::vector<Field> fields);
    HandPull(const HandPull &) = delete;
    HandPull &operator=(const HandPull &) = delete;
    ~HandPull();

    /// Local.
    void start();
    /// Local; waits for the peers' rows.
    void wait();

  private:
    std::vector<Field> fields_;
    std::vector<std::vector<index>> given_, received_; ///< rows for each peer
    std::vector<std::vector<real>> sent_, arrived_;    ///< messages; no `arrived_` for one field
    std::vector<MPI_Request> requests_;                ///< receives, then sends
};

} // namespace DNDS::Bench
