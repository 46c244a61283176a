#include "DNDS/Geom/Su2/Su2Reader.hpp"

#include "DNDS/Geom/File/ElementBlocks.hpp"
#include "DNDS/Geom/File/FileSegments.hpp"
#include "DNDS/Geom/Source/MirroredElement.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

namespace DNDS::Geom {

namespace {

/// The result of rank 0's scan, which it broadcasts. Cells, nodes and faces are lists; the faces of all markers are one
/// list, with the marker in the `tag` of a segment.
struct Su2Index {
    index dimension = 0;
    index nodes = 0;
    index cells = 0;
    index faces = 0;
    std::vector<FileSegment> nodeSegments;
    std::vector<FileSegment> cellSegments;
    std::vector<FileSegment> faceSegments;
    std::vector<std::string> markers;
    std::vector<std::string> warnings;
};

/// One pass over the file by rank 0, without keeping values. `skipping_` tells lines of unknown keywords, which are
/// passed over, from surplus lines of a list, which are errors.
/// O(bytes) time, O(segments + markers) memory.
class Indexer {
  public:
    /// `zone`: the one to read of several, as text; "" if the file must have one.
    Indexer(const MeshFile &file, int ranks, std::string zone)
        : cursor_(file), ranks_(ranks), wantedZone_(std::move(zone)) {}

    Su2Index run() {
        while (cursor_.nextLine()) {
            const std::string_view line = cursor_.line();
            // Comments fill whole lines, or follow a value.
            if (line[0] == '%')
                continue;
            const std::size_t sign = line.find('=');
            if (sign == std::string_view::npos) {
                if (!skipping_)
                    cursor_.fail("expected a keyword and '='; or the list before has more lines than announced, or a "
                                 "comment inside");
                continue;
            }
            const std::string_view value = line.substr(sign + 1);
            std::string keyword(line.substr(0, line.find_last_not_of(" \t", sign - 1) + 1));
            for (char &letter : keyword)
                letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
            readKeyword(keyword, std::string(value.substr(0, value.find('%'))));
        }
        if (zones_ == 1 && !wantedZone_.empty() && wantedZone_ != "1")
            cursor_.fail(fmt::format("there is no zone '{}': the file has one, without a name", wantedZone_));
        if (zones_ > 1 && !sawZone_)
            cursor_.fail(fmt::format("the file has no IZONE= {}", wantedZone_));
        for (const auto &[seen, keyword] :
             {std::pair{sawDimension_, "NDIME="}, std::pair{sawCells_, "NELEM="}, std::pair{sawNodes_, "NPOIN="}})
            if (!seen)
                cursor_.fail(fmt::format("the file has no {}{}", keyword, tooManyAnnounced()));
        if (markersLeft_ > 0)
            cursor_.fail(fmt::format("the file ends where {} more markers should be", markersLeft_));
        return std::move(result_);
    }

  private:
    /// Lines beyond a list may have been taken for some of it.
    std::string tooManyAnnounced() const {
        if (!sawCells_ && !sawNodes_)
            return {};
        return fmt::format(", or it was taken for a line of the list before: {}= {} may be too many",
                           sawCells_ ? "NELEM" : "NPOIN", sawCells_ ? result_.cells : result_.nodes);
    }
    void readKeyword(const std::string &keyword, const std::string &value) {
        WordReader words(cursor_, value);
        // Zones first: within others all keywords are passed over.
        if (keyword == "NZONE")
            return readZoneCount(words.integer(keyword, 1, cursor_.bytesLeft() + 1));
        if (keyword == "IZONE" && zones_ > 1)
            return enterZone(words.integer(keyword, 1, zones_));
        skipping_ = otherZone_;
        if (otherZone_)
            return;
        if (keyword == "NDIME") {
            once(sawDimension_, keyword);
            result_.dimension = words.integer(keyword, 2, 3);
        } else if (keyword == "NELEM") {
            once(sawCells_, keyword);
            result_.cells = countOf(words, keyword);
            addSection(result_.cellSegments, 0, result_.cells, 0, "elements");
        } else if (keyword == "NPOIN") {
            once(sawNodes_, keyword);
            result_.nodes = countOf(words, keyword); // a second number, of nodes without halos, is passed over
            addSection(result_.nodeSegments, 0, result_.nodes, 0, "points");
        } else if (keyword == "NMARK") {
            markersLeft_ = words.integer(keyword, 0, cursor_.bytesLeft());
            sawMarkers_ = true;
        } else if (plain(keyword) == "MARKERTAG") {
            words.word("the name of a marker");
            readMarker(markerName(value));
        } else if (keyword == "NPERIODIC") {
            readPeriodic(words.integer(keyword, 0, cursor_.bytesLeft()));
        } else {
            // A file of one zone may state its number.
            skipping_ = keyword != "IZONE";
        }
    }

    // Before NZONE= a file has one zone.
    void readZoneCount(index zones) {
        if (zones > 1 && wantedZone_.empty())
            cursor_.fail(fmt::format("files of several zones are read one zone at a time: choose one from 1 to {} "
                                     "(dnds-mesh --base, CgnsOptions::base)",
                                     zones));
        if (zones > 1 && std::from_chars(wantedZone_.data(), wantedZone_.data() + wantedZone_.size(), zone_).ptr !=
                             wantedZone_.data() + wantedZone_.size())
            zone_ = 0;
        if (zones > 1 && (zone_ < 1 || zone_ > zones))
            cursor_.fail(fmt::format("there is no zone '{}': they are numbered from 1 to {}", wantedZone_, zones));
        zones_ = zones;
        otherZone_ = skipping_ = zones > 1; // until the first IZONE=
    }

    /// Sections of other zones are passed over like unknown keywords.
    void enterZone(index zone) {
        if (!otherZone_ && markersLeft_ > 0)
            cursor_.fail(fmt::format("the zone ends where {} more markers should be", markersLeft_));
        otherZone_ = skipping_ = zone != zone_;
        if (!otherZone_) {
            if (sawZone_)
                cursor_.fail(fmt::format("IZONE= {} is repeated", zone));
            sawZone_ = true;
        }
    }

    /// SU2 itself does not compare the keywords of markers: files have MARKERTAG=, Marker_Tag= and the like.
    static std::string plain(std::string_view keyword) {
        std::string letters;
        for (const char c : keyword)
            if (std::isalpha(static_cast<unsigned char>(c)) != 0)
                letters += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        return letters;
    }

    /// Without blanks, as SU2 reads it.
    static std::string markerName(std::string_view value) {
        std::string name;
        for (const char c : value)
            if (c != ' ' && c != '\t')
                name += c;
        return name;
    }

    void once(bool &seen, const std::string &keyword) {
        if (seen)
            cursor_.fail(fmt::format("{}= is repeated", keyword));
        seen = true;
    }

    // Each entry takes two bytes at least, which bounds counts of damaged files.
    index countOf(WordReader &words, std::string_view keyword) {
        const index count = words.integer(keyword);
        if (count < 0 || count > cursor_.bytesLeft() / 2 + 1)
            cursor_.fail(
                fmt::format("{}= {}, but only {} bytes are left in the file", keyword, count, cursor_.bytesLeft()));
        return count;
    }

    /// The lines that follow are entries `first` to `first + count` of a list.
    void addSection(std::vector<FileSegment> &segments, index first, index count, index marker, std::string_view what) {
        // Some segments a rank, so that places of lines are few and shares nearly even.
        const index length = segmentLength(count, ranks_);
        for (index k = 0; k < count; k += length) {
            FileSegment segment;
            segment.first = first + k;
            segment.count = std::min(length, count - k);
            segment.place = cursor_.place();
            segment.tag = marker;
            segments.push_back(segment);
            cursor_.skipLines(segment.count, what);
        }
    }

    // Markers of one name are one patch; their faces need not be contiguous in the file.
    void readMarker(const std::string &name) {
        if (sawMarkers_ && markersLeft_-- == 0)
            cursor_.fail(fmt::format("marker {} exceeds the number in NMARK=", name));
        if (name == "SEND_RECEIVE")
            cursor_.fail(
                "SEND_RECEIVE markers belong to files that were divided for old versions of SU2; read the file "
                "from which they were made");
        do
            cursor_.requireLine("MARKER_ELEMS=");
        while (cursor_.line()[0] == '%');
        const std::string_view whole = cursor_.line();
        const std::string_view line = whole.substr(0, whole.find('%'));
        const std::size_t sign = line.find('=');
        if (!plain(line.substr(0, sign)).starts_with("MARKERELEM") || sign == std::string_view::npos)
            cursor_.fail(fmt::format("expected MARKER_ELEMS= of marker {}", name));
        WordReader words(cursor_, line.substr(sign + 1));
        const index count = countOf(words, "MARKER_ELEMS");
        const auto known = std::find(result_.markers.begin(), result_.markers.end(), name);
        const auto marker = known - result_.markers.begin();
        if (known == result_.markers.end())
            result_.markers.push_back(name);
        addSection(result_.faceSegments, result_.faces, count, marker, "elements of a marker");
        result_.faces += count;
    }

    /// Old files describe periodic transformations here; SU2's configuration names the markers they connect.
    void readPeriodic(index count) {
        skipping_ = true;
        if (count > 1) // the first is the identity
            result_.warnings.push_back(
                fmt::format("{}: NPERIODIC= {} is ignored: the file does not say which markers are periodic",
                            cursor_.file().path(), count));
    }

    FileCursor cursor_;
    int ranks_;
    Su2Index result_;
    index markersLeft_ = 0; ///< if the file states their number
    bool sawMarkers_ = false;
    std::string wantedZone_;
    index zones_ = 1;
    index zone_ = 0; ///< the one to read, if there are several
    bool otherZone_ = false;
    bool sawZone_ = false;
    bool sawDimension_ = false;
    bool sawCells_ = false;
    bool sawNodes_ = false;
    bool skipping_ = false; ///< lines after a keyword that does not concern the mesh
};

// Members in one order on all ranks.
void broadcastIndex(CommunicatorView comm, Su2Index &su2) {
    for (index *value : {&su2.dimension, &su2.nodes, &su2.cells, &su2.faces})
        comm.broadcast(*value);
    for (auto *segments : {&su2.nodeSegments, &su2.cellSegments, &su2.faceSegments})
        broadcastList(comm, *segments);
    broadcastStrings(comm, su2.markers);
    broadcastStrings(comm, su2.warnings);
}

/// SU2 uses VTK's numbers of types.
std::optional<ElementType> elementTypeOf(index vtk) {
    switch (vtk) {
    case 3:
        return ElementType::Bar2;
    case 5:
        return ElementType::Tri3;
    case 9:
        return ElementType::Quad4;
    case 10:
        return ElementType::Tetra4;
    case 12:
        return ElementType::Hexa8;
    case 13:
        return ElementType::Penta6;
    case 14:
        return ElementType::Pyra5;
    default:
        return {};
    }
}

/// Reads this rank's segments of one list after the other.
class Reader {
  public:
    Reader(const MeshFile &file, const Su2Index &su2) : cursor_(file), su2_(su2) {}

    void readNodes(const FileSegment &segment, SourceMesh &mesh) {
        cursor_.moveTo(segment.place);
        for (index i = 0; i < segment.count; i++) {
            cursor_.requireLine("a point");
            WordReader words(cursor_);
            std::array<real, 3> &point = mesh.coordinates.emplace_back();
            for (std::size_t d = 0; d < static_cast<std::size_t>(su2_.dimension); d++)
                point[d] = words.number("a coordinate");
        }
    }

    // Numbers after the nodes are ignored.
    void readElements(const FileSegment &segment, index dimension, index firstId, ElementBlock &block) {
        cursor_.moveTo(segment.place);
        for (index i = 0; i < segment.count; i++) {
            cursor_.requireLine("an element");
            WordReader words(cursor_);
            const index vtk = words.integer("the type of an element");
            const std::optional<ElementType> type = elementTypeOf(vtk);
            if (!type || elementInfo(*type).dimension != dimension)
                cursor_.fail(fmt::format("type {} is not an SU2 element of {} dimensions", vtk, dimension));
            std::array<index, 8> nodes{};
            const auto count = static_cast<std::size_t>(elementInfo(*type).nodes);
            for (std::size_t k = 0; k < count; k++)
                nodes[k] = words.integer("a node", 0, su2_.nodes - 1);
            if (*type == ElementType::Penta6) // the only type that VTK's manual numbers otherwise than CGNS
                mirrorElement(*type, std::span<index>(nodes).first(count));
            appendElement(block, *type, std::span<const index>(nodes).first(count), firstId + segment.first + i);
        }
    }

  private:
    FileCursor cursor_;
    const Su2Index &su2_;
};

/// Some programs (Gmsh, for example) list the nodes of prisms in the order of CGNS. SU2 accepts either order by looking
/// at volumes, and so does this. Collective.
void turnPrisms(CommunicatorView comm, SourceMesh &mesh) {
    // A mesh of the prisms alone, which `orientCells` turns.
    SourceMesh prisms;
    std::vector<std::size_t> cells;
    for (std::size_t c = 0; c < mesh.cells.types.size(); c++)
        if (mesh.cells.types[c] == ElementType::Penta6) {
            appendElement(prisms.cells, ElementType::Penta6, mesh.cells.nodesOf(static_cast<index>(c)),
                          mesh.cells.fileIds[c]);
            cells.push_back(c);
        }
    numberBlock(comm, prisms.cells);
    if (prisms.cells.globalSize == 0)
        return;
    prisms.origin = mesh.origin;
    prisms.cellDimension = 3;
    prisms.physicalDimension = 3;
    prisms.coordinates = mesh.coordinates;
    prisms.firstNode = mesh.firstNode;
    prisms.globalNodes = mesh.globalNodes;
    MeshReport report;
    orientCells(*GlobalMapping::create(comm, mesh.nodes()), prisms, report);
    for (std::size_t k = 0; k < cells.size(); k++) {
        const auto nodes = prisms.cells.nodesOf(static_cast<index>(k));
        std::copy(nodes.begin(), nodes.end(), mesh.cells.nodes.begin() + mesh.cells.starts[cells[k]]);
    }
    if (report.turnedCells > 0)
        mesh.warnings.push_back(fmt::format("{}: {} of {} prisms list their nodes in an order other than SU2's "
                                            "(see Su2Reader.hpp) and are reordered",
                                            mesh.origin, report.turnedCells, prisms.cells.globalSize));
}

/// Index and broadcast, shares of nodes, cells and faces, then the order of prisms.
SourceMesh readParts(CommunicatorView comm, const std::string &path, const std::string &zone) {
    std::optional<MeshFile> file;
    comm.guarded([&] { file.emplace(path); });
    Su2Index su2;
    onRankZero(comm, [&] { su2 = Indexer(*file, comm.size(), zone).run(); });
    broadcastIndex(comm, su2);

    SourceMesh mesh;
    mesh.origin = path;
    mesh.cellDimension = static_cast<int>(su2.dimension);
    mesh.warnings = su2.warnings;
    for (const std::string &marker : su2.markers)
        mesh.patches.push_back({marker, "", ""});
    Reader reader(*file, su2);
    // One agreement per list, so that the first error of the file is named on any number of ranks.
    comm.guarded([&] {
        for (const FileSegment &segment : ownSegments(su2.nodeSegments, su2.nodes, comm))
            reader.readNodes(segment, mesh);
    });
    comm.guarded([&] {
        for (const FileSegment &segment : ownSegments(su2.cellSegments, su2.cells, comm))
            reader.readElements(segment, su2.dimension, 1, mesh.cells);
    });
    comm.guarded([&] {
        for (const FileSegment &segment : ownSegments(su2.faceSegments, su2.faces, comm)) {
            reader.readElements(segment, su2.dimension - 1, su2.cells + 1, mesh.faces);
            mesh.faceMarks.resize(mesh.faces.types.size(), static_cast<int>(segment.tag));
        }
    });
    numberNodes(comm, mesh);
    mesh.physicalDimension = mesh.cellDimension;
    numberBlock(comm, mesh.cells);
    numberBlock(comm, mesh.faces);
    turnPrisms(comm, mesh);
    return mesh;
}

} // namespace

SourceMesh readSu2(CommunicatorView comm, const std::string &path, const std::string &zone) {
    return failTogether(comm, [&] { return readParts(comm, path, zone); });
}

} // namespace DNDS::Geom
