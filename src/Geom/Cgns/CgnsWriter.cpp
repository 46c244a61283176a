#include "Geom/Cgns/CgnsWriter.hpp"

#include "Geom/Cgns/CgnsOutput.hpp"
#include "Geom/Cgns/FaceNumbering.hpp"
#include "Geom/Cgns/InOrder.hpp"
#include "Geom/File/ElementList.hpp"
#include "Geom/File/FileSegments.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <optional>
#include <set>
#include <utility>

namespace DNDS::Geom {

namespace {

using Detail::CgnsOutput;
using Detail::FaceList;
using Detail::NumberedFaces;
using Node = CgnsOutput::Node;
using Type = CgnsOutput::Type;

/// Names of nodes: at most 32 characters, no '/', each once.
class NodeNames {
  public:
    std::string make(std::string name) {
        constexpr std::size_t longest = 32;
        std::replace(name.begin(), name.end(), '/', '_');
        name = name.empty() ? "unnamed" : name.substr(0, longest);
        for (int k = 2; !used_.insert(name).second; k++) {
            const std::string end = fmt::format("_{}", k);
            name = name.substr(0, longest - end.size()) + end;
        }
        return name;
    }

  private:
    std::set<std::string> used_;
};

/// A section of elements: those of one type, MIXED, NGON_n or NFACE_n.
struct Section {
    std::string name;
    ElementType type = ElementType::Mixed;
    index elements = 0; ///< of all ranks
    std::vector<index> connectivity;
    std::vector<index> starts{0}; ///< [own + 1]
};

/// A face list may repeat a face with other marks; it becomes an element once.
struct FaceElements {
    ElementBlock block;
    std::vector<index> elementOf; ///< [own listed faces]: position in `block`
};

FaceElements uniqueFaces(CommunicatorView comm, const ElementBlock &faces) {
    FaceElements result;
    for (index f = 0; f < faces.size(); f++) {
        const auto i = static_cast<std::size_t>(f);
        const auto nodes = faces.nodesOf(f);
        const auto last = result.block.size() > 0 ? result.block.nodesOf(result.block.size() - 1) : nodes.first(0);
        if (!std::equal(nodes.begin(), nodes.end(), last.begin(), last.end()))
            appendElement(result.block, faces.types[i], nodes, faces.fileIds[i]);
        result.elementOf.push_back(result.block.size() - 1);
    }
    numberBlock(comm, result.block);
    return result;
}

std::span<const index> cornersOf(const ElementBlock &block, index element) {
    const auto nodes = block.nodesOf(element);
    const ElementInfo &info = elementInfo(block.types[static_cast<std::size_t>(element)]);
    return info.corners > 0 ? nodes.first(static_cast<std::size_t>(info.corners)) : nodes;
}

/// Appends the faces of a cell, corners only, seen from outside counter-clockwise; returns how many.
index appendFaces(const ElementBlock &cells, index cell, FaceList &faces) {
    const auto nodes = cells.nodesOf(cell);
    const ElementType type = cells.types[static_cast<std::size_t>(cell)];
    index count = 0;
    if (type == ElementType::Polyhedron) {
        for (std::size_t at = 0; at < nodes.size(); at += static_cast<std::size_t>(nodes[at]) + 1, count++) {
            DNDS_CHECK(nodes[at] >= 3 && nodes[at] < static_cast<index>(nodes.size() - at), ArgumentError,
                       "own cell {} lists a face of {} corners", cell, nodes[at]);
            faces.append(nodes.subspan(at + 1, static_cast<std::size_t>(nodes[at])));
        }
        return count;
    }
    for (const ElementFace &face : elementInfo(type).faces) {
        std::array<index, 4> corners{};
        for (std::size_t k = 0; k < static_cast<std::size_t>(face.corners); k++)
            corners[k] = nodes[face.corner[k]];
        faces.append(std::span<const index>(corners).first(static_cast<std::size_t>(face.corners)));
        count++;
    }
    return count;
}

bool has(const ElementBlock &block, ElementType type) {
    return std::find(block.types.begin(), block.types.end(), type) != block.types.end();
}

class Writer {
  public:
    Writer(CommunicatorView comm, const std::string &path, const SourceMesh &mesh, const CgnsWriteOptions &options)
        : context_(CommunicatorContext::of(comm)), comm_(comm), path_(path), mesh_(mesh), options_(options) {}

    void write(std::span<const FieldSlice> pointFields, std::span<const FieldSlice> cellFields) {
        comm_.guarded([&] {
            for (const FieldSlice &field : pointFields)
                checkField(field, mesh_.nodes(), "point");
            for (const FieldSlice &field : cellFields)
                checkField(field, mesh_.cells.size(), "cell");
        });
        needSameFields(comm_, pointFields, cellFields);
        faces_ = uniqueFaces(comm_, mesh_.faces);
        makeSections();
        chooseType();
        const std::string temporary = path_ + ".part";
        onFirst([&] { output_.emplace(temporary, options_.fileType == CgnsFileType::Hdf5); });
        writeHead();
        writeCoordinates();
        index first = 1;
        for (const Section &section : sections_) {
            writeSection(section, first);
            first += section.elements;
        }
        writeConditions();
        writeFields("FlowSolution", "CellCenter", cellFields, mesh_.cells.globalSize);
        writeFields("FlowSolutionVertex", "Vertex", pointFields, mesh_.globalNodes);
        onFirst([&] {
            output_->close();
            DNDS_CHECK(std::rename(temporary.c_str(), path_.c_str()) == 0, DataError, "{} cannot be renamed to {}",
                       temporary, path_);
        });
    }

  private:
    template <class Body>
    void onFirst(Body &&body) {
        comm_.guarded([&] {
            if (comm_.rank() == 0)
                body();
        });
    }

    index total(std::size_t own) const { return comm_.allReduce(static_cast<index>(own), MPI_SUM); }

    void makeSections() {
        if (comm_.allReduce(has(mesh_.cells, ElementType::Polyhedron) ? 1 : 0, MPI_MAX) == 1) {
            makePolyhedralSections();
            return;
        }
        addSection("Cells", mesh_.cells);
        addSection("Faces", faces_.block);
        for (const index element : faces_.elementOf)
            faceElements_.push_back(mesh_.cells.globalSize + 1 + faces_.block.first + element);
    }

    void addSection(const char *name, const ElementBlock &block) {
        if (block.globalSize == 0)
            return;
        int lowest = std::numeric_limits<int>::max();
        int highest = 0;
        for (const ElementType type : block.types) {
            lowest = std::min(lowest, static_cast<int>(type));
            highest = std::max(highest, static_cast<int>(type));
        }
        lowest = comm_.allReduce(lowest, MPI_MIN);
        highest = comm_.allReduce(highest, MPI_MAX);
        const bool polygons = comm_.allReduce(has(block, ElementType::Polygon) ? 1 : 0, MPI_MAX) == 1;
        Section section;
        section.name = name;
        section.elements = block.globalSize;
        section.type = polygons            ? ElementType::Polygon
                       : lowest == highest ? static_cast<ElementType>(lowest)
                                           : ElementType::Mixed;
        for (index e = 0; e < block.size(); e++) {
            if (section.type == ElementType::Mixed)
                section.connectivity.push_back(static_cast<index>(block.types[static_cast<std::size_t>(e)]));
            for (const index node : polygons ? cornersOf(block, e) : block.nodesOf(e))
                section.connectivity.push_back(node + 1);
            section.starts.push_back(static_cast<index>(section.connectivity.size()));
        }
        sections_.push_back(std::move(section));
    }

    /// NGON_n has the faces, each as the first of its cells lists it; NFACE_n the cells.
    void makePolyhedralSections() {
        FaceList ofCells;
        std::vector<index> counts;
        comm_.guarded([&] {
            for (index c = 0; c < mesh_.cells.size(); c++)
                counts.push_back(appendFaces(mesh_.cells, c, ofCells));
        });
        FaceList ofBoundary;
        for (index f = 0; f < faces_.block.size(); f++)
            ofBoundary.append(cornersOf(faces_.block, f));
        const NumberedFaces numbered = numberFaces(*context_, ofCells, ofBoundary, mesh_.origin);

        Section faces;
        faces.name = "Faces";
        faces.type = ElementType::Polygon;
        faces.elements = numbered.globalSize;
        for (std::size_t f = 0; f < ofCells.size(); f++) {
            if (!numbered.listedFirst[f])
                continue;
            for (const index corner : ofCells.face(f))
                faces.connectivity.push_back(corner + 1);
            faces.starts.push_back(static_cast<index>(faces.connectivity.size()));
        }
        Section cells;
        cells.name = "Cells";
        cells.type = ElementType::Polyhedron;
        cells.elements = mesh_.cells.globalSize;
        std::size_t f = 0;
        for (const index count : counts) {
            for (const std::size_t end = f + static_cast<std::size_t>(count); f < end; f++)
                cells.connectivity.push_back(numbered.listedFirst[f] ? numbered.ofCells[f] + 1
                                                                     : -(numbered.ofCells[f] + 1));
            cells.starts.push_back(static_cast<index>(cells.connectivity.size()));
        }
        sections_.push_back(std::move(faces));
        sections_.push_back(std::move(cells));
        for (const index element : faces_.elementOf)
            faceElements_.push_back(numbered.ofBoundary[static_cast<std::size_t>(element)] + 1);
    }

    /// 32 bits where all numbers fit.
    void chooseType() {
        index largest = mesh_.globalNodes;
        index elements = 0;
        for (const Section &section : sections_) {
            elements += section.elements;
            largest = std::max({largest, elements, total(section.connectivity.size())});
        }
        integers_ = largest < std::numeric_limits<std::int32_t>::max() ? Type::Int32 : Type::Int64;
    }

    void writeHead() {
        onFirst([&] {
            output_->addVersion(3.4F);
            base_ = output_->addIntegers(output_->root(), NodeNames().make(options_.base), "CGNSBase_t", Type::Int32,
                                         {mesh_.cellDimension, mesh_.physicalDimension});
            std::set<std::string> families;
            NodeNames names;
            zone_ = output_->addIntegers(base_, names.make(options_.zone), "Zone_t", integers_,
                                         {mesh_.globalNodes, mesh_.cells.globalSize, 0}, true);
            output_->addText(zone_, "ZoneType", "ZoneType_t", "Unstructured");
            for (const BoundaryPatch &patch : mesh_.patches)
                if (!patch.family.empty() && families.insert(patch.family).second)
                    output_->add(base_, names.make(patch.family), "Family_t");
        });
    }

    /// An array of all ranks' values.
    template <class T>
    void writeArray(Node parent, const std::string &name, const char *label, Type type, const std::vector<T> &values,
                    bool row = false) {
        Node array = 0;
        const index length = total(values.size());
        onFirst([&] { array = output_->addArray(parent, name, label, type, length, row); });
        index done = 0;
        Detail::streamToFirstRank(*context_, std::as_bytes(std::span<const T>(values)), sizeof(T),
                                  [&](std::span<const std::byte> piece) {
                                      const auto count = static_cast<index>(piece.size() / sizeof(T));
                                      output_->write(array, done, count, piece.data(), row);
                                      done += count;
                                  });
    }

    void writeIntegers(Node parent, const std::string &name, const char *label, const std::vector<index> &values,
                       bool row = false) {
        if (integers_ == Type::Int64)
            writeArray(parent, name, label, integers_, values, row);
        else
            writeArray(parent, name, label, integers_, std::vector<std::int32_t>(values.begin(), values.end()), row);
    }

    void writeCoordinates() {
        Node coordinates = 0;
        onFirst([&] { coordinates = output_->add(zone_, "GridCoordinates", "GridCoordinates_t"); });
        std::vector<real> values(mesh_.coordinates.size());
        constexpr std::array<const char *, 3> names{"CoordinateX", "CoordinateY", "CoordinateZ"};
        for (std::size_t d = 0; d < static_cast<std::size_t>(mesh_.physicalDimension); d++) {
            std::transform(mesh_.coordinates.begin(), mesh_.coordinates.end(), values.begin(),
                           [&](const auto &point) { return point[d]; });
            writeArray(coordinates, names[d], "DataArray_t", Type::Real, values);
        }
    }

    void writeSection(const Section &section, index first) {
        Node node = 0;
        onFirst([&] {
            node = output_->addIntegers(zone_, section.name, "Elements_t", Type::Int32,
                                        {static_cast<index>(section.type), 0});
            output_->addIntegers(node, "ElementRange", "IndexRange_t", integers_,
                                 {first, first + section.elements - 1});
        });
        writeIntegers(node, "ElementConnectivity", "DataArray_t", section.connectivity);
        if (elementInfo(section.type).nodes > 0)
            return;
        const index before = sumBefore(comm_, static_cast<index>(section.connectivity.size()));
        std::vector<index> offsets(section.starts.begin() + (comm_.rank() == 0 ? 0 : 1), section.starts.end());
        for (index &offset : offsets)
            offset += before;
        writeIntegers(node, "ElementStartOffset", "DataArray_t", offsets);
    }

    void writeConditions() {
        Node parent = 0;
        onFirst([&] { parent = output_->add(zone_, "ZoneBC", "ZoneBC_t"); });
        NodeNames names;
        for (std::size_t p = 0; p < mesh_.patches.size(); p++)
            writeCondition(parent, names, mesh_.patches[p], static_cast<int>(p));
        for (std::size_t c = 0; c < mesh_.periodic.size(); c++)
            for (int side = 0; side < 2; side++)
                writeCondition(parent, names, {mesh_.periodic[c].name + (side == 0 ? "_first" : "_second"), "", ""},
                               -1 - (2 * static_cast<int>(c) + side));
    }

    void writeCondition(Node parent, NodeNames &names, const BoundaryPatch &patch, int mark) {
        std::vector<index> elements;
        for (std::size_t f = 0; f < faceElements_.size(); f++)
            if (mesh_.faceMarks[f] == mark)
                elements.push_back(faceElements_[f]);
        writePoints(parent, names, patch, mesh_.cellDimension == 2 ? "EdgeCenter" : "FaceCenter", elements);
        std::vector<index> nodes;
        for (const SourceMesh::NodeMark &nodeMark : mesh_.nodeMarks)
            if (nodeMark.mark == mark)
                nodes.push_back(nodeMark.node + 1);
        writePoints(parent, names, patch, "Vertex", nodes);
    }

    void writePoints(Node parent, NodeNames &names, const BoundaryPatch &patch, const char *location,
                     const std::vector<index> &points) {
        if (total(points.size()) == 0)
            return;
        const std::string name = names.make(patch.name);
        Node node = 0;
        onFirst([&] {
            node = output_->addText(parent, name, "BC_t", patch.kind.empty() ? "UserDefined" : patch.kind);
            output_->addText(node, "GridLocation", "GridLocation_t", location);
            if (!patch.family.empty())
                output_->addText(node, "FamilyName", "FamilyName_t", patch.family);
        });
        writeIntegers(node, "PointList", "IndexArray_t", points, true);
    }

    void writeFields(const char *name, const char *location, std::span<const FieldSlice> fields, index rows) {
        if (fields.empty() || rows == 0)
            return;
        Node solution = 0;
        onFirst([&] {
            solution = output_->add(zone_, name, "FlowSolution_t");
            output_->addText(solution, "GridLocation", "GridLocation_t", location);
        });
        NodeNames names;
        names.make("GridLocation");
        for (const FieldSlice &field : fields) {
            const auto components = static_cast<std::size_t>(field.components);
            std::vector<real> values(field.values.size() / components);
            for (std::size_t c = 0; c < components; c++) {
                for (std::size_t row = 0; row < values.size(); row++)
                    values[row] = field.values[row * components + c];
                const std::string end = components == 1   ? ""
                                        : components == 3 ? std::string(1, "XYZ"[c])
                                                          : std::to_string(c + 1);
                const std::string array = names.make(field.name.substr(0, 32 - end.size()) + end);
                writeArray(solution, array, "DataArray_t", Type::Real, values);
            }
        }
    }

    std::shared_ptr<CommunicatorContext> context_;
    CommunicatorView comm_;
    const std::string &path_;
    const SourceMesh &mesh_;
    const CgnsWriteOptions &options_;
    FaceElements faces_;
    std::vector<index> faceElements_; ///< [own listed faces]: the file's number of the element
    std::vector<Section> sections_;
    Type integers_ = Type::Int32;
    std::optional<CgnsOutput> output_; ///< on rank 0
    Node base_ = 0;
    Node zone_ = 0;
};

} // namespace

void writeCgns(CommunicatorView comm, const std::string &path, const SourceMesh &mesh,
               std::span<const FieldSlice> pointFields, std::span<const FieldSlice> cellFields,
               const CgnsWriteOptions &options) {
    Writer(comm, path, mesh, options).write(pointFields, cellFields);
}

} // namespace DNDS::Geom
