#include "DNDS/Geom/Cgns/Cgns.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Cgns/CgnsOutput.hpp"
#include "DNDS/Geom/Cgns/InOrder.hpp"
#include "DNDS/Geom/Cgns/PeriodicPairs.hpp"
#include "DNDS/Geom/Cgns/TreeNode.hpp"
#include "DNDS/Geom/Cgns/WrittenElements.hpp"
#include "DNDS/Geom/Source/PeriodicImages.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"
#include "DNDS/Index/SortUnique.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace DNDS::Geom {

namespace {

using Detail::CgnsOutput;
using Detail::elementsToWrite;
using Detail::pairPeriodic;
using Detail::PeriodicPairs;
using Detail::WrittenElements;
using Detail::WrittenSection;
using Node = CgnsOutput::Node;
using Type = CgnsOutput::Type;

/// Names of nodes: at most 32 characters, no '/', each once.
/// O(copies) tries for a name that repeats. Ranks that ask for the same names in the same order get the same
/// results, without messages.
class NodeNames {
  public:
    std::string make(std::string name) {
        constexpr std::size_t longest = 32;
        std::replace(name.begin(), name.end(), '/', '_');
        name = name.empty() ? "unnamed" : name.substr(0, longest);
        for (int k = 2; !used_.insert(name).second; k++) {
            const std::string end = fmt::format("_{}", k);
            name.resize(std::min(name.size(), longest - end.size()));
            name += end;
        }
        return name;
    }

  private:
    std::set<std::string> used_;
};

/// Rank 0 alone calls the library, in sections between collective calls (`onRankZero`); the other ranks stream their
/// values to it. Every member function is collective and makes the same calls on all ranks, even if a rank has
/// nothing to write.
class Writer {
  public:
    Writer(CommunicatorView comm, const std::string &path, const SourceMesh &mesh, const CgnsWriteOptions &options)
        : context_(CommunicatorContext::of(comm)), comm_(comm), path_(path), mesh_(mesh), options_(options) {}

    /// Checks first, then the file under its temporary name, which is renamed at the end: a file of the final name is
    /// always complete.
    void write(std::span<const FieldSlice> pointFields, std::span<const FieldSlice> cellFields) {
        comm_.guarded([&] {
            for (const FieldSlice &field : pointFields)
                checkField(field, mesh_.nodes(), "point");
            for (const FieldSlice &field : cellFields)
                checkField(field, mesh_.cells.size(), "cell");
            checkMarks(mesh_);
        });
        requireSameFields(comm_, pointFields, cellFields);
        elements_ = elementsToWrite(*context_, mesh_);
        pairs_ = pairPeriodic(*context_, mesh_, elements_.faceElements);
        chooseType();
        const std::string temporary = path_ + ".part";
        onRankZero(comm_, [&] { output_.emplace(temporary, options_.fileType == CgnsFileType::Hdf5); });
        writeHead();
        writeCoordinates();
        index first = 1;
        for (const WrittenSection &section : elements_.sections) {
            writeSection(section, first);
            first += section.elements;
        }
        writeConditions();
        writeConnections();
        writeFields("FlowSolution", "CellCenter", cellFields, mesh_.cells.globalSize);
        writeFields("FlowSolutionVertex", "Vertex", pointFields, mesh_.globalNodes);
        onRankZero(comm_, [&] {
            output_->close();
            DNDS_CHECK(std::rename(temporary.c_str(), path_.c_str()) == 0, DataError, "{} cannot be renamed to {}",
                       temporary, path_);
        });
    }

  private:
    index total(std::size_t own) const { return comm_.allReduce(static_cast<index>(own), MPI_SUM); }

    /// 32 bits where all numbers fit.
    /// One width for all integers of the file: the largest number that occurs anywhere decides.
    void chooseType() {
        index largest = mesh_.globalNodes;
        index elements = 0;
        for (const WrittenSection &section : elements_.sections) {
            elements += section.elements;
            largest = std::max({largest, elements, total(section.connectivity.size())});
        }
        integers_ = largest < std::numeric_limits<std::int32_t>::max() ? Type::Int32 : Type::Int64;
    }

    /// Zone_t of an unstructured zone is one row: vertices, cells, and 0 sorted boundary vertices (SIDS, section 6.3).
    void writeHead() {
        onRankZero(comm_, [&] {
            output_->addReals(output_->root(), "CGNSLibraryVersion", "CGNSLibraryVersion_t", {3.4}, false);
            zoneName_ = NodeNames().make(options_.zone);
            base_ = output_->addIntegers(output_->root(), NodeNames().make(options_.base), "CGNSBase_t", Type::Int32,
                                         {mesh_.cellDimension, mesh_.physicalDimension});
            NodeNames names;
            zone_ = output_->addIntegers(base_, names.make(zoneName_), "Zone_t", integers_,
                                         {mesh_.globalNodes, mesh_.cells.globalSize, 0}, true);
            output_->addText(zone_, "ZoneType", "ZoneType_t", "Unstructured");
            for (const BoundaryPatch &patch : mesh_.patches)
                if (!patch.family.empty() && !families_.contains(patch.family)) {
                    const std::string &name = families_.emplace(patch.family, names.make(patch.family)).first->second;
                    output_->add(base_, name, "Family_t");
                }
        });
    }

    /// An array of all ranks' values.
    /// Memory on rank 0: its own values and one piece.
    template <class T>
    void writeArray(Node parent, const std::string &name, const char *label, Type type, const std::vector<T> &values,
                    bool row = false) {
        Node array = 0;
        const index length = total(values.size());
        onRankZero(comm_, [&] { array = output_->addArray(parent, name, label, type, length, row); });
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
        onRankZero(comm_, [&] { coordinates = output_->add(zone_, "GridCoordinates", "GridCoordinates_t"); });
        // One component at a time: beside the mesh, a rank holds the values of one.
        std::vector<real> values(mesh_.coordinates.size());
        constexpr std::array<const char *, 3> names{"CoordinateX", "CoordinateY", "CoordinateZ"};
        for (std::size_t d = 0; d < static_cast<std::size_t>(mesh_.physicalDimension); d++) {
            std::transform(mesh_.coordinates.begin(), mesh_.coordinates.end(), values.begin(),
                           [&](const auto &point) { return point[d]; });
            writeArray(coordinates, names[d], "DataArray_t", Type::Real, values);
        }
    }

    /// Offsets are those of the whole list: local ones plus a prefix sum. Rank 0 writes the leading zero, all ranks
    /// their ends.
    void writeSection(const WrittenSection &section, index first) {
        Node node = 0;
        onRankZero(comm_, [&] {
            node = output_->addIntegers(zone_, section.name, "Elements_t", Type::Int32,
                                        {static_cast<index>(section.type), 0});
            output_->addIntegers(node, "ElementRange", "IndexRange_t", integers_,
                                 {first, first + section.elements - 1});
        });
        writeIntegers(node, "ElementConnectivity", "DataArray_t", section.connectivity);
        if (elementInfo(section.type).nodes > 0)
            return;
        const index before = comm_.exclusiveScan(static_cast<index>(section.connectivity.size()));
        std::vector<index> offsets(section.starts.begin() + (comm_.rank() == 0 ? 0 : 1), section.starts.end());
        for (index &offset : offsets)
            offset += before;
        writeIntegers(node, "ElementStartOffset", "DataArray_t", offsets);
    }

    // Patches first; then what periodic connections have left unpaired, so that no marked face is lost.
    void writeConditions() {
        Node parent = 0;
        onRankZero(comm_, [&] { parent = output_->add(zone_, "ZoneBC", "ZoneBC_t"); });
        NodeNames names;
        for (std::size_t p = 0; p < mesh_.patches.size(); p++)
            writeCondition(parent, names, mesh_.patches[p], static_cast<int>(p));
        const char *faces = mesh_.cellDimension == 2 ? "EdgeCenter" : "FaceCenter";
        for (std::size_t c = 0; c < mesh_.periodic.size(); c++)
            for (std::size_t side = 0; side < 2; side++) {
                const BoundaryPatch patch{mesh_.periodic[c].name + (side == 0 ? "_first" : "_second"), "", ""};
                writePoints(parent, names, patch, faces, pairs_[c].faces.alone[side]);
                writePoints(parent, names, patch, "Vertex", pairs_[c].nodes.alone[side]);
            }
    }

    /// Each connection is written twice, seen from either side, as the standard requires; readers recognise them as
    /// one.
    void writeConnections() {
        if (mesh_.periodic.empty())
            return;
        Node parent = 0;
        onRankZero(comm_, [&] { parent = output_->add(zone_, "ZoneGridConnectivity", "ZoneGridConnectivity_t"); });
        NodeNames names;
        for (std::size_t c = 0; c < mesh_.periodic.size(); c++) {
            const PeriodicConnection &there = mesh_.periodic[c];
            const PeriodicConnection back{there.name + "_back", inverseOf(there.transform)};
            const auto &[faceOwn, faceDonor] = pairs_[c].faces.paired;
            const auto &[nodeOwn, nodeDonor] = pairs_[c].nodes.paired;
            writeConnection(parent, names, there, true, faceOwn, faceDonor);
            writeConnection(parent, names, back, true, faceDonor, faceOwn);
            writeConnection(parent, names, there, false, nodeOwn, nodeDonor);
            writeConnection(parent, names, back, false, nodeDonor, nodeOwn);
        }
    }

    // Nothing is written for sides without pairs: all ranks know the total.
    void writeConnection(Node parent, NodeNames &names, const PeriodicConnection &connection, bool ofFaces,
                         const std::vector<index> &own, const std::vector<index> &donor) {
        if (total(own.size()) == 0)
            return;
        const std::string name = names.make(connection.name);
        Node node = 0;
        onRankZero(comm_, [&] {
            node = output_->addText(parent, name, "GridConnectivity_t", zoneName_);
            output_->addText(node, "GridConnectivityType", "GridConnectivityType_t", "Abutting1to1");
            output_->addText(node, "GridLocation", "GridLocation_t", ofFaces ? "FaceCenter" : "Vertex");
            const Node property = output_->add(node, "GridConnectivityProperty", "GridConnectivityProperty_t");
            const Node periodic = output_->add(property, "Periodic", "Periodic_t");
            writeTransform(periodic, connection.transform, false);
            writeTransform(output_->add(periodic, std::string(Cgns::doublePrecision), "UserDefinedData_t"),
                           connection.transform, true);
        });
        writeIntegers(node, "PointList", "IndexArray_t", own, true);
        writeIntegers(node, "PointListDonor", "IndexArray_t", donor, true);
    }

    /// The standard's arrays have single precision; user-defined ones repeat them in double.
    void writeTransform(Node parent, const PeriodicTransform &transform, bool wide) {
        const auto add = [&](const char *name, const std::array<real, 3> &values) {
            const auto count = static_cast<std::size_t>(mesh_.physicalDimension);
            output_->addReals(parent, name, "DataArray_t", {values.begin(), values.begin() + count}, wide);
        };
        const auto &angles = transform.angles;
        add("RotationCenter", transform.centre);
        // In two dimensions the only angle is about z.
        add("RotationAngle", mesh_.physicalDimension == 3 ? angles : std::array<real, 3>{angles[2], 0, 0});
        add("Translation", transform.translation);
    }

    /// Ascending from rank to rank, each once: nodes have marks on any rank. Collective.
    /// One reduction and one exchange, O(own numbers log own numbers). Each number has one home rank and homes
    /// ascend, so no duplicate survives and the concatenation of all ranks ascends.
    std::vector<index> inOrder(const std::vector<index> &numbers) const {
        const index most =
            comm_.allReduce(numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end()), MPI_MAX);
        const EvenSplit split(most + 1, comm_.size());
        Outbox outbox;
        for (const index number : numbers)
            outbox.to(split.owner(number)).push_back(number);
        return sortedUnique(sparseExchange(*context_, outbox.take()).values);
    }

    /// A patch may have faces and nodes; then it is written as two conditions. O(own marks) for each patch.
    void writeCondition(Node parent, NodeNames &names, const BoundaryPatch &patch, int mark) {
        std::vector<index> elements;
        for (std::size_t f = 0; f < elements_.faceElements.size(); f++)
            if (mesh_.faceMarks[f] == mark)
                elements.push_back(elements_.faceElements[f]);
        writePoints(parent, names, patch, mesh_.cellDimension == 2 ? "EdgeCenter" : "FaceCenter", elements);
        std::vector<index> nodes;
        for (const SourceMesh::NodeMark &nodeMark : mesh_.nodeMarks)
            if (nodeMark.mark == mark)
                nodes.push_back(nodeMark.node + 1);
        writePoints(parent, names, patch, "Vertex", inOrder(nodes));
    }

    // A condition of listed points, unless no rank has any.
    void writePoints(Node parent, NodeNames &names, const BoundaryPatch &patch, const char *location,
                     const std::vector<index> &points) {
        if (total(points.size()) == 0)
            return;
        const std::string name = names.make(patch.name);
        Node node = 0;
        onRankZero(comm_, [&] {
            if (name != patch.name)
                warn("{}: the patch '{}' is written as '{}': names in CGNS files are unique and have at most 32 "
                     "characters, none of them '/'",
                     path_, patch.name, name);
            node = output_->addText(parent, name, "BC_t", patch.kind.empty() ? "UserDefined" : patch.kind);
            output_->addText(node, "GridLocation", "GridLocation_t", location);
            if (!patch.family.empty())
                output_->addText(node, "FamilyName", "FamilyName_t", families_.at(patch.family));
        });
        writeIntegers(node, "PointList", "IndexArray_t", points, true);
    }

    /// Names are cut before the suffix, so that components stay distinct.
    void writeFields(const char *name, const char *location, std::span<const FieldSlice> fields, index rows) {
        if (fields.empty() || rows == 0)
            return;
        Node solution = 0;
        onRankZero(comm_, [&] {
            solution = output_->add(zone_, name, "FlowSolution_t");
            output_->addText(solution, "GridLocation", "GridLocation_t", location);
        });
        NodeNames names;
        names.make("GridLocation");
        for (const FieldSlice &field : fields) {
            const auto components = static_cast<std::size_t>(field.components);
            // By component: arrays of the standard are scalar.
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
    WrittenElements elements_;
    /// [periodic connections], this rank's shares.
    std::vector<PeriodicPairs> pairs_;
    Type integers_ = Type::Int32;
    /// The file, on rank 0; empty on the others.
    std::optional<CgnsOutput> output_;
    /// Nodes of the file: valid on rank 0 only.
    Node base_ = 0;
    Node zone_ = 0;
    std::string zoneName_;
    std::map<std::string, std::string> families_; ///< the name of each family's node
};

} // namespace

void writeCgns(CommunicatorView comm, const std::string &path, const SourceMesh &mesh,
               std::span<const FieldSlice> pointFields, std::span<const FieldSlice> cellFields,
               const CgnsWriteOptions &options) {
    failTogether(comm, [&] { Writer(comm, path, mesh, options).write(pointFields, cellFields); });
}

} // namespace DNDS::Geom
