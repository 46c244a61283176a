/// @file MpiWindow.hpp
/// @brief The baseline: MPI's own windows on the same node.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <cstdint>

namespace DNDS::Bench {

/// A window of MPI, locked for all as long as it lives. Shared ones are of MPI's component for shared memory.
class MpiWindow {
  public:
    enum class Kind : unsigned char { Allocated, Shared };

    MpiWindow(CommunicatorView comm, std::size_t bytes, Kind kind) {
        const auto size = static_cast<MPI_Aint>(bytes);
        checkMpi(kind == Kind::Shared ? MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, comm.handle(), &base_, &window_)
                                      : MPI_Win_allocate(size, 1, MPI_INFO_NULL, comm.handle(), &base_, &window_),
                 "MPI_Win_allocate");
        checkMpi(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_), "MPI_Win_lock_all");
    }
    MpiWindow(const MpiWindow &) = delete;
    MpiWindow &operator=(const MpiWindow &) = delete;
    ~MpiWindow() {
        MPI_Win_unlock_all(window_);
        MPI_Win_free(&window_);
    }

    void put(const void *from, std::size_t bytes, int rank) const {
        const auto count = static_cast<int>(bytes);
        MPI_Put(from, count, MPI_BYTE, rank, 0, count, MPI_BYTE, window_);
        MPI_Win_flush(rank, window_);
    }
    void get(void *to, std::size_t bytes, int rank) const {
        const auto count = static_cast<int>(bytes);
        MPI_Get(to, count, MPI_BYTE, rank, 0, count, MPI_BYTE, window_);
        MPI_Win_flush(rank, window_);
    }
    std::int64_t fetchAdd(std::int64_t term, int rank) const {
        std::int64_t before = 0;
        MPI_Fetch_and_op(&term, &before, MPI_INT64_T, rank, 0, MPI_SUM, window_);
        MPI_Win_flush(rank, window_);
        return before;
    }
    /// Adds to the first `count` reals of a rank.
    void accumulate(const double *from, std::size_t count, int rank) const {
        const auto n = static_cast<int>(count);
        MPI_Accumulate(from, n, MPI_DOUBLE, rank, 0, n, MPI_DOUBLE, MPI_SUM, window_);
        MPI_Win_flush(rank, window_);
    }
    void getAccumulate(const double *from, double *before, std::size_t count, int rank) const {
        const auto n = static_cast<int>(count);
        MPI_Get_accumulate(from, n, MPI_DOUBLE, before, n, MPI_DOUBLE, rank, 0, n, MPI_DOUBLE, MPI_SUM, window_);
        MPI_Win_flush(rank, window_);
    }
    std::int64_t compareSwap(std::int64_t expected, std::int64_t value, int rank) const {
        std::int64_t before = 0;
        MPI_Compare_and_swap(&value, &expected, &before, MPI_INT64_T, rank, 0, window_);
        MPI_Win_flush(rank, window_);
        return before;
    }

  private:
    void *base_ = nullptr;
    MPI_Win window_ = MPI_WIN_NULL;
};

} // namespace DNDS::Bench
