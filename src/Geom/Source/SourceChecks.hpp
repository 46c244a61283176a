/// @file SourceChecks.hpp
/// @brief Checks a source mesh and reorients inverted elements.
///
/// `MeshReport` collects findings about a mesh while it is built: the same on every rank and for every number of ranks.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Geom/Source/ElementType.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Index/Mappings.hpp"

#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Geom {

/// Findings about a mesh, readable and for tests: the same on all ranks, for any number of ranks.
struct MeshReport {
    struct TypeCount {
        ElementType type;
        index count;
    };
    /// Counts of all ranks; each face counts once, however many zones name it.
    struct Patch {
        std::string name;
        std::string kind;
        index faces = 0;      ///< all of the patch
        index innerFaces = 0; ///< the subset with cells on both sides
    };
    /// The file's path, or the generator, as in SourceMesh.
    std::string origin;
    /// The dimension of the cells.
    int dimension = 0;
    std::vector<TypeCount> cells; ///< numbers of cells of each type that occurs, ascending
    index cellsTotal = 0;
    index nodes = 0;             ///< number of nodes of the mesh
    index unusedNodes = 0;       ///< besides them: listed in the file and in no cell, left out
    real measure = 0.0;          ///< volume or area as the file orients its cells, from corner nodes
    real volume = 0.0;           ///< the same after reorienting cells
    index turnedCells = 0;       ///< reoriented: left-handed, clockwise or inward
    index flatCells = 0;         ///< zero or nearly zero measure
    index collapsedCells = 0;    ///< list a corner twice
    std::array<real, 3> lower{}; ///< bounding box of the nodes of cells
    std::array<real, 3> upper{};
    std::vector<Patch> patches;
    index innerFaces = 0;
    index boundaryFaces = 0;   ///< with a cell on one side; periodic ones included
    index unassignedFaces = 0; ///< the subset in no patch and no periodic connection
    index periodicPairs = 0;
    std::vector<std::string> warnings; ///< warnings of the source, then those found here
    std::vector<std::string> notes;    ///< notes of the source: harmless omissions
};

/// Throws unless blocks fit together; each element has a known type of the right dimension and the number of nodes of
/// its type, all of them in the mesh; polyhedra have faces of at least three corners; marks name patches or
/// connections. Collective, O(source). Throws DataError (IndexError for a node out of range), the same on all ranks,
/// with the mesh's origin and the file's number of the element.
/// Everything after it may rely on a consistent source: readers of damaged or hostile files need no checks of their
/// own about contents.
void checkSource(CommunicatorView comm, const SourceMesh &source);

/// The local part of `checkSource` about marks: throws unless each face has a mark, and marks of faces and nodes name
/// patches or connections. Local. Throws DataError, or IndexError for a node out of range.
void checkMarks(const SourceMesh &source);

/// Whether cells have weights. Throws ArgumentError on all ranks unless each of this rank's `cells` has a weight from 1
/// to 2^31 - 1, or no rank gives any. Collective.
bool requireWeights(CommunicatorView comm, std::span<const index> weights, index cells);

/// Throws DataError on all ranks, naming the first such rank, if a rank would have more entities than 32-bit local
/// numbers allow. Collective.
void requireLocalNumbers(CommunicatorView comm, index count, const char *what, const std::string &origin);

/// The coordinates of nodes, or rows of `width` numbers, from the ranks of their blocks: [nodes], or [nodes x width].
/// Nodes may be repeated. Collective; one query and reply per pair of ranks. `blocks` numbers the nodes of the source;
/// all `nodes` must exist.
/// Each distinct node is asked for as often as it is named: callers with many repeats use a NumberTable first.
std::vector<real> fetchRows(const GlobalMapping &blocks, std::span<const real> ownRows, std::size_t width,
                            std::span<const index> nodes);
std::vector<Point> fetchCoordinates(const GlobalMapping &blocks, std::span<const Point> ownCoordinates,
                                    std::span<const index> nodes);

/// The lower and the upper corner of the box around the points of all ranks; zeros without points. Collective; one
/// reduction.
std::pair<Point, Point> nodeBoundsOf(CommunicatorView comm, std::span<const Point> points);

/// Positions of cells; `orientCells` fills it in.
struct SourceGeometry {
    std::vector<Point> centres; ///< [own cells] mean of the corners
    Point lower{};              ///< corner of the box around all nodes of cells
    Point upper{};
    bool planar = false; ///< two-dimensional cells in a plane z = const, up to round-off
};

/// Reorients cells that are left-handed, clockwise or inward, and faces of polyhedra so that all point outward; fills
/// in the report's part about cells. Collective, O(source).
///
/// Orientation is not checked for surfaces outside a plane z = const; round-off in z, up to 1e-9 of the diagonal of the
/// mesh, leaves a plane a plane. A polyhedron is closed if each of its edges
/// belongs to two faces or, with hanging nodes, if its face areas sum to zero. Throws DataError on all ranks, with the
/// number of open polyhedra and the first, unless `openPolyhedra` allows them; these, elements without volume and
/// collapsed ones are counted and reported as warnings.
SourceGeometry orientCells(const GlobalMapping &blocks, SourceMesh &source, MeshReport &report,
                           bool openPolyhedra = false);

/// Elements with a common finding: how many, and the first in the file. The same on all ranks after agreement.
/// Counts are sums over ranks, and the first is by file order, so reports do not depend on the number of ranks.
struct Finding {
    index count = 0;
    index number = -1; ///< in file order, of the first
    index fileId = 0;

    /// Counts an element, and keeps its numbers if it is the first in the file so far. Local.
    void add(index elementNumber, index elementFileId) {
        if (count++ == 0 || elementNumber < number) {
            number = elementNumber;
            fileId = elementFileId;
        }
    }
    /// Collective; one gathering.
    void agree(CommunicatorView comm);
};

} // namespace DNDS::Geom
