#include "DNDS/Geom/Vtk/VtkLists.hpp"

#include "DNDS/Geom/File/ElementBlocks.hpp"
#include "DNDS/Geom/Vtk/VtkElements.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace DNDS::Geom {

namespace {

/// VTK's types whose points are in rows along x, both in the same direction.
constexpr index voxel = 11;
constexpr index pixel = 8;

/// The element of a VTK type.
std::optional<ElementType> elementOf(index vtk) {
    static const auto elements = [] {
        std::array<std::optional<ElementType>, 256> byType;
        for (int value = 255; value >= 0; value--) { // of several, the first one counts
            const auto type = static_cast<ElementType>(value);
            if (isElementType(value) && type != ElementType::Mixed && type != ElementType::Pyra14)
                byType[vtkElement(type).type] = type;
        }
        byType[voxel] = ElementType::Hexa8;
        byType[pixel] = ElementType::Quad4;
        return byType;
    }();
    return vtk >= 0 && vtk < std::ssize(elements) ? elements[static_cast<std::size_t>(vtk)] : std::nullopt;
}

/// Appends cells one by one.
/// Checks each cell: the file may hold anything.
class CellTranslator {
  public:
    CellTranslator(const std::string &path, const VtkLists &lists) : path_(path), lists_(lists) {}

    /// Throws DataError if DNDS has no such cells.
    ElementType type(std::size_t c) const {
        const std::optional<ElementType> type = elementOf(lists_.types[c]);
        if (!type)
            fail(c, fmt::format("has VTK's type {}, which is not supported", lists_.types[c]));
        return *type;
    }

    /// Appends cell `c` of this rank, with its nodes in the order of CGNS.
    void append(std::size_t c, ElementType type, ElementBlock &block) const {
        const index number = lists_.firstCell + static_cast<index>(c) + 1;
        if (type == ElementType::Polyhedron) {
            const std::span<const index> list = part(lists_.faceStarts, lists_.faces, c);
            for (std::size_t k = 0; k < list.size(); k += 1 + static_cast<std::size_t>(list[k]))
                requireNodes(c, list.subspan(k + 1, static_cast<std::size_t>(list[k])));
            return appendElement(block, type, list, number);
        }
        const std::span<const index> vtk = part(lists_.starts, lists_.nodes, c);
        const int width = elementInfo(type).nodes;
        if ((width > 0 && std::ssize(vtk) != width) || (width == 0 && vtk.size() < 3))
            fail(c, fmt::format("has VTK's type {} and {} nodes", lists_.types[c], vtk.size()));
        requireNodes(c, vtk);
        std::vector<index> nodes(vtk.begin(), vtk.end());
        // The inverse of VtkCells::add: VTK's node k is node order[k] of CGNS.
        const auto order = vtkElement(type).order;
        for (std::size_t k = 0; k < order.size(); k++)
            nodes[order[k]] = vtk[k];
        if (lists_.types[c] == voxel || lists_.types[c] == pixel)
            for (std::size_t k = 0; k < nodes.size(); k += 4) // rows in x, both of them forward
                std::swap(nodes[k + 2], nodes[k + 3]);
        appendElement(block, type, nodes, number);
    }

  private:
    // The entries of one cell.
    static std::span<const index> part(const std::vector<index> &starts, const std::vector<index> &all, std::size_t c) {
        return std::span(all).subspan(static_cast<std::size_t>(starts[c] - starts[0]),
                                      static_cast<std::size_t>(starts[c + 1] - starts[c]));
    }
    void requireNodes(std::size_t c, std::span<const index> nodes) const {
        for (const index node : nodes)
            if (node < 0 || node >= lists_.points)
                fail(c, fmt::format("has point {} of {}", node, lists_.points));
    }
    [[noreturn]] void fail(std::size_t c, const std::string &message) const {
        throw DataError(fmt::format("{}: cell {} {}", path_, lists_.firstCell + static_cast<index>(c) + 1, message));
    }

    const std::string &path_;
    const VtkLists &lists_;
};

} // namespace

/// O(corners). A face of two cells is copied into both lists as stored: it may point inward in one of them, which
/// buildMesh corrects (orientCells).
void listFaces(const VtkFaces &faces, std::vector<index> &starts, std::vector<index> &lists) {
    starts = {0};
    lists.clear();
    for (std::size_t c = 0; c + 1 < faces.starts.size(); c++) {
        for (index f = faces.starts[c] - faces.starts[0]; f < faces.starts[c + 1] - faces.starts[0]; f++) {
            const auto face = static_cast<std::size_t>(faces.faces[static_cast<std::size_t>(f)] - faces.first);
            const index count = faces.cornerStarts[face + 1] - faces.cornerStarts[face];
            const auto begin = faces.corners.begin() + (faces.cornerStarts[face] - faces.cornerStarts[0]);
            lists.push_back(count);
            lists.insert(lists.end(), begin, begin + count);
        }
        starts.push_back(std::ssize(lists));
    }
}

/// The highest dimension is that of all ranks; one agreement for the types, one for the cells.
/// O(own points + own connectivity) time and memory; the lists are read once for types, so that the dimension is
/// known before any cell is appended.
SourceMesh meshOfVtk(CommunicatorView comm, const std::string &path, VtkLists lists, std::vector<bool> &kept) {
    const CellTranslator translator(path, lists);
    SourceMesh mesh;
    mesh.origin = path;
    std::vector<ElementType> types;
    comm.guarded([&] {
        for (std::size_t at = 0; at < lists.coordinates.size(); at += 3)
            mesh.coordinates.push_back({lists.coordinates[at], lists.coordinates[at + 1], lists.coordinates[at + 2]});
        for (std::size_t c = 0; c < lists.types.size(); c++) {
            types.push_back(translator.type(c));
            mesh.cellDimension = std::max(mesh.cellDimension, elementInfo(types[c]).dimension);
        }
    });
    mesh.cellDimension = comm.allReduce(mesh.cellDimension, MPI_MAX);
    DNDS_CHECK(mesh.cellDimension >= 2, DataError, "{} has no cells of two or three dimensions", path);
    comm.guarded([&] {
        for (std::size_t c = 0; c < types.size(); c++) {
            kept.push_back(elementInfo(types[c]).dimension == mesh.cellDimension);
            if (kept[c])
                translator.append(c, types[c], mesh.cells);
        }
    });
    const index left = comm.allReduce(std::ranges::count(kept, false), MPI_SUM);
    if (left > 0)
        mesh.notes.push_back(
            fmt::format("{}: {} cells of fewer than {} dimensions are left out", path, left, mesh.cellDimension));
    numberNodes(comm, mesh);
    numberBlock(comm, mesh.cells);
    return mesh;
}

// Components become fields of their own: MeshField has one number a row.
void addVtkFields(const std::string &group, const std::string &name, index columns, std::span<const real> values,
                  const std::vector<bool> &kept, std::vector<MeshField> &fields) {
    for (index c = 0; c < columns; c++) {
        const std::string end = columns == 3 ? std::string(1, "XYZ"[c]) : std::to_string(c + 1);
        MeshField &field = fields.emplace_back(MeshField{group, name + (columns == 1 ? "" : end), {}});
        for (std::size_t row = 0; row < kept.size(); row++)
            if (kept[row])
                field.values.push_back(values[row * static_cast<std::size_t>(columns) + static_cast<std::size_t>(c)]);
    }
}

} // namespace DNDS::Geom
