#include "Checkpoint.hpp"

#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <filesystem>
#include <ostream>
#include <utility>

namespace Euler {

namespace {

namespace Geom = DNDS::Geom;
namespace fs = std::filesystem;
using DNDS::ArgumentError;
using nlohmann::json;

using Choices = std::map<std::string, std::string>;

const std::string prefix = "checkpoint-";
const std::string suffix = ".h5";

/// The number of the step, or -1 for another name.
index stepOf(const std::string &name) {
    index step = -1;
    if (name.starts_with(prefix) && name.ends_with(suffix) && name.size() > prefix.size() + suffix.size()) {
        const char *end = name.data() + name.size() - suffix.size();
        if (std::from_chars(name.data() + prefix.size(), end, step).ptr != end)
            return -1;
    }
    return step;
}

/// Checkpoints of a folder, the newest first. Local.
std::vector<std::string> checkpointsIn(const std::string &folder) {
    std::vector<std::pair<std::pair<fs::file_time_type, index>, std::string>> found;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        const index step = stepOf(entry->path().filename().string());
        if (step >= 0)
            found.push_back({{entry->last_write_time(error), step}, entry->path().string()});
    }
    std::sort(found.rbegin(), found.rend());
    std::vector<std::string> paths;
    for (const auto &[order, path] : found)
        paths.push_back(path);
    return paths;
}

/// Settings that may differ between a checkpoint and the run that continues from it.
bool mayChange(const std::string &key) {
    for (const char *free : {"time.steps", "time.end", "time.tolerance", "scheme.overlap", "scheme.threads",
                             "mesh.file", "mesh.partitioner"})
        if (key == free)
            return true;
    return key.starts_with("output.") || key.starts_with("balance.");
}

/// The differences, one line per key.
std::string differences(const Choices &then, const Choices &now) {
    std::string text;
    const auto valueIn = [](const Choices &choices, const std::string &key) {
        const auto found = choices.find(key);
        return found == choices.end() ? std::string("nothing") : found->second;
    };
    Choices all = then;
    all.insert(now.begin(), now.end());
    for (const auto &[key, value] : all)
        if (!mayChange(key) && valueIn(then, key) != valueIn(now, key))
            text += fmt::format("\n  {} was {} and is now {}", key, valueIn(then, key), valueIn(now, key));
    return text;
}

std::vector<std::string> sharedCheckpointsIn(DNDS::CommunicatorView comm, const std::string &folder) {
    std::vector<std::string> paths;
    comm.guarded([&] {
        if (comm.rank() == 0)
            paths = checkpointsIn(folder);
    });
    DNDS::broadcastStrings(comm, paths);
    return paths;
}

/// Opens a file, or the newest whole one.
DNDS::CheckpointReader open(DNDS::CommunicatorView comm, const std::string &path, const std::string &folder,
                            std::ostream *out) {
    // `readCheckpoint` checks the mesh: a whole file of another mesh is no reason to take an older one.
    const DNDS::CheckpointReadOptions options{.anyMesh = true};
    if (path != "latest")
        return {comm, path, options};
    std::string failures;
    for (const std::string &candidate : sharedCheckpointsIn(comm, folder)) {
        try {
            DNDS::CheckpointReader reader(comm, candidate, options);
            reader.verify();
            return reader;
        } catch (const DNDS::DataError &error) {
            failures += "\n  " + error.message();
            if (out != nullptr)
                *out << "NOT USED: " << error.message() << "\n" << std::flush;
        }
    }
    throw ArgumentError(
        fmt::format("there is no checkpoint{} in the folder '{}' to restart from: run without --restart, "
                    "or name a file{}",
                    failures.empty() ? "" : " that is whole", folder, failures));
}

} // namespace

Checkpoints::Checkpoints(const Geom::UnstructuredMesh &mesh, const Configuration &configuration,
                         std::function<double()> clock)
    : mesh_(mesh), configuration_(configuration), clock_(std::move(clock)), begin_(clock_()),
      fingerprint_(Geom::fingerprint(mesh)) {
    const OutputChoice &output = configuration.output;
    const bool wanted = output.checkpointEvery > 0 || output.checkpointMinutes > 0;
    DNDS_CHECK(!wanted || DNDS::CheckpointWriter::built(), DNDS::NotBuiltError,
               "output.checkpointEvery and output.checkpointMinutes need HDF5, but this program was built without it");
    if (!output.folder.empty() && DNDS::CheckpointWriter::built())
        signal_.emplace(mesh.comm);
}

CheckpointNotice Checkpoints::afterStep(const Solver &solver, const Kinetics *kinetics, const RunPoint &point,
                                        bool last) {
    if (!signal_)
        return {};
    const OutputChoice &output = configuration_.output;
    const bool bySteps = output.checkpointEvery > 0 && point.now.steps % output.checkpointEvery == 0;
    const bool late = output.checkpointMinutes > 0 && (clock_() - begin_) / 60 >= output.checkpointMinutes;
    const bool ask = late && !bySteps;
    if (ask) // once: the answer arrives after the next step
        begin_ = clock_();
    const auto said = signal_->exchange(ask);
    const bool wanted = output.checkpointEvery > 0 || output.checkpointMinutes > 0;
    const bool due = said.request || bySteps;
    const bool stop = said.stop && !last;
    if (!(due || stop || (last && wanted)))
        return {};
    begin_ = clock_();
    try {
        const std::string path = write(solver, kinetics, point);
        if (stop)
            return {true,
                    fmt::format("stopped by a signal after step {}: continue with --restart latest or --restart {}\n",
                                point.now.steps, path)};
    } catch (const DNDS::DataError &error) {
        if (stop || last)
            throw;
        return {false,
                fmt::format("NO CHECKPOINT after step {}: {}; the run continues\n", point.now.steps, error.message())};
    }
    return {};
}

std::string Checkpoints::write(const Solver &solver, const Kinetics *kinetics, const RunPoint &point) const {
    const OutputChoice &output = configuration_.output;
    const std::string path =
        (fs::path(output.folder) / fmt::format("{}{:08}{}", prefix, point.now.steps, suffix)).string();
    DNDS::CheckpointWriter file(mesh_.comm, path, {.mesh = fingerprint_});
    file.set("program", "euler");
    file.set("settings", json(configuration_.choices).dump(1));
    file.set("step", point.now.steps);
    file.set("time", point.now.time);
    file.set("residual", std::vector<real>(point.now.residual.begin(), point.now.residual.end()));
    file.set("firstResidual", point.firstResidual);
    file.set("drag", point.now.drag);
    file.set("lift", point.now.lift);
    if (configuration_.implicit) {
        file.set("nextCfl", point.now.implicit.nextCfl);
        file.set("firstImplicitResidual", point.now.implicit.first);
        file.set("krylovIterations", point.now.implicit.iterations);
    }
    file.add("conserved", solver.conserved(), mesh_.cells.ownFileNumbers());
    if (kinetics != nullptr)
        file.add("species", kinetics->fractions(), mesh_.cells.ownFileNumbers());
    file.write();
    if (mesh_.comm.rank() == 0) {
        const std::vector<std::string> all = checkpointsIn(output.folder);
        std::error_code ignored; // surplus files are harmless
        for (std::size_t i = static_cast<std::size_t>(output.keep); i < all.size(); i++)
            fs::remove(all[i], ignored);
    }
    return path;
}

RunPoint readCheckpoint(const Geom::UnstructuredMesh &mesh, const Configuration &configuration, Solver &solver,
                        Kinetics *kinetics, const std::string &path, const RestartChoice &choice, std::ostream *out) {
    const DNDS::CheckpointReader file = open(mesh.comm, path, configuration.output.folder, out);
    DNDS_CHECK(file.has("program") && file.text("program") == "euler", ArgumentError,
               "{} was not written by this program; it contains:\n{}", file.path(), file.content().manifest());
    const index cells = mesh.comm.allReduce(mesh.cells.owned, MPI_SUM);
    DNDS_CHECK(file.array("conserved").rows == cells, ArgumentError,
               "{} is for a mesh of {} cells, but {} has {}: a restart needs the same mesh", file.path(),
               file.array("conserved").rows, mesh.origin, cells);
    // The first versions store the same hash as a value.
    const bool tells = file.content().mesh || file.has("mesh");
    if (tells && !choice.otherMesh) {
        const std::uint64_t written =
            file.content().mesh ? *file.content().mesh : std::bit_cast<std::uint64_t>(file.integer("mesh"));
        DNDS_CHECK(
            written == Geom::fingerprint(mesh), ArgumentError,
            "{} is for another mesh than {}: it has as many cells, but other nodes or another order. Restore the "
            "mesh, or add --restart-from-other-mesh to use the states of cells with the same numbers",
            file.path(), mesh.origin);
    }
    const json then = json::parse(file.text("settings"), nullptr, false);
    const std::string changes = differences(then.is_object() ? then.get<Choices>() : Choices(), configuration.choices);
    DNDS_CHECK(
        changes.empty() || choice.allowChanges, ArgumentError,
        "{} was written with other settings:{}\nrestore them, or add --allow-changes to continue with the new ones",
        file.path(), changes);
    RunPoint point;
    point.now.steps = file.integer("step");
    point.now.time = file.number("time");
    const std::vector<real> &residual = file.numbers("residual");
    std::copy_n(residual.begin(), std::min<std::size_t>(residual.size(), variables), point.now.residual.begin());
    point.firstResidual = file.number("firstResidual");
    point.now.drag = file.number("drag");
    point.now.lift = file.number("lift");
    if (configuration.implicit && file.has("nextCfl")) { // else a run of explicit steps continues with implicit ones
        point.now.implicit.nextCfl = file.number("nextCfl");
        point.now.implicit.first = file.number("firstImplicitResidual");
        point.now.implicit.iterations = file.integer("krylovIterations");
    }
    ParArray<real, variables> conserved("conserved", mesh.comm);
    file.read("conserved", conserved, mesh.cells.ownFileNumbers());
    solver.setConserved(conserved);
    if (kinetics != nullptr) {
        ParArray<real, species> fractions("species", mesh.comm);
        file.read("species", fractions, mesh.cells.ownFileNumbers());
        kinetics->setFractions(std::move(fractions));
    }
    if (out != nullptr)
        *out << fmt::format("continues from {}: step {}, time {:.5e}{}{}{}\n", file.path(), point.now.steps,
                            point.now.time,
                            !tells             ? "; it does not state its mesh"
                            : choice.otherMesh ? "; its mesh was not compared"
                                               : "",
                            changes.empty() ? "" : "; changed:", changes)
             << std::flush;
    return point;
}

} // namespace Euler
