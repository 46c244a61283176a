#include "Setting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace DNDS::Bench {

bool Setting::wants(const std::string &part) const { return std::find(what.begin(), what.end(), part) != what.end(); }

bool Setting::timeFor(const std::string &part) const {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    if (comm.allReduce(passed.count(), MPI_MAX) < seconds)
        return true;
    say(fmt::format("not measured, no time is left: {}\n", part));
    return false;
}

void Setting::add(Record record) const {
    record["ranks"] = comm.size();
    record["device"] = Device::name();
    report.add(std::move(record));
    comm.guarded([&] {
        if (comm.rank() == 0 && !common.json.empty())
            report.write(common.json);
    });
}

std::vector<index> chosenRows(index count, index among, const std::string &order) {
    const index together = order == "runs" ? 8 : 1;
    // Groups of neighbours, every one in its own stretch of the array, at a random place there.
    std::mt19937_64 random(12345);
    std::vector<index> rows;
    rows.reserve(static_cast<std::size_t>(count));
    const index groups = (count + together - 1) / together;
    for (index group = 0; group < groups; ++group) {
        const index begin = among * group / groups;
        const index end = among * (group + 1) / groups;
        const index length = std::min(together, count - static_cast<index>(rows.size()));
        const index first = std::uniform_int_distribution<index>(begin, std::max(begin, end - length))(random);
        for (index k = 0; k < length; ++k)
            rows.push_back(first + k);
    }
    return rows;
}

double bytesMoved(const std::vector<index> &rows, std::size_t rowBytes) {
    constexpr std::size_t sector = 32;
    std::size_t sectors = 0;
    std::size_t runs = 0;
    std::size_t counted = 0; ///< sectors counted so far end here
    index next = -1;
    for (const index row : rows) {
        const std::size_t first = std::max(static_cast<std::size_t>(row) * rowBytes / sector, counted);
        counted = ((static_cast<std::size_t>(row) + 1) * rowBytes + sector - 1) / sector;
        sectors += counted > first ? counted - first : 0;
        runs += row != next ? 1 : 0;
        next = row + 1;
    }
    return static_cast<double>(sectors * sector + runs * sizeof(std::uint32_t) + rows.size() * rowBytes);
}

void requireNone(CommunicatorView comm, index wrong, const std::string &what) {
    const index total = comm.allReduce(wrong, MPI_SUM);
    DNDS_CHECK(total == 0, DataError, "{}: {} wrong elements", what, total);
}

} // namespace DNDS::Bench
