/// @file RmaWindow.hpp
/// @brief Owner of an MPI window over existing memory, for puts and gets between nodes.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <mpi.h>

#include <cstddef>

namespace DNDS {

/// An MPI window over memory owned by its user, locked for all ranks as long as it lives. Addresses are bytes
/// from the start of each rank's memory. Move-only.
///
/// It carries puts and gets only. Atomic operations of MPI may use locks of their own, so that a word changed by them
/// and by the processor loses updates.
class RmaWindow {
  public:
    RmaWindow() = default;
    /// `bytes` bytes from `base` on this rank. Collective.
    RmaWindow(CommunicatorView comm, void *base, std::size_t bytes);
    RmaWindow(RmaWindow &&other) noexcept : window_(std::exchange(other.window_, MPI_WIN_NULL)) {}
    RmaWindow &operator=(RmaWindow &&other) noexcept {
        std::swap(window_, other.window_);
        return *this;
    }
    RmaWindow(const RmaWindow &) = delete;
    RmaWindow &operator=(const RmaWindow &) = delete;
    /// Frees nothing: `free` is collective, which destructors on all ranks are not.
    ~RmaWindow() = default;

    /// Ends the window. Collective; all ranks have completed their operations.
    void free();

    /// Whether it holds a window: false before it is made, and after `free`.
    explicit operator bool() const noexcept { return window_ != MPI_WIN_NULL; }

    /// Begin an operation; `flush` completes it. Local.
    void put(const void *from, std::size_t bytes, int rank, std::size_t offset) const;
    void get(void *to, std::size_t bytes, int rank, std::size_t offset) const;
    /// Sources of earlier puts to a rank may be reused afterwards. Local.
    void flushLocal(int rank) const;
    /// Completes all operations on a rank's memory, at the target, too. Local.
    void flush(int rank) const;
    /// Synchronises this rank's loads and stores with the window. Local.
    void sync() const;

  private:
    /// Locked for all ranks while it exists.
    MPI_Win window_ = MPI_WIN_NULL;
};

} // namespace DNDS
