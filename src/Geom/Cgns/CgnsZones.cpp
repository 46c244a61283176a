#include "DNDS/Geom/Cgns/CgnsZones.hpp"

#include "DNDS/Geom/Cgns/Model.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <cstdlib>

namespace DNDS::Geom {

namespace {

/// An index of the file, from 1 and the fastest first, as one from 0 of an index space, whose last dimension is
/// fastest.
IndexVector inSpace(const Cgns::Triple &fileIndex, int dims) {
    IndexVector own{};
    for (int d = 0; d < dims; ++d)
        own[toSize(d)] = fileIndex[toSize(dims - 1 - d)] - 1;
    return own;
}

/// Reverses the order of axes on both sides; signs stay. 0 marks the normal direction, in which a connection has no
/// extent.
Connection connectionInSpaces(const Cgns::Connection &from, int dims) {
    Connection to{.space = from.zone,
                  .begin = inSpace((*from.points.grid)[0], dims),
                  .end = inSpace((*from.points.grid)[1], dims),
                  .other = from.donor,
                  .otherBegin = inSpace((*from.donorPoints.grid)[0], dims),
                  .transform = {}};
    for (int d = 0; d < dims; ++d) {
        const int axis = from.axes[toSize(dims - 1 - d)];
        const bool normal = to.begin[toSize(d)] == to.end[toSize(d)]; // by the faces, whatever the file's entry is
        to.transform[toSize(d)] = normal ? 0 : (axis < 0 ? -1 : 1) * (dims + 1 - std::abs(axis));
    }
    return to;
}

/// Connections by lists cannot be expressed as boxes and are left out with a warning.
CgnsZones zonesOf(const Cgns::Model &model) {
    CgnsZones zones;
    zones.physicalDimension = model.physicalDimension;
    zones.warnings = model.warnings;
    const int dims = model.cellDimension;
    for (std::size_t z = 0; z < model.zones.size(); ++z) {
        const Cgns::Zone &zone = model.zones[z];
        DNDS_CHECK(zone.structured, DataError, "{} is not structured: read the file with readCgns",
                   model.zoneText(static_cast<int>(z)));
        zones.spaces.push_back({zone.name, Box(dims, {}, inSpace(zone.vertices, dims)), {}});
    }
    for (const Cgns::Connection &connection : model.connections)
        if (connection.points.grid && connection.donorPoints.grid)
            zones.connections.push_back(connectionInSpaces(connection, dims));
        else
            zones.warnings.push_back(fmt::format("{}, connection '{}': it is left out, since it is not 1-to-1",
                                                 model.zoneText(connection.zone), connection.name));
    return zones;
}

/// Adds the coordinate `c` of the vertices of one plane of the file to the cells that have them.
/// `plane` has whole rows of vertices from `firstRow` on; the block's cells use some of each row.
/// O(cells of the plane). Every cell gets the corners of its lower plane first, then of its upper one: the sum has
/// the same order in every block.
void addPlane(std::span<const real> plane, index firstRow, index width, const BlockMemory &block, rowsize c, index k,
              const BlockView<real> &centres) {
    const int dims = block.cells.dims;
    const std::size_t rows = toSize(dims - 2);
    const std::size_t columns = toSize(dims - 1);
    const real weight = dims == 3 ? 0.125 : 0.25;
    for (index row = block.cells.lower[rows]; row < block.cells.upper[rows]; ++row)
        for (index column = block.cells.lower[columns]; column < block.cells.upper[columns]; ++column) {
            const index j = row - block.cells.lower[rows];
            const index i = column - block.cells.lower[columns];
            const auto at = [&](index r, index s) { return plane[toSize((row + r - firstRow) * width + column + s)]; };
            const real sum = weight * (at(0, 0) + at(0, 1) + at(1, 0) + at(1, 1));
            if (dims == 2)
                centres(j, i, c) += sum;
            for (index below = k - 1; dims == 3 && below <= k; ++below) // of cells below and above the plane
                if (below >= block.cells.lower[0] && below < block.cells.upper[0])
                    centres(below - block.cells.lower[0], j, i, c) += sum;
        }
}

/// Reads plane by plane, so the memory is one plane of the block's rows, whatever the size of the zone. Each vertex
/// adds an eighth (a quarter in 2-D) to the cells around it, in a fixed order: the centres do not depend on the
/// division into blocks.
void readBlock(const Cgns::Model &model, int number, const BlockMemory &block, Cgns::TreeSource &source,
               const BlockView<real> &centres) {
    const Cgns::Zone &zone = model.zones[toSize(number)];
    const int dims = block.cells.dims;
    forEachCell(block.cells, [&](const IndexVector &cell) {
        IndexVector at{};
        for (std::size_t d = 0; d < toSize(dims); ++d)
            at[d] = cell[d] - block.cells.lower[d];
        for (rowsize c = 0; c < centres.components(); ++c)
            (dims == 2 ? centres(at[0], at[1], c) : centres(at[0], at[1], at[2], c)) = 0;
    });
    const index firstRow = block.cells.lower[toSize(dims - 2)];
    const index lastRow = block.cells.upper[toSize(dims - 2)]; // included
    std::vector<real> plane(toSize((lastRow - firstRow + 1) * zone.vertices[0]));
    for (rowsize c = 0; c < centres.components(); ++c) {
        const Cgns::TreeNode *coordinate = zone.coordinates[toSize(c)];
        DNDS_CHECK(coordinate != nullptr, DataError, "{} has no coordinate {}", model.zoneText(number), c + 1);
        for (index k = dims == 3 ? block.cells.lower[0] : 0; k <= (dims == 3 ? block.cells.upper[0] : 0); ++k) {
            source.read(*coordinate, zone.skipped + zone.nodeAt({1, firstRow + 1, k + 1}), std::span<real>(plane));
            addPlane(plane, firstRow, zone.vertices[0], block, c, k, centres);
        }
    }
}

} // namespace

CgnsZones readCgnsZones(CommunicatorView comm, const std::string &path, const std::string &base) {
    return failTogether(comm, [&] {
        std::unique_ptr<Cgns::TreeSource> source;
        const Cgns::TreeNode root = Cgns::readSharedTree(comm, path, source, false);
        return zonesOf(Cgns::buildModel(root, {.base = base}));
    });
}

// O(vertices of own blocks) reads and memory for one plane. Collective only for the tree and the final agreement:
// blocks are read independently.
void readCgnsCentres(CommunicatorView comm, const std::string &path, BlockField<real> &centres,
                     const std::string &base) {
    failTogether(comm, [&] {
        std::unique_ptr<Cgns::TreeSource> source;
        const Cgns::TreeNode root = Cgns::readSharedTree(comm, path, source, false);
        const Cgns::Model model = Cgns::buildModel(root, {.base = base});
        const CgnsZones zones = zonesOf(model);
        const auto &spaces = centres.grid()->spaces();
        const auto sameCells = [](const IndexSpace &a, const IndexSpace &b) { return a.cells == b.cells; };
        DNDS_CHECK(std::ranges::equal(spaces, zones.spaces, sameCells) && centres.blockPattern()->centring().ofCells(),
                   ArgumentError,
                   "'{}' is not on the cells of a grid of the zones of {}: make it of what readCgnsZones returns",
                   centres.name(), path);
        DNDS_CHECK(centres.components() == zones.physicalDimension, ArgumentError,
                   "'{}' has {} components, points of {} have {} coordinates", centres.name(), centres.components(),
                   path, zones.physicalDimension);
        for (int b = 0; b < centres.blocks(); ++b) {
            const BlockMemory &block = centres.block(b);
            readBlock(model, centres.grid()->block(block.block).space, block, *source, centres.view(b));
        }
    });
}

} // namespace DNDS::Geom
