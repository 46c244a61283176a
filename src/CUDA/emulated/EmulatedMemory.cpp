#include "EmulatedMemory.hpp"

#include "DNDS/Base/Error.hpp"

#include <cerrno>
#include <cstring>
#include <exception>

#include <sys/mman.h>
#include <unistd.h>

namespace DNDS::Device {

namespace {

[[noreturn]] void throwNoMemory(std::size_t bytes, int error) {
    throw MemoryError(fmt::format("emulated device: no room for {} bytes ({})", bytes, std::strerror(error)));
}

std::byte *mapFile(int file, std::size_t bytes, int protection) {
    void *pointer = ::mmap(nullptr, bytes, protection, MAP_SHARED, file, 0);
    return pointer == MAP_FAILED ? nullptr : static_cast<std::byte *>(pointer);
}

} // namespace

void *EmulatedMemory::allocate(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    if (bytes > static_cast<std::size_t>(PTRDIFF_MAX) - page)
        throwNoMemory(bytes, ENOMEM);
    const std::size_t mapped = (bytes + page - 1) / page * page;
    const std::scoped_lock lock(mutex_);
    const int file = ::memfd_create("DNDS emulated device memory", MFD_CLOEXEC);
    if (file < 0)
        throwNoMemory(bytes, errno);
    std::byte *user = nullptr;
    std::byte *alias = nullptr;
    if (::ftruncate(file, static_cast<off_t>(mapped)) == 0) {
        user = mapFile(file, mapped, openings_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
        alias = user ? mapFile(file, mapped, PROT_READ | PROT_WRITE) : nullptr;
    }
    const int error = errno;
    ::close(file); // the mappings keep it alive
    if (!alias) {
        if (user)
            ::munmap(user, mapped);
        throwNoMemory(bytes, error);
    }
    // Device memory is not zero when one gets it: signalling bytes show who relies on that.
    std::memset(alias, 0xFB, mapped);
    blocks_.emplace(user, Block{alias, bytes, mapped});
    return user;
}

void EmulatedMemory::deallocate(void *pointer) noexcept {
    const std::scoped_lock lock(mutex_);
    const auto found = blocks_.find(static_cast<std::byte *>(pointer));
    if (found == blocks_.end())
        std::terminate(); // a double free, or a pointer that is no device memory
    ::munmap(found->second.alias, found->second.mapped);
    ::munmap(pointer, found->second.mapped);
    blocks_.erase(found);
}

std::byte *EmulatedMemory::alias(const void *pointer, std::size_t bytes) const {
    const std::scoped_lock lock(mutex_);
    const auto *wanted = static_cast<const std::byte *>(pointer);
    auto after = blocks_.upper_bound(wanted);
    if (after != blocks_.begin()) {
        const auto &[user, block] = *--after;
        const auto offset = static_cast<std::size_t>(wanted - user);
        if (offset <= block.bytes && bytes <= block.bytes - offset)
            return block.alias + offset;
    }
    throw ArgumentError(
        fmt::format("emulated device: [{}, +{}) is not within one allocation of device memory", pointer, bytes));
}

void EmulatedMemory::protectAll(int protection) const noexcept {
    for (const auto &[user, block] : blocks_)
        if (::mprotect(const_cast<std::byte *>(user), block.mapped, protection) != 0)
            std::terminate(); // only if the mapping is not ours any more
}

void EmulatedMemory::open() {
    const std::scoped_lock lock(mutex_);
    if (openings_++ == 0)
        protectAll(PROT_READ | PROT_WRITE);
}

void EmulatedMemory::close() noexcept {
    const std::scoped_lock lock(mutex_);
    if (--openings_ == 0)
        protectAll(PROT_NONE);
}

} // namespace DNDS::Device
