/// @file GivenMemory.hpp
/// @brief Memory that is there already as memory of an array.
#pragma once

#include "DNDS/Base/HostMemory.hpp"

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <utility>

namespace DNDS::Python {

/// Hands out given memory once, to whoever asks for as many bytes, and does not free it. All else is from `upstream`.
class GivenMemory final : public std::pmr::memory_resource {
  public:
    /// `owner` keeps the memory, and is kept until it is given back.
    GivenMemory(std::shared_ptr<const void> owner, void *data, std::size_t bytes, HostMemoryResource upstream)
        : owner_(std::move(owner)), data_(data), bytes_(bytes), upstream_(std::move(upstream)) {}

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override {
        if (bytes == bytes_ && !std::exchange(taken_, true))
            return data_;
        return upstream_->allocate(bytes, alignment);
    }
    void do_deallocate(void *address, std::size_t bytes, std::size_t alignment) override {
        if (address == data_)
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
