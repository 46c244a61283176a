#include "DNDS/Geom/File/FileSegments.hpp"

#include <algorithm>

namespace DNDS::Geom {

std::vector<FileSegment> ownSegments(const std::vector<FileSegment> &all, index entries, CommunicatorView comm) {
    const auto rankOf = [&](const FileSegment &segment) {
        return static_cast<int>(static_cast<long double>(segment.first) * comm.size() /
                                static_cast<long double>(entries));
    };
    std::vector<FileSegment> own;
    for (const FileSegment &segment : all)
        if (std::min(rankOf(segment), comm.size() - 1) == comm.rank())
            own.push_back(segment);
    return own;
}

std::size_t entriesOf(const std::vector<FileSegment> &segments) {
    index entries = 0;
    for (const FileSegment &segment : segments)
        entries += segment.count;
    return static_cast<std::size_t>(entries);
}

void broadcastBytes(CommunicatorView comm, void *bytes, std::size_t count) {
    constexpr std::size_t most = std::size_t{1} << 30;
    comm.beforeCollective();
    for (std::size_t done = 0; done < count; done += most)
        checkMpi(MPI_Bcast(static_cast<char *>(bytes) + done, static_cast<int>(std::min(most, count - done)), MPI_BYTE,
                           0, comm.handle()),
                 "MPI_Bcast");
}

void broadcastStrings(CommunicatorView comm, std::vector<std::string> &strings) {
    std::vector<std::size_t> lengths;
    std::vector<char> text;
    for (const std::string &s : strings) {
        lengths.push_back(s.size());
        text.insert(text.end(), s.begin(), s.end());
    }
    broadcastList(comm, lengths);
    broadcastList(comm, text);
    strings.clear();
    auto at = text.begin();
    for (const std::size_t length : lengths) {
        strings.emplace_back(at, at + static_cast<std::ptrdiff_t>(length));
        at += static_cast<std::ptrdiff_t>(length);
    }
}

std::vector<index> unionOfAll(CommunicatorView comm, std::vector<index> mine) {
    const auto unique = [](std::vector<index> &values) {
        std::sort(values.begin(), values.end());
        values.erase(std::unique(values.begin(), values.end()), values.end());
    };
    unique(mine);
    const std::vector<int> counts = comm.allGather(static_cast<int>(mine.size()));
    std::vector<int> starts(counts.size(), 0);
    int total = 0;
    for (std::size_t rank = 0; rank < counts.size(); total += counts[rank], rank++)
        starts[rank] = total;
    std::vector<index> all(static_cast<std::size_t>(total));
    comm.beforeCollective();
    checkMpi(MPI_Allgatherv(mine.data(), static_cast<int>(mine.size()), mpiTypeOf<index>(), all.data(), counts.data(),
                            starts.data(), mpiTypeOf<index>(), comm.handle()),
             "MPI_Allgatherv");
    unique(all);
    return all;
}

index sumBefore(CommunicatorView comm, index value) {
    index before = 0;
    comm.beforeCollective();
    checkMpi(MPI_Exscan(&value, &before, 1, mpiTypeOf<index>(), MPI_SUM, comm.handle()), "MPI_Exscan");
    return comm.rank() == 0 ? 0 : before;
}

} // namespace DNDS::Geom
