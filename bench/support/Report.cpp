#include "Report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>

namespace DNDS::Bench {

Record numberOrNull(double value) { return std::isnan(value) ? Record(nullptr) : Record(value); }

std::string numberOrDash(double value, int digits) {
    if (std::isnan(value))
        return "-";
    return std::abs(value) >= std::pow(10.0, digits - 1) ? fmt::format("{:.0f}", value)
                                                         : fmt::format("{:#.{}g}", value, digits);
}

void say(CommunicatorView comm, const std::string &text) {
    if (comm.rank() != 0)
        return;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
}

std::string mpiLibrary() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    checkMpi(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
    std::string line(text.data(), static_cast<std::size_t>(length));
    // MPICH spreads its description over lines of "name:<tabs>value".
    line = line.substr(0, line.find('\n'));
    std::replace(line.begin(), line.end(), '\t', ' ');
    line.erase(std::unique(line.begin(), line.end(), [](char a, char b) { return a == ' ' && b == ' '; }), line.end());
    return line.substr(0, line.find(','));
}

std::string cpuName() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const auto colon = line.find(": ");
        if (line.starts_with("model name") && colon != std::string::npos)
            return line.substr(colon + 2);
    }
    return "unknown";
}

std::size_t memoryAvailable() {
    std::ifstream file("/proc/meminfo");
    std::string name;
    std::string unit;
    for (std::size_t kibibytes = 0; file >> name >> kibibytes; std::getline(file, unit))
        if (name == "MemAvailable:")
            return kibibytes * 1024;
    return 0;
}

Report::Report() : mpi_(mpiLibrary()), cpu_(cpuName()) {}

void Report::add(Record record) {
    record["mpi"] = mpi_;
    record["cpu"] = cpu_;
    records_.push_back(std::move(record));
}

void Report::write(const std::string &path) const {
    std::ofstream file(path);
    file << records_.dump(1) << '\n';
    file.close();
    DNDS_CHECK(file.good(), DataError, "cannot write the benchmark's records to '{}'", path);
}

std::string Table::text() const {
    std::vector<std::size_t> widths(rows_.front().size(), 0);
    for (const auto &row : rows_)
        for (std::size_t column = 0; column < row.size(); ++column)
            widths[column] = std::max(widths[column], row[column].size());
    std::string text;
    for (const auto &row : rows_) {
        for (std::size_t column = 0; column < row.size(); ++column)
            text += column == 0 ? fmt::format("{:<{}}", row[column], widths[column])
                                : fmt::format("  {:>{}}", row[column], widths[column]);
        text += '\n';
    }
    return text;
}

} // namespace DNDS::Bench
