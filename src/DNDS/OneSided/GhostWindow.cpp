#include "DNDS/OneSided/GhostWindow.hpp"

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/OneSided/DeviceAccess.hpp"

#include <array>
#include <utility>

namespace DNDS::Detail {

HostMemoryResource arenaOf(const CommunicatorContext &context) { return context.node().arena; }

/// Memory: 16 bytes a ghost and 8 a rank, once more on the device. Ghost g is addressed by its owner and its row there,
/// found here once, so that an access costs O(1) and no look-up in a mapping.
GhostWindowCore::GhostWindowCore(std::shared_ptr<CommunicatorContext> context, MemorySpace space,
                                 const std::function<Rows()> &describe) {
    const CommunicatorView &comm = context->comm();
    const auto [where, unused] = // compared first: rows move to it
        RemoteMemory::meetToMake(context, CollectiveCall::MakeGhostWindow, {static_cast<std::uint64_t>(space), 0},
                                 "a window over rows");
    DNDS_CHECK(!where.differ(), ArgumentError,
               "a window over rows is in host memory on rank {}, but in device memory on rank {}: give all the same",
               where.minRank, where.maxRank);
    Rows rows;
    std::shared_ptr<std::byte> memory;
    std::size_t bytes = 0;
    comm.guarded([&] {
        rows = describe();
        const RowPart &part = rows.layout.parts[0];
        DNDS_CHECK(part.offsets == nullptr && rows.width >= 0, LayoutError,
                   "a window over '{}' needs rows of one width: these differ (CSR)", rows.name);
        DNDS_CHECK(rows.layout.rows == rows.mapping->fatherSize(), StateError,
                   "'{}' has {} rows, but its mapping has {}", rows.name, rows.layout.rows, rows.mapping->fatherSize());
        bytes = toSize(rows.layout.rows) * part.stride;
        // Shares the father's memory, so that the window keeps it; a rank without rows has an empty place of its own.
        memory = bytes > 0 ? std::shared_ptr<std::byte>(std::const_pointer_cast<void>(part.hold), part.base)
                           : RemoteMemory::allocate(*context, 1, rows.layout.space, rows.name);
        // From ghosts to rows of their owners, once: kernels look up nothing.
        const RankLists &owners = rows.mapping->ownerPeers();
        for (std::size_t k = 0; k < owners.size(); ++k)
            for (const index global : owners.list(k))
                ghosts_.push_back({owners.ranks[k], global - rows.mapping->global()->begin(owners.ranks[k])});
        for (int rank = 0; rank < comm.size(); ++rank)
            firstRows_.push_back(rows.mapping->global()->begin(rank));
        firstRows_.push_back(rows.mapping->global()->globalSize());
    });
    // Offsets are computed with this rank's stride, so all ranks must have the same.
    const std::int64_t stride = static_cast<std::int64_t>(rows.layout.parts[0].stride);
    std::array<std::int64_t, 4> extremes{stride, -stride, rows.width, -rows.width};
    comm.allReduce(extremes.data(), 4, MPI_MAX);
    DNDS_CHECK(extremes[0] == -extremes[1] && extremes[2] == -extremes[3], LayoutError,
               "a window over '{}' needs rows of one width: they have {} to {} elements on different ranks", rows.name,
               -extremes[3], extremes[2]);
    memory_ = std::make_unique<RemoteMemory>(std::move(context), std::move(memory), bytes, rows.layout.space,
                                             fmt::format("a window over '{}'", rows.name));
    comm.guarded([&] {
        // The host's calls go through RemoteMemory; of the table's base they need the ranks alone.
        static_cast<RemoteTable &>(host_) = {.rank = comm.rank(), .ranks = comm.size()};
        host_.ghosts = ghosts_.data();
        host_.firstRows = firstRows_.data();
        host_.ghostCount = static_cast<std::int64_t>(ghosts_.size());
        host_.owned = rows.layout.rows;
        host_.stride = rows.layout.parts[0].stride;
        host_.width = rows.width;
        if (rows.layout.space == MemorySpace::Device) {
            deviceGhosts_ = toDeviceBuffer(ghosts_);
            deviceFirstRows_ = toDeviceBuffer(firstRows_);
        }
    });
    memory_->barrier(); // rows are as they were before others change them
}

/// The host's table, with the addresses that kernels reach and, on the device, the copies there.
GhostTable GhostWindowCore::kernels() const {
    GhostTable table = host_;
    static_cast<RemoteTable &>(table) = memory_->kernelTable(KernelWaits::No);
    if (memory_->space() == MemorySpace::Device) {
        table.ghosts = deviceGhosts_.data();
        table.firstRows = deviceFirstRows_.data();
    }
    return table;
}

} // namespace DNDS::Detail
