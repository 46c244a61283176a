/// @file ExchangeCounts.hpp
/// @brief What exchanges of one name have done on this rank, for `report`.
#pragma once

#include "DNDS/Exchange/ExchangeTypes.hpp"
#include "DNDS/Mpi/ClockOffset.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace DNDS {

class CommunicatorContext;

/// The ways that rows take, as far as reports tell them apart.
enum class PathClass : unsigned char { OwnMemory, NodeShared, Messages, Device, Added };
inline constexpr std::size_t pathClasses = 5;

/// Peers and bytes of one way; also sent from rank to rank as it is.
struct PathShare {
    std::uint64_t peers = 0;
    std::uint64_t bytes = 0; ///< sent each time the exchange runs
};

/// Sums over all runs of all exchanges of one name, and the shape of the latest of them. Several threads may count
/// runs; the rest is under the lock of all counts.
struct ExchangeCounts {
    struct Array {
        std::size_t owned = 0; ///< bytes
        std::size_t ghosts = 0;
    };

    int ranks = 0; ///< of the communicator; -1 where exchanges of this name are on communicators of different sizes
    std::uint64_t made = 0;
    std::atomic<std::uint64_t> runs = 0;  ///< waited for with success
    std::atomic<std::uint64_t> begun = 0; ///< started with success
    std::atomic<double> startSeconds = 0.0;
    std::atomic<double> waitSeconds = 0.0;
    std::atomic<double> startsAt = 0.0; ///< the sum of the moments of all starts, by `monotonicSeconds`
    std::uint64_t peers = 0;
    std::uint64_t rowsSent = 0; ///< this and the next ones in each run
    std::uint64_t rowsReceived = 0;
    std::uint64_t bytesSent = 0;
    std::uint64_t bytesReceived = 0;
    std::uint64_t owned = 0; ///< rows of one of the arrays
    std::uint64_t ghosts = 0;
    std::size_t listBytes = 0;
    std::size_t bufferBytes = 0; ///< staging of pushes, packed messages, slots
    std::array<PathShare, pathClasses> paths{};
    std::map<std::string, Array> arrays;

    void started(double begin) noexcept {
        ++begun;
        startSeconds += monotonicSeconds() - begin;
        startsAt += begin;
    }
    void waited(double begin) noexcept {
        ++runs;
        waitSeconds += monotonicSeconds() - begin;
    }
    /// The shape of an exchange that was just made. Local; under the lock.
    void describe(std::span<const PeerPath> peersNow, bool onDevice);
};

/// All counts of this process, by the name of the exchange. Names are the same on all ranks of an exchange.
struct CountsOfProcess {
    std::mutex mutex; ///< of all but runs
    std::map<std::string, std::shared_ptr<ExchangeCounts>> exchanges;
    std::size_t arenaBytes = 0; ///< the most that was seen when an exchange was made

    static CountsOfProcess &instance();
};

/// Before the first exchange of all ranks is made: with DNDS_REPORT=1, the program will end with a report; where there
/// never is one, rank 0 says so, as far as it has made others. Collective the first time for each communicator of all
/// ranks, else Local and of no cost.
void announceReport(CommunicatorContext &context);

/// The counts under that name, made if need be; null while nothing is counted. Local; takes the lock. Throws
/// std::bad_alloc.
std::shared_ptr<ExchangeCounts> countsOf(const CommunicatorContext &context, const std::string &name);

} // namespace DNDS
