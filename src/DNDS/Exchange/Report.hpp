/// @file Report.hpp
/// @brief Amounts that exchanges moved, times that ranks waited for each other, and memory used.
#pragma once

#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS {

/// Totals of exchanges of one name over all ranks that have one.
struct ExchangeReport {
    std::string name; ///< "pull of 'u'"
    int ranks = 0;
    std::uint64_t runs = 0; ///< runs on the rank that ran it most often
    RankStatistics peers;
    RankStatistics owned; ///< rows
    RankStatistics ghosts;
    RankStatistics rowsSent; ///< this and the next ones in each run
    RankStatistics bytesSent;
    RankStatistics startSeconds; ///< in all runs
    RankStatistics waitSeconds;
    /// Peers and bytes sent each run, summed over ranks: in own memory, node-shared, by messages, on devices.
    std::array<std::pair<std::uint64_t, std::uint64_t>, 4> paths{};
    /// The rank that starts last, on average over all runs, and how many seconds after the others; -1 if ranks
    /// ran it differently often, there is only one, or they are not the ranks of one communicator.
    int latest = -1;
    double late = 0.0;
    /// Whether that explains the others' waits: it is late by at least half of their wait, and that is not little.
    bool keepsOthersWaiting = false;
};

/// Totals over all ranks; see `report`.
struct Report {
    int ranks = 0;
    std::vector<ExchangeReport> exchanges; ///< in descending order of time
    /// Bytes a rank: owned rows and ghosts of exchanged arrays (arrays of one name count once), lists of rows,
    /// buffers, the memory that the rank's node shares, and the process's peak.
    std::array<RankStatistics, 6> memory{};

    /// The exchange of this name, for example "pull of 'u'"; null if none was counted. Local, O(exchanges).
    const ExchangeReport *find(std::string_view name) const noexcept;
    /// As readable tables. Local.
    std::string text() const;
};

/// Whether exchanges made from now on are counted; DNDS_REPORT=1 counts from the beginning. Counting costs four
/// readings of the clock (0.1 us) a run, and nothing else. Local, on all ranks alike.
void countExchanges(bool on);
/// Whether they are. Local.
bool countsExchanges();

/// All counts until now, including destroyed exchanges; the same on all ranks. Ranks of `comm` are named by
/// their number in it. Collective; a few reductions for each name of an exchange, and messages between rank 0 and each
/// other rank to compare clocks. Throws on all ranks if one lacks memory.
Report report(CommunicatorView comm);

/// Whether DNDS_REPORT is 1. Local.
bool reportsAtEnd();
/// Prints the report of all ranks to stderr on rank 0. Collective over MPI_COMM_WORLD.
void printReportAtEnd() noexcept;

} // namespace DNDS
