/// @file SharedSegment.hpp
/// @brief Memory that other processes of the machine can map: an anonymous file and its mapping in this process.
#pragma once

#include "DNDS/Base/HostMemory.hpp"
#include "DNDS/Mpi/SegmentPages.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace DNDS {

/// State of a process, from the system.
enum class ProcessState : unsigned char { Runs, Stopped, Ended };

/// Identity of a process, sent to others of the machine, so that they find its files.
struct ProcessId {
    std::int64_t process = -1;
    std::int64_t space = 0; ///< the namespace in which the number means this process; 0 if unknown

    /// This process, to be sent to others; -1 if the system has no shared segments.
    static ProcessId own() noexcept;
    /// Whether the process still exists. A system call.
    bool alive() const noexcept;
    /// The same, with the state reported by the system. Several system calls.
    ProcessState state() const noexcept;
};

/// A mapping of an anonymous file in memory (Linux memfd). Others open it through /proc for as long as its creator
/// keeps it; the memory vanishes with the last process that maps it, however that ends. Move-only; the
/// destructor unmaps it, and in its creator closes the file. All functions are Local.
class SharedSegment {
  public:
    SharedSegment() = default;
    SharedSegment(SharedSegment &&other) noexcept { swap(other); }
    SharedSegment &operator=(SharedSegment &&other) noexcept {
        swap(other);
        return *this;
    }
    SharedSegment(const SharedSegment &) = delete;
    SharedSegment &operator=(const SharedSegment &) = delete;
    ~SharedSegment();

    /// A new file of `bytes` bytes, whose memory is reserved later. Throws NoMemory.
    static SharedSegment make(std::size_t bytes);
    /// The file with number `file` in another process, of at least `atLeast` bytes. Throws MemoryError
    /// if it cannot be opened, because the process has ended, say.
    static SharedSegment open(const ProcessId &owner, int file, std::size_t atLeast);

    /// Whether memory is mapped; its address in this process; and its size in bytes.
    explicit operator bool() const noexcept { return base_ != nullptr; }
    std::byte *base() const noexcept { return base_; }
    std::size_t bytes() const noexcept { return bytes_; }
    /// The file's number in the process that made it; -1 elsewhere.
    int file() const noexcept { return file_; }
    bool contains(const void *address) const noexcept {
        const auto *byte = static_cast<const std::byte *>(address);
        return byte >= base_ && byte < base_ + bytes_;
    }

    /// Has the system set memory aside, so that touching it cannot fail. Throws NoMemory.
    void reserve(const SegmentPages::Range &range) const;
    /// Returns memory to the system; it is zeroed when touched again. True if that worked.
    bool giveBack(const SegmentPages::Range &range) const noexcept;
    /// Bytes of memory that the system keeps for the segment. A system call.
    std::size_t held() const noexcept;

    /// Under the address sanitizer, makes using this memory an error, or legal again. Elsewhere it does nothing.
    static void forbid(void *address, std::size_t bytes) noexcept;
    static void allow(void *address, std::size_t bytes) noexcept;

  private:
    void swap(SharedSegment &other) noexcept {
        std::swap(base_, other.base_);
        std::swap(bytes_, other.bytes_);
        std::swap(file_, other.file_);
    }

    /// The mapping in this process, and the descriptor of the file, -1 where another process made it.
    std::byte *base_ = nullptr;
    std::size_t bytes_ = 0;
    int file_ = -1;
};

} // namespace DNDS
