/// @file Setting.hpp
/// @brief Shared by the parts of bench_gpu: streams, time that is left, records, and the lists of rows they move.
#pragma once

#include "Interleave.hpp"
#include "Options.hpp"
#include "Report.hpp"
#include "Statistics.hpp"

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Device/Stream.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Bench {

struct Setting {
    CommunicatorView comm;
    NodeSync &sync;
    Report &report;
    CommonOptions common;
    std::vector<index> rows;
    std::vector<int> widths;
    std::vector<std::string> transports;
    std::vector<std::string> what;
    double seconds = 600; ///< no part begins after so many
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

    bool wants(const std::string &part) const;
    /// Whether there is time for `what`; if not, prints that it is skipped. Collective: one answer on all
    /// ranks.
    bool timeFor(const std::string &what) const;
    /// Keeps a record, and writes all records so far, so that a run that is stopped leaves them. Collective.
    void add(Record record) const;
    /// Prints on rank 0, at once.
    void say(const std::string &text) const { Bench::say(comm, text); }
};

/// Rows of a larger array, ascending: each of them with a probability of a quarter, or in runs of eight neighbours.
std::vector<index> chosenRows(index count, index among, const std::string &order);

/// Bytes that a device must move to gather `rows` of `rowBytes` bytes from an array that begins on a sector of 32
/// bytes: the sectors that hold them, each once, their numbers (one a run of neighbours), and the rows written. The
/// floor of any kernel that gathers them, at the rate of the device's own copies.
double bytesMoved(const std::vector<index> &rows, std::size_t rowBytes);

/// Over all turns of one contestant: where cores are near or far matters little to a device. Local.
inline double medianOf(const std::vector<Block> &blocks) {
    std::vector<double> times;
    for (const Block &block : blocks)
        times.push_back(block.microseconds);
    return median(std::move(times));
}

/// Throws DataError on all ranks where `wrong` is not 0 on some rank.
void requireNone(CommunicatorView comm, index wrong, const std::string &what);

/// The parts; each collective, each writes its records.
void benchmarkKernels(const Setting &setting);
void benchmarkRows(const Setting &setting);
void benchmarkGraphs(const Setting &setting);
void benchmarkPulls(const Setting &setting);
void benchmarkSparse(const Setting &setting);

} // namespace DNDS::Bench
