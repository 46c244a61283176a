#include "DNDS/Device/DeviceMemory.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/Hooks.hpp"

namespace DNDS::Device {

namespace {

/// Pinned memory of the device back end as a resource for containers; stateless.
class PinnedMemory final : public std::pmr::memory_resource {
    void *do_allocate(std::size_t bytes, std::size_t alignment) override {
        DNDS_CHECK(alignment <= allocationAlignment, ArgumentError, "pinned memory is aligned to {} bytes, not to {}",
                   allocationAlignment, alignment);
        return allocatePinned(bytes);
    }
    void do_deallocate(void *pointer, std::size_t /*bytes*/, std::size_t /*alignment*/) override {
        deallocatePinned(pointer);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override { return this == &other; }
};

} // namespace

const HostMemoryResource &pinnedHostMemory() {
    // never destroyed: static arrays may release memory until the process ends
    static const auto *resource = new HostMemoryResource(std::make_shared<PinnedMemory>());
    return *resource;
}

} // namespace DNDS::Device
