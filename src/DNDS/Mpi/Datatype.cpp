#include "DNDS/Mpi/Communicator.hpp"

#include <climits>
#include <vector>

namespace DNDS {

namespace {

/// Blocks above this size are described by chunks of it, so that every count fits an `int`.
constexpr std::size_t chunkBytes = std::size_t{1} << 30;

} // namespace

Datatype::~Datatype() {
    if (type_ != MPI_DATATYPE_NULL && mpiActive())
        MPI_Type_free(&type_);
}

// O(blocks + bytes / 1 GiB). Offsets count from the buffer's address, or are absolute with MPI_BOTTOM. Order of
// blocks is the order of bytes in the message.
Datatype Datatype::fromBlocks(std::span<const ByteBlock> blocks) {
    // One hindexed type in bytes for all blocks: MPI then packs, or sends in place, as it sees fit. O(blocks).
    std::vector<int> lengths;
    std::vector<MPI_Aint> offsets;
    lengths.reserve(blocks.size());
    offsets.reserve(blocks.size());
    for (const ByteBlock &block : blocks) {
        // A block of any size becomes chunks that follow each other; the message's bytes are the same.
        std::size_t done = 0;
        while (done < block.bytes) {
            const std::size_t part = std::min(chunkBytes, block.bytes - done);
            lengths.push_back(static_cast<int>(part));
            offsets.push_back(static_cast<MPI_Aint>(block.offset + done));
            done += part;
        }
    }
    DNDS_CHECK(lengths.size() <= INT_MAX, ArgumentError, "a derived datatype of {} blocks exceeds what MPI counts",
               lengths.size());
    MPI_Datatype type = MPI_DATATYPE_NULL;
    checkMpi(
        MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), offsets.data(), MPI_BYTE, &type),
        "MPI_Type_create_hindexed");
    Datatype owner(type);
    checkMpi(MPI_Type_commit(&owner.type_), "MPI_Type_commit");
    return owner;
}

// MPI-3 counts are int: beyond 2 GiB the whole message becomes one element of a derived type.
ByteCount::ByteCount(std::size_t bytes) {
    if (bytes <= INT_MAX) {
        count_ = static_cast<int>(bytes);
        return;
    }
    const ByteBlock whole{0, bytes};
    large_ = Datatype::fromBlocks({&whole, 1});
    count_ = 1;
}

} // namespace DNDS
