/// @file Report.hpp
/// @brief Output of a benchmark: records as JSON for programs, readable tables.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace DNDS::Bench {

/// One result with named keys, in the order in which they were set.
using Record = nlohmann::ordered_json;

/// A number, or null for NotMeasured.
Record numberOrNull(double value);
/// "1.23", or "-" for NotMeasured, with `digits` significant digits.
std::string numberOrDash(double value, int digits = 3);

/// Prints on rank 0, at once. Local.
void say(CommunicatorView comm, const std::string &text);

/// The MPI library and its version, in one line. Local.
std::string mpiLibrary();
/// The processor's name as the system knows it, or "unknown". Local.
std::string cpuName();
/// Bytes that the system could still hand out, or 0 where it does not say. Local.
std::size_t memoryAvailable();

/// Collects the records of a run; every record gets the keys `mpi` and `cpu`.
class Report {
  public:
    Report();
    void add(Record record);
    /// Writes a JSON list. Local: call it on one rank. Throws DataError when the file cannot be written.
    void write(const std::string &path) const;

  private:
    std::string mpi_;
    std::string cpu_;
    Record records_ = Record::array();
};

/// Columns of text, padded to their widest entry: the first to the left, the others to the right.
class Table {
  public:
    explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    bool empty() const { return rows_.size() == 1; }
    std::string text() const;

  private:
    std::vector<std::vector<std::string>> rows_;
};

} // namespace DNDS::Bench
