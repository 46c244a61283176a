#include "MeshTool.hpp"

#include "MeshText.hpp"
#include "Progress.hpp"

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Partition/GraphPartition.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "DNDS/Geom/Refine/RefineUniformly.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"
#include "DNDS/Geom/Write/WriteMesh.hpp"
#include "DNDS/Index/Mappings.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

namespace {

namespace Geom = DNDS::Geom;
using DNDS::CommunicatorView;
using DNDS::DataError;
using DNDS::real;

struct Arguments {
    std::string file;
    std::string output;
    bool json = false;
    bool open = false; ///< keep open polyhedra
    Geom::CgnsOptions cgns;
    int levels = 1; ///< of refine
    // generate
    std::string fill = "tetrahedra";
    std::vector<DNDS::Index> cells{8, 8, 8};
    std::vector<real> lengths{1, 1, 1};
    std::vector<std::string> periodic;
    std::vector<real> floorRamp, ceilingRamp; ///< start, angle
    Geom::BoxMeshOptions box;
    // partition
    int parts = 0;
    bool curve = false;
    bool byFaces = false;
    double imbalance = 0.03;
    Geom::PartitionEffort effort = Geom::PartitionEffort::Quick;
    std::vector<std::string> weights; ///< TYPE=NUMBER
    std::string folder;
};

/// One run: the common part of all commands.
class Run {
  public:
    Run(CommunicatorView comm, const Arguments &arguments, std::ostream &out, Progress &progress)
        : comm_(comm), arguments_(arguments), out_(out), progress_(progress) {}

    int info() {
        Geom::MeshReport report;
        build(report, 0, Geom::GhostNeighbours::Faces);
        print(arguments_.json ? jsonOf(report) : textOf(report));
        return fine;
    }

    int check() {
        Geom::MeshReport report;
        const Geom::UnstructuredMesh mesh = build(report, 0, Geom::GhostNeighbours::Faces);
        progress_("measure");
        const real closure = Geom::computeMetrics(mesh).closure;
        // Cells of curved surfaces do not close, and need not.
        if ((mesh.dimension == 3 || mesh.planar) && !(closure < 1e-9))
            report.warnings.push_back(fmt::format(
                "{}: the faces of a cell do not close: they miss {:.1e} of their area", report.origin, closure));
        if (arguments_.json)
            print(jsonOf(report));
        else
            print(textOf(report) + (report.warnings.empty() ? "nothing to complain about\n" : ""));
        return report.warnings.empty() ? fine : warned;
    }

    int convert() { return rewrite(0); }
    int refine() { return rewrite(arguments_.levels); }

    int generate() {
        requireOutput();
        progress_("generate");
        Geom::BoxMeshOptions options = arguments_.box;
        comm_.guarded([&] {
            options.fill = Geom::boxCellsOf(arguments_.fill);
            std::copy(arguments_.cells.begin(), arguments_.cells.end(), options.cells.begin());
            std::copy(arguments_.lengths.begin(), arguments_.lengths.end(), options.lengths.begin());
            for (const std::string &direction : arguments_.periodic)
                options.periodic[static_cast<std::size_t>(direction[0] - 'x')] = true;
            if (!arguments_.floorRamp.empty())
                options.floor = {arguments_.floorRamp[0], arguments_.floorRamp[1]};
            if (!arguments_.ceilingRamp.empty())
                options.ceiling = {arguments_.ceilingRamp[0], arguments_.ceilingRamp[1]};
        });
        Geom::SourceMesh source;
        comm_.guarded([&] { source = makeBoxMesh(options, comm_); });
        checkSource(comm_, source);
        write(source, {});
        return fine;
    }

    int partition() {
        typeWeights(); // fail now rather than after hours of reading
        const auto by = arguments_.byFaces ? Geom::GhostNeighbours::Faces : Geom::GhostNeighbours::Nodes;
        Geom::MeshReport meshReport;
        const Geom::UnstructuredMesh mesh = build(meshReport, 1, by);
        progress_("partition");
        const std::vector<DNDS::Index> weights = weightsOf(mesh);
        const std::vector<int> part = partitionCells(
            mesh, arguments_.parts, arguments_.curve ? Geom::Partitioner::Curve : Geom::Partitioner::Graph,
            {.imbalance = arguments_.imbalance, .effort = arguments_.effort}, weights);
        const Geom::PartitionReport report = reportPartition(mesh, part, arguments_.parts, by, weights);
        print(arguments_.json ? jsonOf(report) : textOf(report));
        if (!arguments_.folder.empty())
            writeTables(report);
        if (!arguments_.output.empty()) {
            progress_("write");
            const std::vector<real> field(part.begin(), part.end());
            Geom::MeshWriter writer(mesh, arguments_.output);
            writer.writeStep(0.0, {.cells = {{"part", 1, field}}});
            writer.close();
        }
        return fine;
    }

  private:
    /// Reads a mesh with its fields, cuts its cells so many times and writes it.
    int rewrite(int levels) {
        requireOutput();
        progress_("read");
        Geom::MeshFields fields;
        Geom::CgnsOptions options = arguments_.cgns;
        options.fields = &fields;
        Geom::SourceMesh source = readMesh(comm_, arguments_.file, options);
        checkSource(comm_, source);
        Geom::MeshReport report; // cells are written as `check` reports them: reoriented
        orientCells(*DNDS::GlobalMapping::create(comm_, source.nodes()), source, report, arguments_.open);
        source.warnings.insert(source.warnings.end(), report.warnings.begin(), report.warnings.end());
        if (levels > 0) {
            progress_("refine");
            source = refineUniformly(comm_, source, {.levels = levels, .fields = &fields});
        }
        write(source, fields);
        return fine;
    }

    Geom::SourceMesh read() {
        progress_("read");
        return readMesh(comm_, arguments_.file, arguments_.cgns);
    }

    Geom::UnstructuredMesh build(Geom::MeshReport &report, int ghostLayers, Geom::GhostNeighbours by) {
        Geom::MeshOptions options;
        options.partitioner = Geom::Partitioner::Curve;
        options.ghostLayers = ghostLayers;
        options.ghostsBy = by;
        options.report = &report;
        options.openPolyhedra = arguments_.open;
        options.progress = [&](std::string_view step) { progress_(step); };
        return buildMesh(comm_, read(), options);
    }

    /// The costs of owned cells; empty if no types are given.
    std::vector<DNDS::Index> weightsOf(const Geom::UnstructuredMesh &mesh) const {
        const std::map<Geom::ElementType, DNDS::Index> byType = typeWeights();
        std::vector<DNDS::Index> weights;
        if (byType.empty())
            return weights;
        for (std::size_t c = 0; c < static_cast<std::size_t>(mesh.cells.owned); c++) {
            const auto found = byType.find(mesh.cellTypes[c]);
            weights.push_back(found == byType.end() ? 1 : found->second);
        }
        return weights;
    }

    std::map<Geom::ElementType, DNDS::Index> typeWeights() const {
        std::map<Geom::ElementType, DNDS::Index> weights;
        comm_.guarded([&] {
            for (const std::string &entry : arguments_.weights) {
                const std::size_t sign = std::min(entry.find('='), entry.size());
                const std::string_view number = std::string_view(entry).substr(std::min(sign + 1, entry.size()));
                std::int32_t weight = 0;
                const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), weight);
                DNDS_CHECK(error == std::errc() && end == number.data() + number.size() && weight >= 1,
                           DNDS::ArgumentError,
                           "--weights {}: not of the form TYPE=NUMBER, such as HEXA_8=3, with a number "
                           "from 1 to 2147483647",
                           entry);
                weights[elementNamed(std::string_view(entry).substr(0, sign))] = weight;
            }
        });
        return weights;
    }

    static Geom::ElementType elementNamed(std::string_view name) {
        constexpr int types = 64;
        for (int type = 0; type < types; type++)
            if (Geom::isElementType(type) && Geom::elementInfo(static_cast<Geom::ElementType>(type)).name == name)
                return static_cast<Geom::ElementType>(type);
        throw DNDS::ArgumentError(fmt::format("--weights: {} is not a CGNS cell type such as TETRA_4", name));
    }

    /// Fails now rather than after hours of reading.
    void requireOutput() const {
        comm_.guarded([&] {
            const std::string ending = std::filesystem::path(arguments_.output).extension().string();
            DNDS_CHECK(ending == ".vtkhdf" || ending == ".cgns", DNDS::ArgumentError,
                       "{}: its ending is not that of a writable format (.vtkhdf, .cgns)", arguments_.output);
        });
    }

    void write(const Geom::SourceMesh &source, const Geom::MeshFields &fields) {
        progress_("write");
        const bool cgns = arguments_.output.ends_with(".cgns");
        if (cgns) {
            writeCgns(comm_, arguments_.output, source, slicesOf(fields.nodes), slicesOf(fields.cells));
        } else {
            Geom::VtkHdfWriter writer(comm_, arguments_.output, sliceOf(source));
            if (!fields.nodes.empty() || !fields.cells.empty())
                writer.writeStep(0.0, slicesOf(fields.nodes), slicesOf(fields.cells));
            writer.close();
        }
        tellWhatIsLost(source, cgns);
    }

    void tellWhatIsLost(const Geom::SourceMesh &source, bool cgns) {
        print(messagesOf(source.warnings, source.notes));
        if (!cgns && !source.patches.empty())
            print(fmt::format("note: {}: the names of {} boundary patches are left out, VTKHDF has no place for them\n",
                              arguments_.output, source.patches.size()));
        for (const Geom::PeriodicConnection &connection : source.periodic)
            if (!cgns)
                print(fmt::format("warning: {}: periodic connection '{}' is left out, VTKHDF has no place for it\n",
                                  arguments_.output, connection.name));
    }

    void writeTables(const Geom::PartitionReport &report) {
        comm_.guarded([&] {
            if (comm_.rank() != 0)
                return;
            const std::filesystem::path folder(arguments_.folder);
            std::error_code ignored; // the files say it, too
            std::filesystem::create_directories(folder, ignored);
            for (const auto &[name, table] :
                 {std::pair{"parts.csv", partTable(report)}, {"links.csv", linkTable(report)}}) {
                std::ofstream file(folder / name);
                file << table;
                file.close();
                DNDS_CHECK(file.good(), DataError, "{} cannot be written", (folder / name).string());
            }
        });
    }

    void print(const std::string &text) {
        if (comm_.rank() == 0)
            out_ << text << std::flush;
    }

    CommunicatorView comm_;
    const Arguments &arguments_;
    std::ostream &out_;
    Progress &progress_;
};

void addInput(CLI::App &command, Arguments &arguments) {
    command.add_option("FILE", arguments.file, "a mesh: CGNS, Gmsh, SU2, UGRID, VTKHDF or VTU, or a case of OpenFOAM")
        ->required();
    command.add_option(
        "--base", arguments.cgns.base,
        "of CGNS files: which base, where several have cells; of SU2 files with several zones: the zone's number; of "
        "cases of OpenFOAM with several regions: which");
    command.add_flag("--join", arguments.cgns.joinCoincidentNodes, "of CGNS files: join zones where nodes coincide");
    command.add_flag("--open", arguments.open,
                     "keep open polyhedra, as exports of cut cells have them; faces that they lack are unassigned");
}

void addGenerate(CLI::App &command, Arguments &arguments) {
    command.add_option("OUT", arguments.output, "the file to write: .vtkhdf or .cgns")->required();
    command
        .add_option("--fill", arguments.fill,
                    "triangles, quadrilaterals, mixed-surface, tetrahedra, hexahedra, prisms, mixed-volume or "
                    "polyhedra")
        ->capture_default_str();
    command.add_option("--cells", arguments.cells, "bricks in each direction")->expected(2, 3)->capture_default_str();
    command.add_option("--lengths", arguments.lengths, "of the box")->expected(2, 3)->capture_default_str();
    command.add_option("--jitter", arguments.box.jitter, "moves inner nodes, in bricks: 0 to 0.15");
    command.add_flag("--shuffle", arguments.box.shuffled, "numbers nodes and cells at random");
    command.add_option("--periodic", arguments.periodic, "directions: x, y, z")->check(CLI::IsMember({"x", "y", "z"}));
    command.add_option("--floor-ramp", arguments.floorRamp, "side y- rises from x START on by ANGLE degrees")
        ->expected(2)
        ->type_name("START ANGLE");
    command.add_option("--ceiling-ramp", arguments.ceilingRamp, "the same for side y+")
        ->expected(2)
        ->type_name("START ANGLE");
    command.add_option("--seed", arguments.box.seed, "for what is random");
}

void addPartition(CLI::App &command, Arguments &arguments) {
    addInput(command, arguments);
    command.add_option("-n,--parts", arguments.parts, "how many parts")->required()->check(CLI::Range(1, 1 << 24));
    command.add_flag("--curve", arguments.curve, "cut a space-filling curve instead of the graph (PT-Scotch)");
    command.add_flag("--by-faces", arguments.byFaces, "count ghosts across faces instead of nodes");
    command.add_option("--imbalance", arguments.imbalance, "how much heavier than average a part may be")
        ->capture_default_str();
    command.add_option("--effort", arguments.effort, "of PT-Scotch: quick, thorough")
        ->transform(CLI::CheckedTransformer(std::map<std::string, Geom::PartitionEffort>{
            {"quick", Geom::PartitionEffort::Quick}, {"thorough", Geom::PartitionEffort::Thorough}}));
    command
        .add_option("--weights", arguments.weights,
                    "what cells of a type cost, 1 where nothing is said: TETRA_4=2,HEXA_8=3")
        ->delimiter(',')
        ->type_name("TYPE=NUMBER");
    command.add_option("--output", arguments.folder, "a folder: writes parts.csv and links.csv there, for plot.py");
    command.add_option("--write", arguments.output, "a VTKHDF file: writes the mesh with the field \"part\"");
    command.add_flag("--json", arguments.json, "print one JSON object");
}

/// A message without the rank and the function that errors of one rank are marked with: users look for their file.
std::string_view withoutOrigin(std::string_view message) {
    return message.ends_with(')') ? message.substr(0, message.rfind(" (rank ")) : message;
}

/// Says in one line what is wrong.
int complain(CommunicatorView comm, std::ostream &err, std::string_view message) {
    if (comm.rank() == 0)
        err << "dnds-mesh: " << message << std::endl;
    return unreadable;
}

} // namespace

int runMeshTool(CommunicatorView comm, std::vector<std::string> arguments, std::ostream &out, std::ostream &err,
                Progress::Style style) {
    Arguments values;
    CLI::App app(
        "Looks at mesh files, checks, converts, refines, generates and partitions them. Runs under mpiexec, too.",
        "dnds-mesh");
    app.require_subcommand(1);
    using Command = int (Run::*)();
    std::vector<std::pair<CLI::App *, Command>> commands;
    const auto add = [&](const char *name, const char *what, Command command) {
        commands.emplace_back(app.add_subcommand(name, what), command);
        return commands.back().first;
    };
    for (CLI::App *command : {add("info", "what is in a file", &Run::info),
                              add("check", "the same; ends with 1 where something is doubtful", &Run::check)}) {
        addInput(*command, values);
        command->add_flag("--json", values.json, "print one JSON object");
    }
    CLI::App *refine = add("refine", "cut each cell into smaller ones and write the mesh", &Run::refine);
    for (CLI::App *command : {add("convert", "write a mesh in another format", &Run::convert), refine}) {
        addInput(*command, values);
        command->add_option("OUT", values.output, "the file to write; its ending says the format: .vtkhdf or .cgns")
            ->required();
    }
    refine->add_option("-n,--levels", values.levels, "how many times; each level makes 4 cells of one, in 3-D 8 or 10")
        ->check(CLI::Range(1, 20))
        ->capture_default_str();
    addGenerate(*add("generate", "make a box and write it", &Run::generate), values);
    addPartition(*add("partition", "what a partition would cost", &Run::partition), values);

    try {
        std::reverse(arguments.begin(), arguments.end());
        app.parse(std::move(arguments));
    } catch (const CLI::CallForHelp &) {
        const auto chosen = app.get_subcommands();
        if (comm.rank() == 0)
            out << (chosen.empty() ? app.help() : chosen.front()->help()) << std::flush;
        return fine;
    } catch (const CLI::ParseError &error) {
        return complain(comm, err, fmt::format("{} (dnds-mesh --help says more)", error.what()));
    }
    try {
        Progress progress(comm, err, style);
        Run run(comm, values, out, progress);
        for (const auto &entry : commands)
            if (entry.first->parsed())
                return DNDS::failTogether(comm, [&] { return (run.*entry.second)(); });
    } catch (const DNDS::Error &error) {
        if (error.kind() == DNDS::ErrorKind::Mpi || error.kind() == DNDS::ErrorKind::Peer)
            throw;
        return complain(comm, err, withoutOrigin(error.message()));
    }
    return fine;
}
