#include "DNDS/Geom/Ugrid/UgridReader.hpp"

#include "DNDS/Geom/File/ElementBlocks.hpp"
#include "DNDS/Geom/File/FileSegments.hpp"
#include "DNDS/Geom/Ugrid/UgridFile.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace DNDS::Geom {

namespace {

/// CGNS node `k` is the file's node `pyramidOrder[k]`.
constexpr std::array<std::size_t, 5> pyramidOrder{0, 3, 4, 1, 2};

/// The rows of a `.mapbc` file, as lists for broadcasting.
struct BoundaryNames {
    std::string path; ///< "" if there is no file
    std::vector<index> tags;
    std::vector<index> conditions;
    std::vector<std::string> names; ///< "" if the row has none
};

/// FUN3D's numbers of boundary conditions; "" for those without a counterpart in CGNS.
std::string kindOf(index condition) {
    static const std::map<index, std::string> kinds{
        {3000, "BCWallInviscid"},    {4000, "BCWallViscous"},    {4100, "BCWallViscous"},
        {5000, "BCFarfield"},        {5026, "BCExtrapolate"},    {5050, "BCFarfield"},
        {5051, "BCOutflowSubsonic"}, {6661, "BCSymmetryPlane"},  {6662, "BCSymmetryPlane"},
        {6663, "BCSymmetryPlane"},   {7011, "BCInflowSubsonic"}, {7012, "BCOutflowSubsonic"},
        {7031, "BCOutflowSubsonic"}, {7036, "BCInflowSubsonic"}};
    const auto found = kinds.find(condition);
    return found == kinds.end() ? "" : found->second;
}

/// Reads a `.mapbc` file: the number of rows, then tag, boundary condition and, often, a name in each. Local.
BoundaryNames parseMapbc(const std::string &path) {
    BoundaryNames result;
    result.path = path;
    const MeshFile file(path);
    FileCursor cursor(file);
    const auto nextRow = [&](std::string_view expected) {
        do
            cursor.requireLine(expected);
        while (cursor.line()[0] == '#' || cursor.line()[0] == '!');
        return WordReader(cursor);
    };
    std::set<index> seen;
    const index rows = nextRow("the number of boundaries").integer("the number of boundaries", 0, file.size());
    for (index row = 0; row < rows; row++) {
        WordReader words = nextRow("a boundary");
        result.tags.push_back(words.integer("the tag of a boundary"));
        result.conditions.push_back(words.integer("a boundary condition"));
        const std::string_view name = words.rest();
        result.names.emplace_back(name.substr(0, name.find_last_not_of(" \t\r") + 1));
        if (!seen.insert(result.tags.back()).second)
            cursor.fail(fmt::format("tag {} is repeated", result.tags.back()));
    }
    return result;
}

/// Collective: rank 0 reads.
/// Looks for "wing.mapbc", then for "wing.b8.mapbc".
BoundaryNames readNames(CommunicatorView comm, const std::string &path) {
    BoundaryNames result;
    std::vector<std::string> found(1);
    comm.guarded([&] {
        if (comm.rank() != 0)
            return;
        std::error_code ignored;
        const std::string beside = std::filesystem::path(path).replace_extension("mapbc").string(); // wing.b8.mapbc
        for (const std::string &candidate : {ugridStem(path) + ".mapbc", beside})
            if (found[0].empty() && std::filesystem::exists(candidate, ignored))
                found[0] = candidate;
        if (!found[0].empty())
            result = parseMapbc(found[0]);
    });
    broadcastStrings(comm, found);
    result.path = std::move(found[0]);
    broadcastList(comm, result.tags);
    broadcastList(comm, result.conditions);
    broadcastStrings(comm, result.names);
    return result;
}

/// Makes patches of the tags of all ranks, and marks of this rank's tags. Collective. Patches follow the union of all
/// ranks' tags, so that all ranks have the same ones in the same order; O(distinct tags) memory on each rank.
/// Tags with the same name and condition share a patch. Names that another condition has taken get the tag as a
/// suffix.
void nameFaces(CommunicatorView comm, std::span<const index> tags, SourceMesh &mesh) {
    const BoundaryNames names = readNames(comm, mesh.origin);
    const std::vector<index> all = unionOfAll(comm, {tags.begin(), tags.end()});
    if (names.path.empty() && !all.empty())
        mesh.notes.push_back(
            fmt::format("{}: boundaries are called by their tags, as there is no {}.mapbc to name them", mesh.origin,
                        ugridStem(mesh.origin)));
    std::map<index, std::size_t> rows;
    for (std::size_t k = 0; k < names.tags.size(); k++)
        rows.try_emplace(names.tags[k], k);
    std::map<index, int> marks;
    std::set<std::string> taken;                              // names of patches
    std::map<std::pair<std::string, std::string>, int> known; // patches by name and family in the file
    for (const index tag : all) {
        BoundaryPatch patch{std::to_string(tag), "", ""};
        if (const auto found = rows.find(tag); found != rows.end()) {
            const std::size_t at = found->second;
            patch.name = names.names[at].empty() ? patch.name : names.names[at];
            patch.family = std::to_string(names.conditions[at]);
            patch.kind = kindOf(names.conditions[at]);
        } else if (!names.path.empty()) {
            mesh.warnings.push_back(
                fmt::format("{}: tag {} of the boundary is not in {}", mesh.origin, tag, names.path));
        }
        const auto [same, isNew] = known.try_emplace({patch.name, patch.family}, static_cast<int>(mesh.patches.size()));
        marks[tag] = same->second;
        if (!isNew)
            continue;
        while (!taken.insert(patch.name).second) // by another condition
            patch.name += fmt::format("_{}", tag);
        mesh.patches.push_back(patch);
    }
    for (const index tag : tags)
        mesh.faceMarks.push_back(marks[tag]);
}

/// Appends this rank's elements of a list; `firstId` is the number of the list's first element. Local.
/// O(own numbers) time and memory; one copy of the list beside the block.
void appendList(const UgridFile &file, UgridList list, ElementType type, index firstId, ElementBlock &block) {
    std::vector<index> numbers = file.integers(list, 1, file.count(UgridList::Nodes));
    const auto width = static_cast<std::size_t>(elementInfo(type).nodes);
    index id = firstId + file.part(list).begin;
    for (std::size_t at = 0; at < numbers.size(); at += width) {
        const std::span<index> nodes = std::span(numbers).subspan(at, width);
        for (index &node : nodes)
            node--;
        if (type == ElementType::Pyra5) {
            std::array<index, 5> ordered{};
            for (std::size_t k = 0; k < width; k++)
                ordered[k] = nodes[pyramidOrder[k]];
            std::ranges::copy(ordered, nodes.begin());
        }
        appendElement(block, type, nodes, id++);
    }
}

/// Elements are numbered from 1: cells list by list, then faces. The file has faces and tags before cells, and lists
/// are read in its order.
SourceMesh readParts(CommunicatorView comm, const std::string &path) {
    const UgridFile file(comm, path);
    const index cells = file.count(UgridList::Tetrahedra) + file.count(UgridList::Pyramids) +
                        file.count(UgridList::Prisms) + file.count(UgridList::Hexahedra);
    DNDS_CHECK(cells > 0, DataError,
               "{} is a surface or a two-dimensional mesh ({} triangles, {} quadrilaterals): it has no cells of three "
               "dimensions; give the mesh of the volume",
               path, file.count(UgridList::Triangles), file.count(UgridList::Quadrilaterals));
    SourceMesh mesh;
    mesh.origin = path;
    mesh.cellDimension = 3;
    // One agreement per list, so that the first error of the file is named on any number of ranks.
    comm.guarded([&] {
        const std::vector<real> numbers = file.coordinates();
        for (std::size_t at = 0; at < numbers.size(); at += 3)
            mesh.coordinates.push_back({numbers[at], numbers[at + 1], numbers[at + 2]});
    });
    // Returns the number after the list's last element, with which the next list begins.
    const auto readList = [&](UgridList list, ElementType type, index firstId, ElementBlock &block) {
        comm.guarded([&] { appendList(file, list, type, firstId, block); });
        return firstId + file.count(list);
    };
    index next = readList(UgridList::Triangles, ElementType::Tri3, cells + 1, mesh.faces);
    readList(UgridList::Quadrilaterals, ElementType::Quad4, next, mesh.faces);
    std::vector<index> tags;
    comm.guarded([&] {
        constexpr auto most = std::numeric_limits<index>::max();
        tags = file.integers(UgridList::Tags, -most, most);
    });
    nameFaces(comm, tags, mesh);
    next = readList(UgridList::Tetrahedra, ElementType::Tetra4, 1, mesh.cells);
    next = readList(UgridList::Pyramids, ElementType::Pyra5, next, mesh.cells);
    next = readList(UgridList::Prisms, ElementType::Penta6, next, mesh.cells);
    readList(UgridList::Hexahedra, ElementType::Hexa8, next, mesh.cells);
    numberNodes(comm, mesh);
    numberBlock(comm, mesh.cells);
    numberBlock(comm, mesh.faces);
    return mesh;
}

} // namespace

SourceMesh readUgrid(CommunicatorView comm, const std::string &path) {
    return failTogether(comm, [&] { return readParts(comm, path); });
}

} // namespace DNDS::Geom
