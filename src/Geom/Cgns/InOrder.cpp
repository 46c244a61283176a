#include "DNDS/Geom/Cgns/InOrder.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <exception>
#include <vector>

namespace DNDS::Geom::Detail {

namespace {

// 4 MiB: large enough for the speed of a file system, and the memory that rank 0 needs beside its own block.
constexpr std::size_t pieceBytes = std::size_t{1} << 22;

} // namespace

/// Blocking sends and receives, rank after rank: rank 0 always receives what the next rank sends, whatever happened
/// to `take`, so no rank waits for ever. Ranks wait for their turn in MPI_Send.
/// O(pieceBytes) memory on rank 0 beyond its own values, O(bytes of all ranks) time there. Sizes are known to rank
/// 0 before the first receive, so the number of receives equals the number of sends.
void streamToFirstRank(CommunicatorContext &context, std::span<const std::byte> mine, std::size_t unit,
                       const std::function<void(std::span<const std::byte>)> &take) {
    const Channel channel = context.nextChannel();
    const CommunicatorView comm = context.comm();
    const std::size_t most = std::max<std::size_t>(pieceBytes / unit, 1) * unit;
    const std::vector<std::uint64_t> sizes = comm.allGather(static_cast<std::uint64_t>(mine.size()));
    std::exception_ptr failure;
    std::vector<std::byte> received;
    // The only allocation of this rank: a failure is agreed on before any rank sends.
    comm.guarded([&] {
        if (comm.rank() == 0)
            received.resize(std::min<std::uint64_t>(most, *std::max_element(sizes.begin(), sizes.end())));
    });
    const auto forEachPiece = [&](std::size_t size, auto &&visit) {
        for (std::size_t done = 0; done < size; done += most)
            visit(done, std::min(most, size - done));
    };
    if (comm.rank() != 0) {
        forEachPiece(mine.size(), [&](std::size_t done, std::size_t count) {
            checkMpi(MPI_Send(mine.data() + done, static_cast<int>(count), MPI_BYTE, 0, channel.tag, channel.comm),
                     "MPI_Send");
        });
    } else {
        const auto tryToTake = [&](std::span<const std::byte> piece) {
            attempt(failure, [&] {
                if (!failure)
                    take(piece);
            });
        };
        forEachPiece(mine.size(), [&](std::size_t done, std::size_t count) { tryToTake(mine.subspan(done, count)); });
        for (int rank = 1; rank < comm.size(); rank++)
            forEachPiece(sizes[static_cast<std::size_t>(rank)], [&](std::size_t, std::size_t count) {
                checkMpi(MPI_Recv(received.data(), static_cast<int>(count), MPI_BYTE, rank, channel.tag, channel.comm,
                                  MPI_STATUS_IGNORE),
                         "MPI_Recv");
                tryToTake(std::span<const std::byte>(received).first(count));
            });
    }
    comm.agree(failure);
}

} // namespace DNDS::Geom::Detail
