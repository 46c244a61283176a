/// @file Boundary.hpp
/// @brief Boundary conditions and connections: the faces and nodes they mark, and the nodes they join.
#pragma once

#include "DNDS/Geom/Cgns/SectionElements.hpp"

#include <utility>
#include <vector>

namespace DNDS::Geom::Cgns {

/// Both lists of elements, for the readers of boundary conditions.
struct Elements {
    const SectionTable &cellTable;
    const ElementRun &cells; ///< may hold faces, too, from MIXED sections
    const SectionTable &faceTable;
    const ElementRun &faces;
};

/// A face of this rank with a mark: an element of one of the two lists.
struct MarkedElement {
    bool inCells;  ///< in the list of cells
    index element; ///< element of this rank's run
    int mark;      ///< as `SourceMesh::faceMarks`
};

/// The marks of boundary conditions and periodic connections.
/// Made of this rank's elements. Marks are numbers of patches, or negative for sides of periodic connections.
struct Marks {
    std::vector<MarkedElement> faces; ///< in order of list, element and mark, each once
    std::vector<SourceMesh::NodeMark> nodes;
    std::vector<BoundaryPatch> patches; ///< patches of the model, except sections without faces
    std::vector<PeriodicConnection> periodic;
    std::vector<std::string> warnings;
};

/// Reads the point sets of boundary conditions and periodic connections, each rank its share, and sends them to the
/// ranks with the faces. Collective. Throws DataError on all ranks if a set names something that does not exist.
Marks readMarks(CommunicatorContext &context, const Model &model, const Elements &elements, TreeSource &source);

/// An element of one of the two lists, as one number: queries and sorts need elements of both lists in one.
namespace ElementKey {
inline index make(index ordinal, bool inCells) { return 2 * ordinal + (inCells ? 1 : 0); }
inline index ordinal(index key) { return key / 2; }
inline bool inCells(index key) { return key % 2 != 0; }
} // namespace ElementKey

/// This rank's share of the pairs that non-periodic connections join.
/// Nodes are pairs already; faces are resolved by FaceJoiner, which needs their corners.
struct JoinPairs {
    std::vector<std::pair<index, index>> nodes; ///< pairs of nodes of all zones, counted from 0
    struct Faces {
        int connection; ///< number in the model
        index face;     ///< an ElementKey
        index donor;    ///< an ElementKey
    };
    std::vector<Faces> faces;
};

/// Collective. Throws DataError on all ranks if a connection names something that does not exist.
JoinPairs readJoins(CommunicatorContext &context, const Model &model, const Elements &elements, TreeSource &source);

} // namespace DNDS::Geom::Cgns
