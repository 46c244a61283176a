/// @file Model.hpp
/// @brief The mesh as the tree of a CGNS file describes it: zones, sections, boundary conditions, connections.
#pragma once

#include "DNDS/Geom/Cgns/Cgns.hpp"
#include "DNDS/Geom/Cgns/TreeNode.hpp"
#include "DNDS/Geom/Cgns/TreeSource.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace DNDS::Geom::Cgns {

/// Three indices of a structured zone, from 1; 1 in missing dimensions.
using Triple = std::array<index, 3>;

/// Built from the tree only: sizes and places, no coordinates or connectivity. Names in comments below are those of
/// the standard, the CGNS Standard Interface Data Structures (SIDS).
struct Zone {
    /// As in the file; connections name their donor by it.
    std::string name;
    /// The node of label Zone_t, owned by the tree.
    const TreeNode *tree = nullptr;
    /// Anything but ZoneType "Unstructured"; the SIDS' default is structured.
    bool structured = false;
    int dimensions = 0;       ///< number of its indices: 1 if unstructured
    Triple vertices{1, 1, 1}; ///< structured: along each index
    /// Structured: the product of `vertices`. Rind points do not count.
    index nodes = 0;
    index cells = 0;     ///< as the zone states
    index firstNode = 0; ///< number of its first node among those of all zones
    /// CoordinateX, Y, Z; null beyond the physical dimension. Values are read later, by the ranks that need them.
    std::array<const TreeNode *, 3> coordinates{};
    index skipped = 0; ///< rind points before the first node

    /// The node of a structured zone, counted from 0 in the zone.
    /// The first index varies fastest, as in Fortran. No check of the range.
    index nodeAt(const Triple &at) const {
        return (at[0] - 1) + vertices[0] * ((at[1] - 1) + vertices[1] * (at[2] - 1));
    }
};

enum class SectionKind : unsigned char {
    Fixed,       ///< a section whose elements all have the same number of nodes
    Offsets,     ///< a section with ElementStartOffset
    Stream,      ///< a section of an older file: elements of any length, each preceded by its type or length
    Structured,  ///< the cells of a structured zone
    FromParents, ///< the polyhedra of a zone that has only faces with parents
    OfCells,     ///< faces without nodes of their own: each names a cell and the number of the face in it
    Patch        ///< faces of a structured zone normal to one of its indices
};

/// Contiguous elements. Their numbers in the zone are `firstId`, `firstId + 1`, ...
/// A unit of reading: elements of one section have the same encoding, so a rank's share of its elements is found
/// without looking at other sections. Elements_t of the file, or one made up for structured zones, sides of them, and
/// polyhedra given by parents.
struct Section {
    std::string name;
    /// Index into Model::zones.
    int zone = 0;
    SectionKind kind = SectionKind::Fixed;
    ElementType type = ElementType::Node; ///< Polygon for NGON_n, Polyhedron for NFACE_n
    int nodes = 0;                        ///< nodes of each element, if their number is the same
    /// Number of the first element in the zone, from 1: ElementRange. Ranges of a zone's sections are disjoint.
    index firstId = 0;
    /// Number of elements; 0: the section was left out with a warning.
    index size = 0;
    /// ElementConnectivity: node numbers from 1, in the encoding of `kind`; null for kinds without one.
    const TreeNode *connectivity = nullptr;
    /// ElementStartOffset, [size + 1] positions in `connectivity`; null in files before 4.0.
    const TreeNode *offsets = nullptr;
    /// ParentElements, [2][size] numbers of cells, 0 for none: all first parents, then all second ones.
    const TreeNode *parents = nullptr;
    const TreeNode *positions = nullptr; ///< positions of faces in their parents, from value `firstPosition` on
    index firstPosition = 0;
    bool byParents = false; ///< elements without nodes of their own are the named faces of their parents
    /// Patch: the index that is constant on its faces, and the first and the last of them, each named by its lowest
    /// corner. Or `corners` lists them (from 1 to `high`), with `shift` added to their index `normal`; -1 until
    /// `findListedDirections` has found it.
    int normal = 0;
    Triple low{1, 1, 1};
    Triple high{1, 1, 1};
    const TreeNode *corners = nullptr;
    index shift = 0;
    /// The kind of object that lists the corners, for messages.
    const char *listedBy = "boundary condition";

    /// Length of the connectivity in numbers; the unit in which ranks share out sections without offsets.
    index words() const { return connectivity == nullptr ? 0 : connectivity->size(); }
};

/// Some elements or vertices of a zone: a range of numbers, a list, or none.
struct PointSet {
    /// The numbers are of vertices, else of elements or faces: GridLocation.
    bool vertices = false;
    index first = 0; ///< the range, counted from 1
    index last = -1;
    /// PointList; null for ranges.
    const TreeNode *list = nullptr;
    int numbersEach = 1; ///< in the list: the index dimension of the zone
    /// A range of a structured zone, from one corner to the other.
    std::optional<std::array<Triple, 2>> grid;
    std::string problem; ///< why the set is invalid; "" if it is not

    /// Number of points; for a grid, of vertices within the corners, both included.
    index size() const;
};

/// BC_t. Several conditions may add faces to one patch.
struct BoundaryCondition {
    std::string name;
    /// Index into Model::zones.
    int zone = 0;
    /// Index into Model::patches.
    int patch = 0;
    PointSet points;
    int section = -1; ///< structured, except for lists of vertices: the section in `Model::faces` with its faces
};

/// GridConnectivity_t or GridConnectivity1to1_t: point k of `points` coincides with point k of `donorPoints`. Both
/// zones usually state it; duplicates are found when nodes are joined. Not periodic: nodes become one. Periodic: the
/// sides become a PeriodicConnection.
struct Connection {
    std::string name;
    int zone = 0;
    /// The other zone: index into Model::zones.
    int donor = 0;
    PointSet points;
    PointSet donorPoints;
    std::array<int, 3> axes{1, 2, 3};    ///< structured: which donor index each index follows, negative if backwards
    std::array<int, 2> sections{-1, -1}; ///< those of `Model::faces` for structured zones on both sides, else -1
    /// From this zone to the donor; empty if the sides coincide.
    std::optional<PeriodicTransform> periodic;
};

/// The same on all ranks, which build it from the same tree. Plain data; the tree must outlive it.
struct Model {
    /// Path, for messages.
    std::string file;
    /// Name of the base that is read.
    std::string base;
    int cellDimension = 0;
    int physicalDimension = 0;
    /// Files before 3.2 write "NGON_n + n" as the type of polygons with n corners: the number of NGON_n in them; 0 in
    /// later files.
    int polygonCode = 0;
    bool numbers30 = false; ///< a file of version 3.0, which numbered element types from PYRA_13 on differently
    /// Nodes of all zones, before joining.
    index nodes = 0;
    /// In the order of the file; so are their nodes.
    std::vector<Zone> zones;
    std::vector<Section> cells; ///< sections that may hold cells, by zone and number
    std::vector<Section> faces; ///< sections that hold faces alone, by zone and number
    /// Left-out conditions are not among them.
    std::vector<BoundaryCondition> conditions;
    std::vector<Connection> connections;
    /// Become SourceMesh::patches; one for each name, kind and family.
    std::vector<BoundaryPatch> patches;
    bool patchesAreSections = false; ///< the file has no boundary condition: all faces belong to patches
    std::vector<std::string> warnings;
    std::vector<std::string> notes;

    /// Converts the number of an element type from the file's version to the current standard. Version 3.0 put PYRA_13
    /// before PYRA_14; 3.1 moved it after MIXED.
    index typeCode(index code) const noexcept {
        constexpr index pyra13 = 21;
        return !numbers30 || code < 13 || code > 21 ? code : code == 13 ? pyra13 : code - 1;
    }
    /// The corners of polygons of this type in an old file; 0 for other types.
    index polygonCorners(index code) const noexcept {
        return polygonCode > 0 && code >= polygonCode + 3 && code < 1000 ? code - polygonCode : 0;
    }
    /// "file: zone 'Z'", for messages.
    std::string zoneText(int zone) const;
    /// "file: zone 'Z', section 'S'"
    std::string sectionText(const Section &section) const;
};

/// The message that elements of the type with this number are not read; of cubic and quartic ones with their name and
/// what to do. Local.
std::string unsupportedType(index code);

/// Builds the model from the tree, which must outlive it. Local. Throws DataError if the tree contradicts itself and
/// ArgumentError if it lacks the requested base.
Model buildModel(const TreeNode &root, const CgnsOptions &options);

/// Finds the direction of the faces of structured zones that connections list without saying it: the one in which all
/// of them are on one side of the zone. A connection whose faces fit no or several directions is left out with a
/// warning. Collective.
void findListedDirections(const CommunicatorView &comm, Model &model, TreeSource &source);

} // namespace DNDS::Geom::Cgns
