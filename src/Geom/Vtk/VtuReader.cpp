#include "DNDS/Geom/Vtk/VtuReader.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Vtk/VtkLists.hpp"
#include "DNDS/Geom/Vtk/VtuFile.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>

namespace DNDS::Geom {

namespace {

/// Gives each rank a range of rank 0's numbers. Collective. Only rank 0 calls `rangeOf` and needs `all`, of which it
/// makes a copy.
/// O(all) time and memory on rank 0, O(own range) on others. Ranges may overlap: starts of cells are sent with one
/// number more than cells.
template <class RangeOf>
std::vector<index> deal(CommunicatorContext &context, std::span<const index> all, RangeOf &&rangeOf) {
    RankLists outgoing;
    onRankZero(context.comm(), [&] {
        for (int rank = 0; rank < context.comm().size(); rank++) {
            const IndexRange range = rangeOf(rank);
            outgoing.append(rank,
                            all.subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size())));
        }
    });
    return sparseExchange(context, outgoing).values;
}

/// Gives each rank an equal share of rank 0's rows of `columns` numbers. Collective.
std::vector<real> dealRows(CommunicatorContext &context, std::vector<real> all, index rows, index columns) {
    const EvenSplit split(rows, context.comm().size());
    std::vector<index> words; // the bits of the numbers: what sparseExchange sends are integers
    onRankZero(context.comm(), [&] {
        std::ranges::transform(all, std::back_inserter(words), [](real x) { return std::bit_cast<index>(x); });
        all = {};
    });
    const std::vector<index> own = deal(context, words, [&](int rank) {
        return IndexRange{split.begin(rank) * columns, split.end(rank) * columns};
    });
    all.clear();
    std::ranges::transform(own, std::back_inserter(all), [](index word) { return std::bit_cast<real>(word); });
    return all;
}

/// An array of ends of ranges that follow each other, as their begins, with the last end. Local.
std::vector<index> startsIn(const VtuFile &file, std::string_view name) {
    const VtuArray &ends = file.array("Cells", name);
    std::vector<index> starts = file.values<index>(ends);
    starts.insert(starts.begin(), 0);
    if (!std::ranges::is_sorted(starts))
        file.fail(ends, "does not ascend");
    return starts;
}
/// The same for an array with one range a cell; throws for any other number of ranges.
std::vector<index> startsOfCells(const VtuFile &file, std::string_view name) {
    std::vector<index> starts = startsIn(file, name);
    if (std::ssize(starts) != file.cells() + 1)
        file.fail(file.array("Cells", name),
                  fmt::format("has {} numbers, and {} are needed", starts.size() - 1, file.cells()));
    return starts;
}

/// The lists of polyhedra in files by VTK 9.4 and later, which number faces. Local.
void readNumberedFaces(const VtuFile &file, std::vector<index> &starts, std::vector<index> &lists) {
    VtkFaces faces;
    faces.starts = startsOfCells(file, "polyhedron_offsets");
    const VtuArray &numbers = file.array("Cells", "polyhedron_to_faces");
    faces.faces = file.values<index>(numbers, faces.starts.back());
    faces.cornerStarts = startsIn(file, "face_offsets");
    faces.corners = file.values<index>(file.array("Cells", "face_connectivity"), faces.cornerStarts.back());
    for (const index face : faces.faces)
        if (face < 0 || face >= std::ssize(faces.cornerStarts) - 1)
            file.fail(numbers, fmt::format("has face {} of {}", face, faces.cornerStarts.size() - 1));
    listFaces(faces, starts, lists);
}

/// The lists of polyhedra as in ElementBlock. In older files, the number of faces precedes each, and `faceoffsets` has
/// their ends, -1 for other cells. Local.
void readFaces(const VtuFile &file, const std::vector<index> &types, std::vector<index> &starts,
               std::vector<index> &lists) {
    if (std::ranges::count(file.arrays(), "polyhedron_offsets", &VtuArray::name) > 0)
        return readNumberedFaces(file, starts, lists);
    const VtuArray &array = file.array("Cells", "faces");
    const std::vector<index> ends = file.values<index>(file.array("Cells", "faceoffsets"), file.cells());
    const std::vector<index> faces = file.values<index>(array);
    starts = {0};
    lists.clear();
    index at = 0;
    for (std::size_t c = 0; c < types.size(); c++) {
        if (types[c] == vtkPolyhedron) {
            // One count too large would take corners of the next cell, so each list must end where it should.
            const index end = std::min(ends[c], std::ssize(faces));
            index left = at < end ? faces[static_cast<std::size_t>(at)] : -1;
            for (at++; left > 0 && at < end; left--) {
                const index corners = faces[static_cast<std::size_t>(at)];
                if (corners < 0 || corners >= end - at)
                    break;
                lists.insert(lists.end(), faces.begin() + at, faces.begin() + at + corners + 1);
                at += corners + 1;
            }
            if (left != 0 || at != ends[c])
                file.fail(array, fmt::format("has faces of cell {} that do not end at {}, as faceoffsets says", c + 1,
                                             ends[c]));
        }
        starts.push_back(std::ssize(lists));
    }
}

/// This rank's blocks; `file` is open on rank 0. Collective.
/// Rank 0 decodes one array at a time and deals it out by a sparse exchange.
/// Peak memory of rank 0: the file, the starts, one decoded array of all cells, and its copy in messages.
/// `polyhedra` is broadcast, so that all ranks take part in the same exchanges.
VtkLists readLists(CommunicatorContext &context, const std::optional<VtuFile> &file, index points, index cells) {
    const CommunicatorView &comm = context.comm();
    const EvenSplit split(cells, comm.size());
    VtkLists lists;
    lists.firstCell = split.begin(comm.rank());
    lists.points = points;
    std::vector<real> places;
    onRankZero(comm, [&] { places = file->values<real>(file->array("Points", ""), 3 * points); });
    lists.coordinates = dealRows(context, std::move(places), points, 3);
    std::vector<index> types, starts, values; // of all cells, on rank 0
    int polyhedra = 0;
    onRankZero(comm, [&] {
        types = file->values<index>(file->array("Cells", "types"), cells);
        polyhedra = std::ranges::count(types, vtkPolyhedron) > 0 ? 1 : 0;
    });
    comm.broadcast(polyhedra);
    const auto startsOf = [&](int rank) { return IndexRange{split.begin(rank), split.end(rank) + 1}; };
    const auto valuesOf = [&](int rank) {
        return IndexRange{starts[static_cast<std::size_t>(split.begin(rank))],
                          starts[static_cast<std::size_t>(split.end(rank))]};
    };
    // One array after the other, so that rank 0 never has two of them beside the starts.
    lists.types = deal(context, types, [&](int rank) { return split.part(rank); });
    onRankZero(comm, [&] {
        starts = startsOfCells(*file, "offsets");
        values = file->values<index>(file->array("Cells", "connectivity"), starts.back());
    });
    lists.starts = deal(context, starts, startsOf);
    lists.nodes = deal(context, values, valuesOf);
    if (polyhedra != 0) {
        onRankZero(comm, [&] { readFaces(*file, types, starts, values); });
        lists.faceStarts = deal(context, starts, startsOf);
        lists.faces = deal(context, values, valuesOf);
    }
    return lists;
}

/// Why an array is no field of `rows` rows; "" and its values if it is one. Local.
std::string readField(const VtuFile &file, const VtuArray &array, index rows, std::vector<real> &values) {
    if (!VtuFile::hasNumbers(array))
        return fmt::format("is of type '{}', which has no numbers", array.type);
    values = file.values<real>(array);
    const index size = std::ssize(values);
    if (size % array.components != 0 || size / array.components != rows)
        return fmt::format("has {} numbers, and not {} for each of {} rows", size, array.components, rows);
    return "";
}

/// This rank's values of the fields of a group with `rows` points or cells, at those of its rows that are `kept`;
/// others are left out with a warning. Collective.
std::vector<MeshField> readFields(CommunicatorContext &context, const std::optional<VtuFile> &file,
                                  const std::string &group, index rows, const std::vector<bool> &kept,
                                  SourceMesh &mesh) {
    const CommunicatorView &comm = context.comm();
    std::vector<MeshField> fields;
    std::vector<VtuArray> arrays;
    onRankZero(comm, [&] {
        std::ranges::copy_if(file->arrays(), std::back_inserter(arrays),
                             [&](const VtuArray &array) { return array.group == group; });
    });
    index count = std::ssize(arrays);
    comm.broadcast(count);
    arrays.resize(static_cast<std::size_t>(count));
    for (VtuArray &array : arrays) {
        // Damage is an error of all ranks; an array that is sound, but no field, is left out.
        std::vector<std::string> text(2); // name, and why it is no field
        std::vector<real> values;
        onRankZero(comm, [&] { text = {array.name, readField(*file, array, rows, values)}; });
        broadcastStrings(comm, text);
        comm.broadcast(array.components);
        if (text[1].empty())
            addVtkFields(group, text[0], array.components, dealRows(context, std::move(values), rows, array.components),
                         kept, fields);
        else
            mesh.warnings.push_back(
                fmt::format("{}: array '{}' in {} {}, so it is left out", mesh.origin, text[0], group, text[1]));
    }
    return fields;
}

/// Only rank 0 opens the file; all ranks agree after each of its steps (onRankZero).
SourceMesh vtuParts(CommunicatorView comm, const std::string &path, MeshFields *fields) {
    const auto context = CommunicatorContext::of(comm);
    std::optional<VtuFile> file;
    index points = 0, cells = 0;
    onRankZero(comm, [&] {
        file.emplace(path);
        points = file->points();
        cells = file->cells();
    });
    comm.broadcast(points);
    comm.broadcast(cells);
    std::vector<bool> kept;
    SourceMesh mesh = meshOfVtk(comm, path, readLists(*context, file, points, cells), kept);
    if (fields != nullptr) {
        const std::vector<bool> all(mesh.coordinates.size(), true);
        fields->nodes = readFields(*context, file, "PointData", points, all, mesh);
        fields->cells = readFields(*context, file, "CellData", cells, kept, mesh);
    }
    return mesh;
}

} // namespace

bool isVtu(std::string_view firstBytes) {
    XmlTag tag;
    try {
        return firstBytes.starts_with('<') && nextTag("", firstBytes, tag) && tag.name == "VTKFile" &&
               tag["type"] == "UnstructuredGrid";
    } catch (const DataError &) { // other XML, or text
        return false;
    }
}

SourceMesh readVtu(CommunicatorView comm, const std::string &path, MeshFields *fields) {
    return failTogether(comm, [&] { return vtuParts(comm, path, fields); });
}

} // namespace DNDS::Geom
