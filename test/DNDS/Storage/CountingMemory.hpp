/// @file CountingMemory.hpp
/// @brief A memory resource that shows who uses it, and can run out.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <new>
#include <string>

namespace DNDS::test {

/// Counts what is allocated from it, to see who uses it and that everything comes back.
class CountingMemory final : public std::pmr::memory_resource {
  public:
    std::size_t live = 0;
    std::size_t allocations = 0;
    bool exhausted = false;
    std::string lastFreed; ///< contents of the most recently freed block

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override {
        if (exhausted)
            throw std::bad_alloc();
        live += bytes;
        ++allocations;
        return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    }
    void do_deallocate(void *pointer, std::size_t bytes, std::size_t alignment) override {
        live -= bytes;
        lastFreed.assign(static_cast<const char *>(pointer), bytes);
        std::pmr::new_delete_resource()->deallocate(pointer, bytes, alignment);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override { return this == &other; }
};

} // namespace DNDS::test
