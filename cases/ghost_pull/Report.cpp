#include "Report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

namespace {

using DNDS::CommunicatorView;
using DNDS::real;

/// Sums up the counts: where each rank's items begin.
std::vector<int> startsOf(const std::vector<int> &counts) {
    std::vector<int> starts(counts.size(), 0);
    for (std::size_t r = 1; r < counts.size(); r++)
        starts[r] = starts[r - 1] + counts[r - 1];
    return starts;
}

/// The texts of all ranks one after the other, on rank 0. Collective.
std::string gatherText(CommunicatorView comm, const std::string &mine) {
    const auto length = static_cast<int>(mine.size());
    const std::vector<int> lengths = comm.allGather(length);
    const std::vector<int> starts = startsOf(lengths);
    std::string all(comm.rank() == 0 ? static_cast<std::size_t>(starts.back() + lengths.back()) : 0, ' ');
    DNDS::checkMpi(MPI_Gatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(), starts.data(), MPI_CHAR, 0,
                               comm.handle()),
                   "MPI_Gatherv");
    return all;
}

/// Writes a header line and the lines of all ranks into one file. Collective.
void writeTable(CommunicatorView comm, const std::filesystem::path &path, const char *header, const std::string &mine) {
    const std::string all = gatherText(comm, mine);
    comm.guarded([&] {
        if (comm.rank() != 0)
            return;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream file(path);
        file << header << '\n' << all;
        file.close();
        DNDS_CHECK(file.good(), DNDS::DataError, "cannot write {}", path.string());
    });
}

} // namespace

DNDS::Index countWrongGhosts(CommunicatorView comm, const DNDS::ArrayPair<Field> &u) {
    const auto owned = std::as_const(*u.father).view();
    const auto ghost = std::as_const(*u.son).view();
    const int width = owned.rowSize();
    const std::vector<int> counts = comm.allGather(static_cast<int>(owned.size()) * width);
    const std::vector<int> starts = startsOf(counts);
    std::vector<real> everything(static_cast<std::size_t>(starts.back() + counts.back()));
    DNDS::checkMpi(MPI_Allgatherv(owned.data(), counts[static_cast<std::size_t>(comm.rank())], MPI_DOUBLE,
                                  everything.data(), counts.data(), starts.data(), MPI_DOUBLE, comm.handle()),
                   "MPI_Allgatherv");

    DNDS::Index wrong = 0;
    const auto globalRows = u.trans.ghostMapping()->ghosts();
    for (DNDS::Index g = 0; g < ghost.size(); g++) {
        const real *truth = everything.data() + globalRows[static_cast<std::size_t>(g)] * width;
        wrong += std::memcmp(ghost[g], truth, static_cast<std::size_t>(width) * sizeof(real)) != 0 ? 1 : 0;
    }
    return comm.allReduce(wrong, MPI_SUM);
}

double medianPullTime(CommunicatorView comm, DNDS::ArrayPair<Field> &u) {
    std::vector<double> times(201);
    for (double &time : times) {
        comm.barrier();
        time = -MPI_Wtime();
        u.trans.startPersistentPull();
        u.trans.waitPersistentPull();
        time += MPI_Wtime();
    }
    std::nth_element(times.begin(), times.begin() + 100, times.end());
    return 1e6 * times[100];
}

void report(CommunicatorView comm, const DNDS::ArrayPair<Field> &u, double pullTime, std::span<const real> corners,
            const std::string &output) {
    const auto &pattern = *u.trans.pattern();
    const std::vector<DNDS::PeerPath> paths = u.trans.pullPaths();
    std::size_t bytes = 0;
    std::string peerLines;
    std::string peerTable;
    for (const DNDS::PeerPath &path : paths) {
        bytes += path.bytesReceived;
        peerLines += fmt::format("        from {:<3} {:7} rows  {:8.1f} KiB  {}: {}\n", path.peer, path.rowsReceived,
                                 static_cast<double>(path.bytesReceived) / 1024, path.name, path.why);
        peerTable +=
            fmt::format("{},{},{},{},{}\n", comm.rank(), path.peer, path.rowsReceived, path.bytesReceived, path.name);
    }
    const auto inner = pattern.innerRows().size();
    const std::string table = gatherText(comm, fmt::format("{:4} {:9} {:9} {:7} {:5} {:9.1f} {:9.1f}\n{}", comm.rank(),
                                                           pattern.fatherSize(), inner, pattern.sonSize(), paths.size(),
                                                           static_cast<double>(bytes) / 1024, pullTime, peerLines));
    if (comm.rank() == 0)
        fmt::print("\n{:>4} {:>9} {:>9} {:>7} {:>5} {:>9} {:>9}\n{}", "rank", "rows", "inner", "ghosts", "peers",
                   "KiB/pull", "us/pull", table);
    if (output.empty())
        return;

    // The ghosts of rank 0: their owners know them, because they send them.
    std::vector<char> readByRank0(static_cast<std::size_t>(pattern.fatherSize()), 0);
    for (std::size_t k = 0; k < pattern.readers().size(); k++)
        if (pattern.readers().ranks[k] == 0)
            for (const DNDS::Index row : pattern.readers().list(k))
                readByRank0[static_cast<std::size_t>(row)] = 1;

    std::string cells;
    const auto value = std::as_const(*u.father).view();
    for (DNDS::Index cell = 0; cell < value.size(); cell++) {
        const real *p = corners.data() + 6 * cell;
        fmt::format_to(std::back_inserter(cells), "{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{},{},{:.4f}\n", p[0],
                       p[1], p[2], p[3], p[4], p[5], comm.rank(), int{readByRank0[static_cast<std::size_t>(cell)]},
                       value(cell, 0));
    }
    const std::filesystem::path folder(output);
    writeTable(comm, folder / "cells.csv", "x0,y0,x1,y1,x2,y2,owner,ghost_of_rank_0,u", cells);
    writeTable(comm, folder / "peers.csv", "rank,peer,rows,bytes,transport", peerTable);
    writeTable(comm, folder / "ranks.csv", "rank,rows,inner,ghosts,bytes,microseconds",
               fmt::format("{},{},{},{},{},{:.3f}\n", comm.rank(), pattern.fatherSize(), inner, pattern.sonSize(),
                           bytes, pullTime));
}
