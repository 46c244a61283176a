/// @file GivenMemory.hpp
/// @brief Existing memory as the memory of an array.
#pragma once

#include "DNDS/Base/HostMemory.hpp"

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <utility>

namespace DNDS::Python {

/// Hands out given memory once, for a request of exactly its size, and does not free it. Other requests go to
/// `upstream`.
class GivenMemory final : public std::pmr::memory_resource {
  public:
    /// `owner` keeps the memory alive until it is returned.
    GivenMemory(std::shared_ptr<const void> owner, void *data, std::size_t bytes, HostMemoryResource upstream)
        : owner_(std::move(owner)), data_(data), bytes_(bytes), upstream_(std::move(upstream)) {}

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override {
        if (bytes == bytes_ && !std::exchange(taken_, true))
            return data_;
        return upstream_->allocate(bytes, alignment);
    }
    void do_deallocate(void *address, std::size_t bytes, std::size_t alignment) override {
        if (address == data_ && owner_ != nullptr) // later, `upstream` may hand out the same address
            owner_.reset();
        else
            upstream_->deallocate(address, bytes, alignment);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override { return this == &other; }

    std::shared_ptr<const void> owner_;
    void *data_;
    std::size_t bytes_;
    HostMemoryResource upstream_;
    bool taken_ = false;
};

} // namespace DNDS::Python
