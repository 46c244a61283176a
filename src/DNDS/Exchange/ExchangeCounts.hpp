/// @file ExchangeCounts.hpp
/// @brief Counts of exchanges of one name on this rank, for `report`.
#pragma once

#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace DNDS {

class CommunicatorContext;

/// Classes of paths in reports: in own memory, node-shared, by messages, on devices.
inline constexpr std::size_t pathClasses = 4;

/// Indices of the numbers counted for the exchanges of one name.
namespace Count {
enum : std::size_t {
    Ranks, ///< size of the communicator; -1 where exchanges of this name are on communicators of different sizes
    Made,
    Runs,  ///< successful waits
    Begun, ///< successful starts
    StartSeconds,
    WaitSeconds,
    StartsAt, ///< sum of the times of all starts, by `monotonicSeconds`
    Peers,    ///< the latest exchange's, as are the counts below
    RowsSent, ///< in each run
    BytesSent,
    Owned, ///< rows of one of the arrays
    Ghosts,
    ListBytes,
    BufferBytes, ///< staging of pushes, packed messages, slots
    PathPeers,   ///< [pathClasses]
    PathBytes = PathPeers + pathClasses,
    All = PathBytes + pathClasses
};
} // namespace Count

/// Sums over all runs of all exchanges of one name, and the shape of the latest of them. Several threads may count
/// runs; the rest is guarded by the lock of all counts.
struct ExchangeCounts {
    std::array<std::atomic<double>, Count::All> numbers{};
    std::map<std::string, std::pair<std::size_t, std::size_t>> arrays; ///< bytes of owned rows and of ghosts

    void started(double begin) noexcept {
        numbers[Count::Begun] += 1.0;
        numbers[Count::StartSeconds] += monotonicSeconds() - begin;
        numbers[Count::StartsAt] += begin;
    }
    void waited(double begin) noexcept {
        numbers[Count::Runs] += 1.0;
        numbers[Count::WaitSeconds] += monotonicSeconds() - begin;
    }
    /// Records the paths of a new exchange. Local; under the lock.
    void describe(std::span<const PeerPath> peers, bool onDevice);
};

/// All counts of this process, by the name of the exchange. Names are the same on all ranks of an exchange.
struct CountsOfProcess {
    std::mutex mutex; ///< guards all except runs
    std::map<std::string, std::shared_ptr<ExchangeCounts>> exchanges;
    std::size_t arenaBytes = 0; ///< the largest seen when an exchange was made

    static CountsOfProcess &instance();
};

/// Before the first exchange of all ranks is made: with DNDS_REPORT=1, the program will end with a report; if no
/// such exchange is ever made, rank 0 reports that, if it has made others. Collective the first time for each
/// communicator of all ranks, else Local and free.
void announceReport(CommunicatorContext &context);

/// The counts of that name, created on demand; null while counting is off. Local; takes the lock.
std::shared_ptr<ExchangeCounts> countsOf(const CommunicatorContext &context, const std::string &name);

} // namespace DNDS
