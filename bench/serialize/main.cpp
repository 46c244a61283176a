// How fast are checkpoints written and read, beside the bare bytes in the same run? See README.md.

#include "Options.hpp"
#include "Report.hpp"
#include "RunBenchmark.hpp"
#include "Turns.hpp"

#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"
#include "DNDS/Serialize/DurableFile.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <random>

namespace DNDS::Bench {
namespace {

constexpr rowsize width = 5;

struct Choice {
    index rows = 1000000; ///< rows of each rank
    int repetitions = 7;
    std::string folder = ".";
    bool scattered = false;
};

/// A way to write or to read.
struct Method {
    std::string name;
    std::string baseline; ///< whose time its ratio is to; empty: none
    std::function<void()> run;
};

/// A field of each rank, and files that hold it.
class Field {
  public:
    Field(CommunicatorView comm, const Choice &choice)
        : comm_(comm), path_(choice.folder + "/bench_serialize"), values_("values", comm) {
        values_.resize(choice.rows);
        std::mt19937_64 random(static_cast<unsigned>(comm.rank()));
        for (real &value : std::span(values_.data(), static_cast<std::size_t>(values_.dataSize())))
            value = static_cast<real>(random());
        ids_.resize(static_cast<std::size_t>(choice.rows));
        if (choice.scattered) // every row goes to another rank
            for (index i = 0; i < choice.rows; i++)
                ids_[static_cast<std::size_t>(i)] = i * comm.size() + comm.rank();
        else
            std::iota(ids_.begin(), ids_.end(), choice.rows * comm.rank());
    }
    Field(const Field &) = delete;
    Field &operator=(const Field &) = delete;
    ~Field() {
        if (comm_.rank() == 0)
            for (const char *suffix : {".h5", ".raw", ".mpi"})
                std::remove((path_ + suffix).c_str());
    }

    index bytes() const { return static_cast<index>(own().size()) * comm_.size(); }

    void writeCheckpoint() {
        CheckpointWriter file(comm_, path_ + ".h5");
        file.add("values", values_, ids_);
        file.write();
    }
    void readCheckpoint() { CheckpointReader(comm_, path_ + ".h5").read("values", values_, ids_); }

    /// Each rank its bytes, one after the other, then fsync.
    void writeRaw() {
        if (comm_.rank() == 0)
            (void)DurableFile::create(path_ + ".raw", bytes());
        comm_.barrier();
        const DurableFile file = DurableFile::forWriting(path_ + ".raw");
        file.writeAt(place(), own());
        file.flush();
    }
    void readRaw() { DurableFile::forReading(path_ + ".raw").readAt(place(), writable()); }

    /// The same by MPI-IO, collectively.
    void writeMpi() {
        MPI_File file = open(MPI_MODE_CREATE | MPI_MODE_WRONLY);
        checkMpi(MPI_File_write_at_all(file, place(), values_.data(), count(), MPI_DOUBLE, MPI_STATUS_IGNORE),
                 "MPI_File_write_at_all");
        checkMpi(MPI_File_sync(file), "MPI_File_sync");
        checkMpi(MPI_File_close(&file), "MPI_File_close");
    }
    void readMpi() {
        MPI_File file = open(MPI_MODE_RDONLY);
        checkMpi(MPI_File_read_at_all(file, place(), values_.data(), count(), MPI_DOUBLE, MPI_STATUS_IGNORE),
                 "MPI_File_read_at_all");
        checkMpi(MPI_File_close(&file), "MPI_File_close");
    }

    /// Whether all ways of reading bring back the values that were written. Collective.
    void check(const std::vector<std::function<void()>> &reads) {
        const std::uint64_t written = values_.hash();
        for (const auto &read : reads) {
            std::ranges::fill(writable(), std::byte{0});
            read();
            comm_.guarded([&] { DNDS_CHECK(values_.hash() == written, DataError, "other values were read"); });
        }
    }

  private:
    std::span<const std::byte> own() const {
        return std::as_bytes(std::span(values_.data(), static_cast<std::size_t>(values_.dataSize())));
    }
    std::span<std::byte> writable() {
        return std::as_writable_bytes(std::span(values_.data(), static_cast<std::size_t>(values_.dataSize())));
    }
    index place() const { return static_cast<index>(own().size()) * comm_.rank(); }
    int count() const { return static_cast<int>(values_.dataSize()); }
    MPI_File open(int mode) const {
        MPI_File file = MPI_FILE_NULL;
        checkMpi(MPI_File_open(comm_.handle(), (path_ + ".mpi").c_str(), mode, MPI_INFO_NULL, &file), "MPI_File_open");
        return file;
    }

    CommunicatorView comm_;
    std::string path_;
    ParArray<real, width> values_;
    std::vector<index> ids_;
};

void report(CommunicatorView comm, const std::vector<Method> &methods, const std::vector<TurnTimes> &times,
            const Choice &choice, index bytes, const std::string &json) {
    Report records;
    Table table({"method", "MB/s", "of the baseline"});
    for (std::size_t k = 0; k < methods.size(); k++) {
        const Method &method = methods[k];
        const double seconds = times[k].medianWall();
        const double rate = static_cast<double>(bytes) / seconds / 1e6;
        double share = 1;
        for (std::size_t other = 0; other < methods.size(); other++)
            if (methods[other].name == method.baseline)
                share = times[other].medianWall() / seconds;
        table.add({method.name, numberOrDash(rate, 4), method.baseline.empty() ? "" : fmt::format("{:.2f}", share)});
        records.add({{"bench", "serialize"},
                     {"method", method.name},
                     {"ranks", comm.size()},
                     {"bytes", bytes},
                     {"scattered", choice.scattered},
                     {"repetitions", choice.repetitions},
                     {"MB_per_s", rate},
                     {"share_of_baseline", share},
                     {"ratio_to_baseline", 1 / share}});
    }
    say(comm, fmt::format("{} ranks, {:.1f} MB in '{}', rows {}, median of {}\n{}", comm.size(),
                          static_cast<double>(bytes) / 1e6, choice.folder,
                          choice.scattered ? "scattered over ranks" : "in order", choice.repetitions, table.text()));
    if (comm.rank() == 0 && !json.empty())
        records.write(json);
}

int run(int argc, char **argv, CommunicatorView comm) {
    CLI::App app("Writes and reads checkpoints, and the same bytes with nothing but pwrite or MPI-IO.",
                 "bench_serialize");
    Choice choice;
    CommonOptions common;
    common.addTo(app);
    app.add_option("--rows", choice.rows, "rows of 5 numbers on each rank")->capture_default_str();
    app.add_option("--repeats", choice.repetitions, "turns of each method")->capture_default_str();
    app.add_option("--folder", choice.folder, "where the files go")->capture_default_str();
    app.add_flag("--scattered", choice.scattered, "neighbouring rows are on different ranks: the most rows to send");
    if (const auto code = parse(app, argc, argv, comm))
        return *code;
    if (common.quick) {
        choice.rows = std::min<index>(choice.rows, 20000);
        choice.repetitions = 2;
    }
    Field field(comm, choice);
    std::vector<Method> methods{{"write pwrite+fsync", "", [&] { field.writeRaw(); }},
                                {"write MPI-IO", "write pwrite+fsync", [&] { field.writeMpi(); }},
                                {"write checkpoint", "write pwrite+fsync", [&] { field.writeCheckpoint(); }},
                                {"read pread", "", [&] { field.readRaw(); }},
                                {"read MPI-IO", "read pread", [&] { field.readMpi(); }},
                                {"read checkpoint", "read pread", [&] { field.readCheckpoint(); }}};
    field.writeRaw();
    field.writeMpi();
    field.writeCheckpoint();
    field.check({methods[3].run, methods[4].run, methods[5].run});
    std::vector<Way> ways;
    for (const Method &method : methods)
        ways.push_back({method.name, method.run});
    report(comm, methods, takeTurns(comm, ways, choice.repetitions), choice, field.bytes(), common.json);
    return 0;
}

} // namespace
} // namespace DNDS::Bench

int main(int argc, char **argv) { return DNDS::Bench::runBenchmark("bench_serialize", argc, argv, DNDS::Bench::run); }
