#include "DNDS/Geom/Gmsh/GmshReader.hpp"

#include "DNDS/Geom/File/ElementBlocks.hpp"
#include "DNDS/Geom/File/NodeTags.hpp"
#include "DNDS/Geom/Gmsh/GmshIndex.hpp"
#include "DNDS/Geom/Gmsh/RepeatedCells.hpp"
#include "DNDS/Geom/Source/PeriodicImages.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace DNDS::Geom {

namespace {

using Detail::GmshBlock;
using Detail::GmshElement;
using Detail::GmshGroup;
using Detail::GmshIndex;
using Detail::GmshInput;
using Detail::GmshPeriodicLink;
using Detail::largestTag;

/// This rank's share of the nodes and their tags, in file order.
struct Nodes {
    std::vector<index> tags;
    std::vector<std::array<real, 3>> coordinates;
};

/// This rank's share of the elements, of all dimensions.
struct Elements {
    ElementBlock block;          ///< nodes are tags first, numbers later
    std::vector<index> entities; ///< the point, curve, surface or volume that each belongs to
    std::vector<index> groups;   ///< version 2: the physical group of each, 0 for none
    std::vector<index> pieces;   ///< partitioned meshes: the piece of the entity, or `separator`; else empty
    /// [own elements] positions in the file, for messages about missing nodes.
    std::vector<FilePlace> places;

    /// Marks faces between parts of a partitioned mesh: they are no boundary.
    static constexpr index separator = InvalidIndex;
    bool separating(std::size_t element) const { return !pieces.empty() && pieces[element] == separator; }

    void reserve(std::size_t count) {
        for (std::vector<index> *list : {&block.fileIds, &entities, &groups})
            list->reserve(count);
        block.types.reserve(count);
        block.starts.reserve(count + 1);
        places.reserve(count);
    }
    int dimension(index element) const { return elementInfo(block.types[static_cast<std::size_t>(element)]).dimension; }
};

/// O(own nodes) time. Tags and coordinates stay aligned: both lists are appended in the order of the segments.
class NodeReader {
  public:
    NodeReader(GmshInput &input, Nodes &nodes) : input_(input), nodes_(nodes) {}

    /// In long blocks of version 4.1, tags and coordinates are far apart in the file: reads first all tags, then all
    /// coordinates.
    void read(std::span<const FileSegment> segments) {
        for (std::size_t first = 0; first < segments.size();) {
            std::size_t last = first;
            for (; last < segments.size() && isPart(segments[last]); last++) {
                input_.cursor().moveTo(segments[last].place);
                readTags(segments[last].count);
            }
            for (; first < last; first++) {
                input_.cursor().moveTo(segments[first].secondPlace);
                readPoints(segments[first].count, segments[first].type);
            }
            if (first < segments.size())
                read(segments[first++]);
        }
    }

  private:
    bool isPart(const FileSegment &segment) const { return input_.format().version41() && segment.inBlock > 0; }

    /// A segment is a part of one long block, whose header is known (`inBlock` > 0), or short blocks with their
    /// headers.
    void read(const FileSegment &segment) {
        input_.cursor().moveTo(segment.place);
        GmshBlock block;
        block.type = segment.type;
        block.count = segment.count;
        for (index left = segment.count; left > 0; left -= block.count) {
            if (segment.inBlock == 0)
                block = Detail::readNodeHeader(input_, left);
            if (input_.format().version41())
                readTags(block.count);
            readPoints(block.count, block.type);
        }
    }

    void readTags(index count) {
        for (index i = 0; i < count; i++) {
            input_.beginRecord("the tag of a node");
            nodes_.tags.push_back(input_.size41("the tag of a node"));
            input_.endRecord();
        }
    }

    /// In versions before 4.1 each tag stands before its coordinates.
    void readPoints(index count, index parameters) {
        const bool tagged = !input_.format().version41();
        for (index i = 0; i < count; i++) {
            input_.beginRecord(tagged ? "a node" : "the coordinates of a node");
            if (tagged)
                nodes_.tags.push_back(input_.size41("the tag of a node"));
            for (real &coordinate : nodes_.coordinates.emplace_back())
                coordinate = input_.number("a coordinate");
            for (index k = 0; k < parameters; k++)
                input_.number("a parameter");
            input_.endRecord();
        }
    }

    GmshInput &input_;
    Nodes &nodes_;
};

/// Reads segments into `elements`, nodes in the order of the CGNS standard but still as tags.
class ElementReader {
  public:
    ElementReader(GmshInput &input, Elements &elements) : input_(input), elements_(elements) {}

    /// Version 2 text has no blocks. `segment.tag` is the entity or, in version 2 binary, the number of tags of an
    /// element.
    void read(const FileSegment &segment) {
        input_.cursor().moveTo(segment.place);
        if (!input_.format().version4() && !input_.format().binary) {
            for (index i = 0; i < segment.count; i++)
                readLine2();
            return;
        }
        GmshBlock block;
        block.tag = segment.tag;
        block.type = segment.type;
        block.tags = input_.format().version4() ? 0 : segment.tag;
        block.count = segment.inBlock;
        for (index left = segment.count; left > 0;) {
            if (segment.inBlock == 0)
                block = Detail::readElementHeader(input_, left);
            const index count = std::min(left, block.count);
            for (index i = 0; i < count; i++)
                readElement(block);
            left -= count;
        }
    }

  private:
    // Version 2 text: number, type, tags, nodes in one line.
    void readLine2() {
        input_.beginRecord("an element");
        place_ = input_.cursor().linePlace();
        const index tag = input_.size41("the tag of an element");
        const index type = input_.integer("the type of an element", -largestTag, largestTag);
        const GmshElement *element = Detail::gmshElement(type);
        if (element == nullptr)
            input_.cursor().fail(fmt::format("element {} is of type {}, which is not supported: {}", tag,
                                             Detail::gmshTypeText(type), Detail::onlySecondOrder));
        const auto [group, entity] = readTags2(input_.integer("the number of tags", 0, 1000));
        add(*element, tag, group, entity);
        input_.endRecord();
    }

    /// Version 2: the physical group, the entity, and numbers of partitions.
    std::pair<index, index> readTags2(index count) {
        std::array<index, 2> values{};
        for (index k = 0; k < count; k++) {
            const index value = input_.integer("a tag of an element", -largestTag, largestTag);
            if (k < 2)
                values[static_cast<std::size_t>(k)] = std::abs(value);
        }
        return {values[0], values[1]};
    }

    // In blocks only number and nodes remain, and in version 2 the tags.
    void readElement(const GmshBlock &block) {
        input_.beginRecord("an element");
        place_ = input_.format().binary ? input_.cursor().place() : input_.cursor().linePlace();
        const index tag = input_.size41("the tag of an element");
        std::pair<index, index> tags{0, block.tag};
        if (!input_.format().version4())
            tags = readTags2(block.tags);
        add(*Detail::gmshElement(block.type), tag, tags.first, tags.second);
        input_.endRecord();
    }

    // Nodes are reordered to the CGNS standard; they are tags until findNodes.
    void add(const GmshElement &element, index tag, index group, index entity) {
        std::array<index, 27> nodes{};
        const auto count = static_cast<std::size_t>(elementInfo(element.type).nodes);
        for (std::size_t k = 0; k < count; k++)
            nodes[k] = input_.size41("a node of an element");
        std::array<index, 27> ordered = nodes;
        for (std::size_t k = 0; k < element.order.size(); k++)
            ordered[k] = nodes[element.order[k]];
        appendElement(elements_.block, element.type, std::span<const index>(ordered).first(count), tag);
        elements_.entities.push_back(entity);
        elements_.groups.push_back(group);
        elements_.places.push_back(place_);
    }

    GmshInput &input_;
    Elements &elements_;
    FilePlace place_;
};

/// Rotation and translation of an affine map; empty if it is anything else.
/// Checks that the 3 x 3 part is orthogonal and not a reflection.
std::optional<PeriodicTransform> rigidTransform(const std::array<real, 16> &map) {
    const auto r = [&](std::size_t row, std::size_t column) { return map[4 * row + column]; };
    for (std::size_t i = 0; i < 3; i++)
        for (std::size_t j = 0; j < 3; j++) {
            real product = 0;
            for (std::size_t k = 0; k < 3; k++)
                product += r(i, k) * r(j, k);
            if (!(std::abs(product - (i == j ? 1.0 : 0.0)) < 1e-6))
                return {};
        }
    const real determinant = r(0, 0) * (r(1, 1) * r(2, 2) - r(1, 2) * r(2, 1)) -
                             r(0, 1) * (r(1, 0) * r(2, 2) - r(1, 2) * r(2, 0)) +
                             r(0, 2) * (r(1, 0) * r(2, 1) - r(1, 1) * r(2, 0));
    if (determinant < 0)
        return {};
    PeriodicTransform transform;
    transform.angles = anglesOf({r(0, 0), r(0, 1), r(0, 2), r(1, 0), r(1, 1), r(1, 2), r(2, 0), r(2, 1), r(2, 2)});
    transform.translation = {r(0, 3), r(1, 3), r(2, 3)};
    return transform;
}

/// Determines the patches and periodic sides of faces.
/// Patches are numbered by the union of keys of all ranks, ascending, so that all ranks agree. Faces of periodic
/// links belong to no patch.
/// One reduction and up to two unions of keys; keys are entities or groups, so the lists have O(patches) words.
/// O(log patches) a face.
class FaceMarker {
  public:
    FaceMarker(CommunicatorView comm, const GmshIndex &gmsh, const Elements &elements, SourceMesh &mesh)
        : gmsh_(gmsh), elements_(elements), faceDimension_(mesh.cellDimension - 1) {
        addConnections(comm, mesh);
        addPatches(comm, mesh);
    }

    /// The marks of an element, which must be a face.
    const std::vector<int> &marksOf(index element) {
        marks_.clear();
        const index entity = elements_.entities[static_cast<std::size_t>(element)];
        if (const auto sides = sides_.find(entity); sides != sides_.end()) {
            marks_ = sides->second;
            return marks_;
        }
        forEachKey(element, [&](index key) { marks_.push_back(patches_.at(key)); });
        return marks_;
    }

  private:
    /// Gmsh saves links even where it does not save their elements: such links would connect nothing.
    void addConnections(CommunicatorView comm, SourceMesh &mesh) {
        if (gmsh_.links.empty())
            return;
        std::vector<index> entities;
        for (index element = 0; element < elements_.block.size(); element++)
            if (elements_.dimension(element) == faceDimension_)
                entities.push_back(elements_.entities[static_cast<std::size_t>(element)]);
        const std::vector<index> withFaces = unionOfAll(comm, std::move(entities));
        for (const GmshPeriodicLink &link : gmsh_.links) {
            if (link.dimension != faceDimension_)
                continue;
            if (link.master == link.entity) {
                mesh.warnings.push_back(
                    fmt::format("{}: the periodic link of entity {} to itself is left out", mesh.origin, link.entity));
                continue;
            }
            bool empty = false;
            for (const index entity : {link.master, link.entity})
                if (!empty && !std::binary_search(withFaces.begin(), withFaces.end(), entity)) {
                    empty = true;
                    mesh.warnings.push_back(fmt::format(
                        "{}: the periodic link from entity {} to {} is left out: entity {} has no {} elements in the "
                        "file; save it with all elements (Mesh.SaveAll = 1, or a physical group of both)",
                        mesh.origin, link.master, link.entity, entity, faceDimension_ == 1 ? "line" : "surface"));
                }
            if (empty)
                continue;
            const auto transform = link.known ? rigidTransform(link.map) : std::nullopt;
            if (!transform) {
                mesh.warnings.push_back(fmt::format(
                    "{}: the periodic link from entity {} to {} is left out: its map is not given or is not rigid",
                    mesh.origin, link.master, link.entity));
                continue;
            }
            const auto connection = static_cast<int>(mesh.periodic.size());
            mesh.periodic.push_back({fmt::format("periodic_{}_{}", link.master, link.entity), *transform});
            // Gmsh's map moves the master onto the entity: the master is side 0.
            sides_[link.master].push_back(-1 - 2 * connection);
            sides_[link.entity].push_back(-1 - (2 * connection + 1));
        }
    }

    /// The groups of a face, or its entity if no face has a group.
    template <class Visit>
    void forEachKey(index element, Visit &&visit) const {
        const auto e = static_cast<std::size_t>(element);
        if (elements_.separating(e))
            return;
        if (!grouped_) {
            visit(elements_.entities[e]);
            return;
        }
        if (!gmsh_.format.version4()) {
            if (elements_.groups[e] != 0)
                visit(elements_.groups[e]);
            return;
        }
        const auto visitGroups = [&](index entity) {
            const GmshGroup lowest{faceDimension_, entity, 0};
            bool any = false;
            for (auto at = std::lower_bound(gmsh_.groups.begin(), gmsh_.groups.end(), lowest);
                 at != gmsh_.groups.end() && at->dimension == faceDimension_ && at->entity == entity; ++at) {
                visit(at->group);
                any = true;
            }
            return any;
        };
        // The parent has the groups of the model; its pieces may have one for each part.
        if (!visitGroups(elements_.entities[e]) && !elements_.pieces.empty())
            visitGroups(elements_.pieces[e]);
    }

    /// Whether any face has a group decides for all faces, on all ranks.
    void addPatches(CommunicatorView comm, SourceMesh &mesh) {
        const auto forEachFace = [&](auto &&visit) {
            for (index element = 0; element < elements_.block.size(); element++)
                if (elements_.dimension(element) == faceDimension_ &&
                    sides_.count(elements_.entities[static_cast<std::size_t>(element)]) == 0)
                    forEachKey(element, visit);
        };
        // Two passes: whether any face of any rank has a group decides which keys the second one collects.
        int found = 0;
        grouped_ = true;
        forEachFace([&](index) { found = 1; });
        grouped_ = comm.allReduce(found, MPI_MAX) == 1;

        std::vector<index> keys;
        forEachFace([&](index key) {
            if (keys.empty() || keys.back() != key)
                keys.push_back(key);
        });
        for (const index key : unionOfAll(comm, std::move(keys))) {
            std::string name = nameOf(key); // groups of one name are one patch
            const auto known = std::ranges::find(mesh.patches, name, &BoundaryPatch::name);
            patches_[key] = static_cast<int>(known - mesh.patches.begin());
            if (known == mesh.patches.end())
                mesh.patches.push_back({std::move(name), "", ""});
        }
    }

    // The name that the file gives to a group of this dimension, or one made of its tag.
    std::string nameOf(index key) const {
        if (!grouped_)
            return fmt::format("entity_{}", key);
        for (std::size_t i = 0; i < gmsh_.named.size(); i++)
            if (gmsh_.named[i][1] == key && !gmsh_.names[i].empty() &&
                (gmsh_.named[i][0] == faceDimension_ || gmsh_.named[i][0] == Detail::anyDimension))
                return gmsh_.names[i];
        return fmt::format("physical_{}", key);
    }

    const GmshIndex &gmsh_;
    const Elements &elements_;
    int faceDimension_;
    bool grouped_ = false;
    std::map<index, std::vector<int>> sides_; ///< entity -> marks of its periodic sides
    std::map<index, int> patches_;
    std::vector<int> marks_;
};

/// Replaces the pieces that elements of a partitioned mesh name by the curves or surfaces that they are part of. Local.
/// O(own elements log pieces).
void findParents(const GmshIndex &gmsh, Elements &elements) {
    if (gmsh.pieces.empty())
        return;
    elements.pieces = elements.entities;
    for (index e = 0; e < elements.block.size(); e++) {
        const auto i = static_cast<std::size_t>(e);
        const Detail::GmshPiece wanted{elements.dimension(e), elements.entities[i], 0, 0};
        const auto found = std::lower_bound(gmsh.pieces.begin(), gmsh.pieces.end(), wanted);
        if (found == gmsh.pieces.end() || wanted < *found)
            continue;
        if (found->separates())
            elements.pieces[i] = Elements::separator;
        else if (found->parentDimension == found->dimension)
            elements.entities[i] = found->parent;
    }
}

/// Replaces tags of nodes by numbers. Collective. The tags are kept until all are found, so that a message can quote a
/// missing one with its element's place.
/// numberTags costs O(own nodes + own references) memory; the copy of the tags here is as long as the list of
/// nodes. An element without a node is reported at its place in the file by the rank that has it.
void findNodes(CommunicatorView comm, const MeshFile &file, const GmshIndex &gmsh, const Nodes &nodes, index firstNode,
               Elements &elements) {
    const std::vector<index> tags = elements.block.nodes;
    numberTags(comm, nodes.tags, firstNode, elements.block.nodes, file.path());
    comm.guarded([&] {
        const ElementBlock &block = elements.block;
        for (index e = 0; e < block.size(); e++)
            for (const index &node : block.nodesOf(e)) {
                if (node != InvalidIndex)
                    continue;
                FileCursor cursor(file, elements.places[static_cast<std::size_t>(e)]);
                if (gmsh.format.binary)
                    cursor.countBytes();
                cursor.fail(fmt::format("element {} refers to node {}, which is not in $Nodes",
                                        block.fileIds[static_cast<std::size_t>(e)],
                                        tags[static_cast<std::size_t>(&node - block.nodes.data())]));
            }
    });
}

/// Rank 0 indexes the file and broadcasts the index; ranks read their shares of nodes and elements; tags become
/// numbers; ranks agree on the dimension of cells and on patches; elements are sorted into cells and faces.
SourceMesh readParts(CommunicatorView comm, const std::string &path) {
    std::optional<MeshFile> file;
    comm.guarded([&] { file.emplace(path); });
    GmshIndex gmsh;
    onRankZero(comm, [&] { gmsh = Detail::indexGmsh(*file, comm.size()); });
    Detail::broadcastIndex(comm, gmsh);

    Nodes nodes;
    Elements elements;
    GmshInput input(*file, gmsh.format);
    if (gmsh.format.binary)
        input.cursor().countBytes();
    // One agreement per list, so that the first error of the file is named on any number of ranks.
    comm.guarded([&] {
        NodeReader nodeReader(input, nodes);
        const auto nodeSegments = ownSegments(gmsh.nodeSegments, gmsh.nodes, comm);
        nodes.tags.reserve(entriesOf(nodeSegments));
        nodes.coordinates.reserve(entriesOf(nodeSegments));
        nodeReader.read(nodeSegments);
    });
    comm.guarded([&] {
        ElementReader elementReader(input, elements);
        const auto elementSegments = ownSegments(gmsh.elementSegments, gmsh.elements, comm);
        elements.reserve(entriesOf(elementSegments));
        for (const FileSegment &segment : elementSegments)
            elementReader.read(segment);
    });

    SourceMesh mesh;
    mesh.origin = path;
    mesh.warnings = gmsh.warnings;
    // A rank may have read no element of the highest dimension.
    for (index e = 0; e < elements.block.size(); e++)
        mesh.cellDimension = std::max(mesh.cellDimension, elements.dimension(e));
    mesh.cellDimension = comm.allReduce(mesh.cellDimension, MPI_MAX);
    comm.guarded([&] {
        DNDS_CHECK(mesh.cellDimension >= 2, DataError, "{} has no cells: no elements of two or three dimensions", path);
    });
    mesh.coordinates = std::move(nodes.coordinates);
    numberNodes(comm, mesh);
    findNodes(comm, *file, gmsh, nodes, mesh.firstNode, elements);

    comm.guarded([&] { findParents(gmsh, elements); });
    // Patches first, as marks are their numbers.
    FaceMarker marker(comm, gmsh, elements, mesh);
    std::vector<index> entities, groups; // of cells
    for (index e = 0; e < elements.block.size(); e++) {
        const auto i = static_cast<std::size_t>(e);
        if (elements.dimension(e) == mesh.cellDimension) {
            appendElement(mesh.cells, elements.block.types[i], elements.block.nodesOf(e), elements.block.fileIds[i]);
            entities.push_back(elements.entities[i]);
            groups.push_back(elements.groups[i]);
        }
        if (elements.dimension(e) == mesh.cellDimension - 1)
            for (const int mark : marker.marksOf(e)) {
                appendElement(mesh.faces, elements.block.types[i], elements.block.nodesOf(e),
                              elements.block.fileIds[i]);
                mesh.faceMarks.push_back(mark);
            }
    }
    numberBlock(comm, mesh.cells);
    numberBlock(comm, mesh.faces);
    // Only cells: a face is listed once for each of its marks.
    if (!gmsh.format.version4() && Detail::mayRepeat(comm, entities, groups))
        if (const index dropped = Detail::dropRepeated(comm, mesh.cells); dropped > 0)
            mesh.notes.push_back(
                fmt::format("{}: {} cells that are listed again, for another of their groups, are left "
                            "out",
                            path, dropped));
    return mesh;
}

} // namespace

SourceMesh readGmsh(CommunicatorView comm, const std::string &path) {
    return failTogether(comm, [&] { return readParts(comm, path); });
}

} // namespace DNDS::Geom
