/// @file PackedSource.hpp
/// @brief Device memory with packed rows that other ranks of the node read, and what they must know of it.
#pragma once

#include "DNDS/Base/Attempt.hpp"
#include "DNDS/Device/DeviceBuffer.hpp"
#include "DNDS/Device/SharedMemory.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Transport/PeerEdge.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

namespace DNDS {

/// What a writer keeps for one reader, in memory that their hosts share.
struct PeerRecord {
    PeerEdge edge;
    Device::SharedHandle buffer;     ///< of both buffers
    std::uint64_t begin[2] = {0, 0}; ///< of the reader's message in each of them
};

/// The buffers and records of one writer. They outlive its exchange until all readers have closed them.
class PackedSource {
  public:
    /// Local. Throws MemoryError.
    PackedSource(std::shared_ptr<NodeArena> arena, std::size_t bytes, std::size_t readers)
        : arena_(std::move(arena)), buffer_(bytes) {
        const OnFailure undo([&] { free(); });
        for (std::size_t k = 0; k < readers; ++k) {
            records_.push_back(nullptr);
            records_.back() =
                new (allocateData(*arena_, sizeof(PeerRecord), alignof(PeerRecord), "flags of an exchange"))
                    PeerRecord{};
        }
    }
    PackedSource(const PackedSource &) = delete;
    PackedSource &operator=(const PackedSource &) = delete;
    ~PackedSource() { free(); }

    std::byte *memory() const noexcept { return buffer_.data(); }
    const std::vector<PeerRecord *> &records() const noexcept { return records_; }
    /// Whether no reader will touch it any more.
    bool unused() const {
        return std::ranges::all_of(records_, [](const PeerRecord *record) { return record->edge.readerIsClosed(); });
    }

  private:
    void free() noexcept {
        for (PeerRecord *record : records_)
            if (record != nullptr)
                arena_->deallocate(record, sizeof(PeerRecord), alignof(PeerRecord));
        records_.clear();
    }

    std::shared_ptr<NodeArena> arena_;
    Device::DeviceBuffer<std::byte> buffer_;
    std::vector<PeerRecord *> records_;
};

} // namespace DNDS
