/// @file SharedMemory.hpp
/// @brief Device memory of another process.
#pragma once

#include "DNDS/Device/Hooks.hpp"

#include <memory>

namespace DNDS::Device {

/// Keeps device memory open that another process on this machine shared. Move-only; Local.
///
///     Device::SharedHandle mine = Device::share(buffer);     // the owner; sent by MPI as bytes
///     Device::SharedMemory theirs(handleOfPeer);             // the peer
///     launch(theirs.as<const double>());                     // reads the owner's memory
///
/// The owner must not free the memory while another process has it open: synchronise (for example by a barrier) first.
class SharedMemory {
  public:
    SharedMemory() = default;
    /// Opens memory that another process shared. @throws as openShared.
    explicit SharedMemory(const SharedHandle &handle) : pointer_(openShared(handle)) {}

    /// Address of the shared byte in this process; null when empty.
    void *get() const noexcept { return pointer_.get(); }
    /// The same as a pointer to `T`.
    template <class T>
    T *as() const noexcept {
        return static_cast<T *>(pointer_.get());
    }

  private:
    std::unique_ptr<void, EndBy<closeShared>> pointer_;
};

} // namespace DNDS::Device
