#include "DNDS/GridFile/Slab.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/GridFile/ElementConversion.hpp"
#include "DNDS/GridFile/SlabChunks.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"
#include "DNDS/Serialize/DurableFile.hpp"

#include <limits>

namespace DNDS {

namespace {

/// The size of the file. Throws LayoutError for shapes too large for a file.
/// Half of the largest number is left for the header.
index rawFileBytes(const std::string &path, const RawFileLayout &layout) {
    index bytes = static_cast<index>(Detail::bytesOf(layout.kind));
    for (const index n : layout.shape) {
        DNDS_CHECK(n >= 0 && (n == 0 || bytes <= std::numeric_limits<index>::max() / 2 / n), LayoutError,
                   "{}: a dimension of {} elements", path, n);
        bytes *= n;
    }
    DNDS_CHECK(layout.header >= 0, ArgumentError, "{}: a header of {} bytes", path, layout.header);
    return bytes + layout.header;
}

} // namespace

// Also checks the length: a wrong shape or type would read without an error otherwise.
void readRawFile(CommunicatorView comm, const std::string &path, const RawFileLayout &layout,
                 std::span<const Slab> slabs) {
    comm.guarded([&] {
        const index bytes = rawFileBytes(path, layout);
        for (const Slab &slab : slabs)
            checkSlab(slab, layout.shape, path, layout.kind);
        const DurableFile file = DurableFile::forReading(path);
        DNDS_CHECK(file.size() == bytes, DataError,
                   "{} has {} bytes; a header of {} and the elements of its shape are {}", path, file.size(),
                   layout.header, bytes);
        for (const Slab &slab : slabs)
            Detail::readRawSlab(file, layout.header, layout.shape, layout.order != std::endian::native, slab);
    });
}

// Rank 0 makes the file at its full size, then all write their boxes. The name appears when the file is complete:
// readers find the old file or the new one, never a part.
// The size is fixed first, so that ranks can write at any offset, and a full disk is found before any value is written
// where the file system reserves space.
void writeRawFile(CommunicatorView comm, const std::string &path, const RawFileLayout &layout,
                  std::span<const WrittenSlab> slabs) {
    const std::string temporary = path + ".part";
    comm.guarded([&] {
        const index bytes = rawFileBytes(path, layout);
        for (const WrittenSlab &slab : slabs)
            checkSlab(slab, layout.shape, path, layout.kind);
        if (comm.rank() == 0)
            (void)DurableFile::create(temporary, bytes);
    });
    comm.guarded([&] {
        // Boxes of ranks do not overlap: no order among writes is needed.
        const DurableFile file = DurableFile::forWriting(temporary);
        for (const WrittenSlab &slab : slabs)
            Detail::writeRawSlab(file, layout.header, layout.shape, layout.order != std::endian::native, slab);
        file.flush();
    });
    onRankZero(comm, [&] { renameDurably(temporary, path); });
}

} // namespace DNDS
