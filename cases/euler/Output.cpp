#include "Output.hpp"

#include "Simulation.hpp"

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace Euler {

namespace {

namespace Geom = DNDS::Geom;

/// A wall face as sent to rank 0; the first three numbers order it.
struct WallFace {
    std::array<index, 3> order; ///< patch, the cell's number in the file, place among the cell's faces
    std::array<real, 3> centre;
    real pressure;

    static constexpr std::size_t words = 7;
    void append(std::vector<index> &list) const {
        list.insert(list.end(), order.begin(), order.end());
        for (const real value : centre)
            list.push_back(std::bit_cast<index>(value));
        list.push_back(std::bit_cast<index>(pressure));
    }
    static WallFace read(const index *from) {
        WallFace face;
        std::copy_n(from, 3, face.order.begin());
        for (std::size_t d = 0; d < 3; d++)
            face.centre[d] = std::bit_cast<real>(from[3 + d]);
        face.pressure = std::bit_cast<real>(from[6]);
        return face;
    }
};

/// This rank's faces of the patches.
std::vector<index> wallFaces(const Geom::MeshView &view, const Geom::UnstructuredMesh &mesh, const Solver &solver,
                             const std::vector<int> &patches) {
    std::vector<WallFace> walls;
    std::vector<index> places;
    for (index cell = 0; cell < mesh.cells.owned; cell++) {
        const auto faces = view.cellFaces[cell];
        const auto others = view.cellCells[cell];
        for (DNDS::rowsize j = 0; j < faces.size(); j++) {
            const int patch = mesh.facePatches(faces[j]);
            if (others[j] != Geom::noEntity || std::find(patches.begin(), patches.end(), patch) == patches.end())
                continue;
            const real *centre = view.faceCentres[faces[j]];
            walls.push_back({{patch, mesh.cells.fileNumbers[static_cast<std::size_t>(cell)], j},
                             {centre[0], centre[1], centre[2]},
                             0});
            places.push_back(faces[j]);
        }
    }
    const std::vector<real> pressures = solver.wallPressures(places);
    std::vector<index> list;
    for (std::size_t i = 0; i < walls.size(); i++) {
        walls[i].pressure = pressures[i];
        walls[i].append(list);
    }
    return list;
}

std::string headingOf(bool implicit) {
    return std::string("step,time,density,momentumX,momentumY,momentumZ,energy,drag,lift") +
           (implicit ? ",cfl,krylovIterations\n" : "\n");
}

/// The lines of a history up to a step; none without a file or for step 0. A truncated line is dropped.
std::string linesUpTo(const std::string &path, index step, bool implicit) {
    std::ifstream file(path);
    std::string line, kept;
    if (step == 0 || !std::getline(file, line))
        return kept;
    const bool wasImplicit = line + "\n" == headingOf(true);
    DNDS_CHECK(wasImplicit || line + "\n" == headingOf(false), DNDS::DataError,
               "{} is not a history of this program: move it away", path);
    while (std::getline(file, line) && !file.eof()) {
        if (std::atoll(line.c_str()) > step)
            continue;
        if (wasImplicit && !implicit) // the last two columns are of implicit steps
            line.erase(line.rfind(',', line.rfind(',') - 1));
        kept += line + (implicit && !wasImplicit ? ",,\n" : "\n");
    }
    return kept;
}

} // namespace

History::History(DNDS::CommunicatorView comm, const std::string &path, index step, bool implicit)
    : comm_(comm), path_(path), implicit_(implicit) {
    comm_.guarded([&] {
        if (comm_.rank() != 0)
            return;
        const std::string heading = headingOf(implicit);
        const std::string kept = linesUpTo(path_, step, implicit);
        const std::string temporary = path_ + ".part"; // the old lines must not be lost
        file_.open(temporary);
        file_ << heading << kept << std::flush;
        DNDS_CHECK(file_.good(), DNDS::DataError, "{} cannot be written", temporary);
        DNDS::renameDurably(temporary, path_);
        DNDS_CHECK(file_.good(), DNDS::DataError, "{} cannot be written", path_);
    });
}

void History::write(const RunResult &now) {
    comm_.guarded([&] {
        if (comm_.rank() != 0)
            return;
        file_ << fmt::format("{},{}", now.steps, now.time);
        for (const real value : now.residual)
            file_ << fmt::format(",{}", value);
        file_ << fmt::format(",{},{}", now.drag, now.lift);
        if (implicit_)
            file_ << fmt::format(",{},{}", now.implicit.cfl, now.implicit.iterations);
        file_ << '\n' << std::flush;
        DNDS_CHECK(file_.good(), DNDS::DataError, "{} cannot be written", path_);
    });
}

FieldWriter::FieldWriter(const Geom::UnstructuredMesh &mesh, const std::string &path)
    : writer_(mesh, path, {.ranks = true}) {}

void FieldWriter::write(const Solver &solver, const Kinetics *kinetics, const Gas &gas, real time) {
    const ParArray<real, variables> &state = solver.state();
    std::vector<real> density, velocity, pressure, mach;
    for (index cell = 0; cell < state.size(); cell++) {
        const Primitive w = Primitive::load(state[cell]);
        density.push_back(w.density);
        velocity.insert(velocity.end(), {w.velocity.x, w.velocity.y, w.velocity.z});
        pressure.push_back(w.pressure);
        mach.push_back(gas.mach(w));
    }
    Geom::StepFields fields{
        .cells = {{"density", 1, density}, {"velocity", 3, velocity}, {"pressure", 1, pressure}, {"mach", 1, mach}}};
    if (kinetics != nullptr)
        fields.cells.push_back(Geom::fieldOf("species", kinetics->fractions()));
    writer_.writeStep(time, fields);
}

void writeSurface(const Geom::UnstructuredMesh &mesh, const Geom::MeshMetrics &metrics, const Solver &solver,
                  const Reference &reference, const std::vector<int> &patches, const std::string &path) {
    DNDS::RankLists outgoing;
    outgoing.append(0, wallFaces(viewOf(mesh, metrics), mesh, solver, patches));
    const DNDS::RankLists incoming = sparseExchange(*DNDS::CommunicatorContext::of(mesh.comm), outgoing);
    mesh.comm.guarded([&] {
        if (mesh.comm.rank() != 0)
            return;
        std::vector<WallFace> faces;
        for (std::size_t i = 0; i < incoming.values.size(); i += WallFace::words)
            faces.push_back(WallFace::read(incoming.values.data() + i));
        std::sort(faces.begin(), faces.end(), [](const auto &a, const auto &b) { return a.order < b.order; });
        const Primitive &far = reference.state;
        const real dynamic = 0.5 * far.density * dot(far.velocity, far.velocity);
        std::ofstream file(path);
        file << "patch,x,y,z,pressure,pressureCoefficient\n";
        for (const WallFace &face : faces)
            file << fmt::format("{},{},{},{},{},{}\n", mesh.patches[static_cast<std::size_t>(face.order[0])].name,
                                face.centre[0], face.centre[1], face.centre[2], face.pressure,
                                (face.pressure - far.pressure) / dynamic);
        file.close();
        DNDS_CHECK(file.good(), DNDS::DataError, "{} cannot be written", path);
    });
}

} // namespace Euler
