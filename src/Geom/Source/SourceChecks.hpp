/// @file SourceChecks.hpp
/// @brief Checks a mesh as it comes from a file, and turns elements that are inside out.
#pragma once

#include "DNDS/Geom/Source/MeshReport.hpp"
#include "DNDS/Geom/Source/Point.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Index/GlobalMapping.hpp"

#include <memory>
#include <span>
#include <vector>

namespace DNDS::Geom {

/// Throws unless blocks fit together and each element has a known type of the right dimension, as many nodes as its
/// type needs, all of them in the mesh; polyhedra have faces of at least three corners, marks name patches or
/// connections. Collective, O(source). Throws DataError (IndexError for a node out of range), the same on all ranks,
/// naming the mesh's origin and the file's number of the element.
void checkSource(CommunicatorView comm, const SourceMesh &source);

/// Throws unless each face has a mark, and marks of faces and nodes name patches or connections: the part of
/// `checkSource` that is about them, on this rank. Local. Throws DataError, or IndexError for a node out of range.
void checkMarks(const SourceMesh &source);

/// Whether cells have weights. Throws ArgumentError on all ranks unless each of this rank's `cells` has one, from 1 to
/// 2^31 - 1, or no rank gives any. Collective.
bool needWeights(CommunicatorView comm, std::span<const index> weights, index cells);

/// Throws DataError on all ranks, naming the first such rank, where a rank would have more of something than local
/// numbers, which have 32 bits, can tell apart. Collective.
void needLocalNumbers(CommunicatorView comm, index count, const char *what, const std::string &origin);

/// The coordinates of nodes, which may be repeated, from the ranks whose blocks they are in: [nodes]. Collective; one
/// question and answer for each pair of ranks. `blocks` numbers the nodes of the source. Nodes exist.
std::vector<Point> fetchCoordinates(const GlobalMapping &blocks, std::span<const Point> ownCoordinates,
                                    std::span<const index> nodes);

/// Where cells are, and what they were like before `orientCells` turned some of them.
struct SourceGeometry {
    std::vector<Point> centres; ///< [own cells] mean of the corners
    Point lower{};              ///< of all nodes of cells
    Point upper{};
};

/// Turns cells that are left-handed, clockwise or inward, and the faces of polyhedra that do not all look outward;
/// fills in what the report says about cells. Collective, O(source).
///
/// Surfaces that are not in a plane z = const have no clockwise. A polyhedron is closed when each of its edges is an
/// edge of two faces, or, where faces meet with hanging nodes, when its face areas sum to zero. Throws DataError on all
/// ranks, naming the file's number, for an open polyhedron and for coordinates that are not finite; elements without
/// volume and collapsed ones are counted and warned of.
SourceGeometry orientCells(const GlobalMapping &blocks, SourceMesh &source, MeshReport &report);

/// Elements that something was noticed about: how many there are, and which comes first in the file. The same on all
/// ranks once agreed on.
struct Finding {
    index count = 0;
    index number = -1; ///< in file order, of the first
    index fileId = 0;

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
