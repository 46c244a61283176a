#include "DNDS/Geom/Gmsh/GmshIndex.hpp"

#include "DNDS/Mpi/Communicator.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>

namespace DNDS::Geom::Detail {

namespace {

constexpr std::string_view saveAs = "Gmsh converts it: gmsh FILE -save -format msh41 -o NEW.msh";

/// Divides the blocks of a list into segments: splits long blocks, joins short ones.
/// Segments have about `length` entries; those of a long block start in its middle (`inBlock` entries are left
/// there), those of short blocks at a header.
/// A segment begins where a reader can start without what precedes it: at a header, or in a block whose header the
/// segment repeats. O(entries / length + blocks) segments.
class SegmentBuilder {
  public:
    /// Without headers every segment begins with an entry.
    SegmentBuilder(std::vector<FileSegment> &segments, index length, bool headers)
        : segments_(segments), length_(length), headers_(headers) {}

    index entries() const noexcept { return entries_; }

    /// A block with its header at `header`. `placeOf(k)` moves to entry `k` and returns its position; it is called with
    /// ascending numbers, and finally with the number of entries.
    void addBlock(FilePlace header, const GmshBlock &block, const std::function<FilePlace(index)> &placeOf) {
        if (block.count > length_ || !headers_) {
            close();
            for (index k = 0; k < block.count; k += length_) {
                FileSegment segment;
                segment.first = entries_ + k;
                segment.count = std::min(length_, block.count - k);
                segment.place = placeOf(k);
                segment.inBlock = block.count - k;
                segment.dimension = block.dimension;
                segment.tag = block.tag;
                segment.type = block.type;
                segments_.push_back(segment);
            }
        } else {
            if (open_.count + block.count > length_)
                close();
            if (open_.count == 0) {
                open_.first = entries_;
                open_.place = header;
            }
            open_.count += block.count;
        }
        placeOf(block.count);
        entries_ += block.count;
    }

    // Ends the segment of short blocks, if one is open.
    void close() {
        if (open_.count > 0)
            segments_.push_back(open_);
        open_ = {};
    }

  private:
    std::vector<FileSegment> &segments_;
    index length_;
    bool headers_;
    index entries_ = 0;
    FileSegment open_;
};

/// One pass over the file, without keeping values: in text every line of $Nodes and $Elements is skipped by its end,
/// in binary whole blocks are skipped by their size.
/// O(bytes) time in text, O(blocks) in binary files; O(segments + entities) memory. Counts that the file states are
/// compared with the bytes left before any loop or allocation relies on them.
class Indexer {
  public:
    Indexer(const MeshFile &file, int ranks) : file_(file), ranks_(ranks), input_(file, {}) {}

    /// Sections may come in any order, except that $MeshFormat precedes all that depend on it; unknown ones are
    /// skipped.
    GmshIndex run() {
        readFormat();
        FileCursor &cursor = input_.cursor();
        while (cursor.nextLine()) {
            const std::string section(cursor.line());
            if (section[0] != '$')
                cursor.fail("expected the name of a section, beginning with $");
            readSection(section);
        }
        if (!sawNodes_ || !sawElements_)
            cursor.fail(fmt::format("the file has no {}", sawNodes_ ? "$Elements" : "$Nodes"));
        if (input_.format().version4() && !result_.names.empty() && !sawEntities_)
            result_.warnings.push_back(
                fmt::format("{}: $PhysicalNames without $Entities: which elements the names are for "
                            "is not known; patches are named by their entities",
                            cursor.file().path()));
        std::sort(result_.groups.begin(), result_.groups.end());
        result_.groups.erase(std::unique(result_.groups.begin(), result_.groups.end()), result_.groups.end());
        std::sort(result_.pieces.begin(), result_.pieces.end());
        return std::move(result_);
    }

  private:
    /// Comments and the like may precede `$MeshFormat`; sections whose form it states may not.
    void findFormat() {
        FileCursor &cursor = input_.cursor();
        for (cursor.requireLine("$MeshFormat"); cursor.line() != "$MeshFormat"; cursor.requireLine("$MeshFormat")) {
            const std::string section(cursor.line());
            if (section == "$NOD" || section == "$ELM")
                cursor.fail(
                    fmt::format("{} belongs to version 1 of the format, which is not supported; {}", section, saveAs));
            if (section[0] != '$' || section == "$Nodes" || section == "$Elements" || section == "$Entities" ||
                section == "$PartitionedEntities" || section == "$Periodic" || section.starts_with("$End"))
                cursor.fail(fmt::format("expected $MeshFormat before '{}'", shown(section)));
            readSection(section);
        }
    }

    /// The version times 10: 22 of "2.2", and of "2.200000", which some programs write; 0 for anything else.
    static long tenthsOf(const std::string &version) {
        double value = 0;
        const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), value);
        const double tenths = 10 * value;
        const bool number = error == std::errc() && end == version.data() + version.size() && tenths > 0 &&
                            tenths < 1000 && std::abs(tenths - std::round(tenths)) < 1e-6;
        return number ? std::lround(tenths) : 0;
    }

    /// The version decides the form of all later sections, the file type whether values are text. The integer 1
    /// after the line of a binary file gives its byte order.
    void readFormat() {
        findFormat();
        FileCursor &cursor = input_.cursor();
        cursor.requireLine("version, file type and data size");
        WordReader words(cursor);
        const std::string version(words.word("the version"));
        GmshFormat &format = result_.format;
        format.version = static_cast<int>(tenthsOf(version));
        if (format.version != 40 && format.version != 41 && (format.version < 20 || format.version > 22))
            cursor.fail(fmt::format("version {} of the format is not supported; 2.0 to 2.2, 4.0 and 4.1 are; {}",
                                    version, saveAs));
        format.binary = words.integer("the file type", 0, 1) == 1;
        format.sizeBytes = static_cast<int>(words.integer("the data size", 4, 8));
        if (format.sizeBytes != 4 && format.sizeBytes != 8)
            cursor.fail("the data size must be 4 or 8");
        if (format.binary) {
            cursor.countBytes();
            // Binary files store the integer 1 here: read without swapping, it shows the byte order.
            const auto one = cursor.value<std::int32_t>(false);
            format.swapped = one == 0x01000000;
            if (one != 1 && !format.swapped)
                cursor.fail("expected the number 1, in one byte order or the other");
        }
        expectEnd("$MeshFormat");
        input_.setFormat(format);
    }

    // "$EndNodes" after "$Nodes".
    void expectEnd(const std::string &section) {
        FileCursor &cursor = input_.cursor();
        const std::string end = "$End" + section.substr(1);
        cursor.requireLine(end);
        if (cursor.line() != end)
            cursor.fail(fmt::format("expected {}", shown(end)));
    }

    // Unknown sections are passed over; $Nodes and $Elements may occur once.
    void readSection(const std::string &section) {
        if (section == "$Nodes" && !sawNodes_) {
            sawNodes_ = true;
            readNodes();
        } else if (section == "$Elements" && !sawElements_) {
            sawElements_ = true;
            readElements();
        } else if (section == "$PhysicalNames") {
            readPhysicalNames();
        } else if (section == "$Entities") {
            sawEntities_ = true;
            readEntities();
        } else if (section == "$PartitionedEntities") {
            sawEntities_ = true;
            readPartitionedEntities();
        } else if (section == "$Periodic") {
            readPeriodic();
        } else if (section == "$Nodes" || section == "$Elements" || section.starts_with("$End")) {
            input_.cursor().fail(fmt::format("unexpected {}", shown(section)));
        } else {
            input_.cursor().skipBehindLine("$End" + section.substr(1));
            return;
        }
        expectEnd(section);
    }

    /// Version 4 gives the number of blocks and of entries, 4.1 the range of tags, too; version 2 the number of
    /// entries.
    std::array<index, 2> readTotals(index bytesEach, std::string_view what) {
        input_.beginRecord("counts");
        index blocks = 1;
        if (input_.format().version4())
            blocks = input_.size("the number of blocks");
        index entries = 0;
        if (!input_.format().version4() && input_.format().binary) { // written as text
            input_.cursor().requireLine(what);
            entries = WordReader(input_.cursor()).integer(what, 0, largestTag);
        } else {
            entries = input_.size(what);
        }
        if (input_.format().version41()) {
            input_.size("the lowest tag");
            input_.size("the highest tag");
        }
        input_.endRecord();
        input_.checkCount(entries, bytesEach, what);
        input_.checkCount(blocks, 1, "the number of blocks");
        return {blocks, entries};
    }

    // The sum over blocks against the section's own number.
    void checkTotal(index found, index announced, std::string_view what) {
        if (found != announced)
            input_.cursor().fail(fmt::format("the blocks have {} {}, and {} were announced", found, what, announced));
    }

    /// Only version 4.1 has all tags of a block before the coordinates.
    void readNodes() {
        const bool headers = input_.format().version4();
        const bool tagsFirst = input_.format().version41();
        const index tagBytes = input_.size41Bytes();
        const auto [blocks, nodes] = readTotals(tagBytes + 24, "the number of nodes");
        result_.nodes = nodes;
        SegmentBuilder builder(result_.nodeSegments, segmentLength(nodes, ranks_), headers);
        for (index b = 0; b < blocks; b++) {
            const FilePlace header = input_.cursor().place();
            GmshBlock block;
            block.count = nodes;
            if (headers)
                block = readNodeHeader(input_, nodes - builder.entries());
            const std::size_t firstSegment = result_.nodeSegments.size();
            addRecords(builder, header, block, tagBytes + (tagsFirst ? 0 : pointBytes(block)),
                       tagsFirst ? "node tags" : "nodes");
            if (tagsFirst)
                addSecondPlaces(firstSegment, block);
        }
        builder.close();
        checkTotal(builder.entries(), nodes, "nodes");
    }

    static index pointBytes(const GmshBlock &nodes) { return 8 * (3 + nodes.type); }

    /// After the tags of a block: skips its coordinates and notes their positions in the segments of the block.
    /// Segments of a block ascend, so each skip starts where the one before ended: one pass over the coordinates.
    void addSecondPlaces(std::size_t firstSegment, const GmshBlock &block) {
        const index bytes = pointBytes(block);
        index done = 0;
        for (std::size_t s = firstSegment; s < result_.nodeSegments.size(); s++) {
            FileSegment &segment = result_.nodeSegments[s];
            if (segment.inBlock == 0) // short blocks before this one
                continue;
            input_.skipRecords(block.count - segment.inBlock - done, bytes, "coordinates");
            done = block.count - segment.inBlock;
            segment.secondPlace = input_.cursor().place();
        }
        input_.skipRecords(block.count - done, bytes, "coordinates");
    }

    /// Skips up to each position that the builder asks for.
    void addRecords(SegmentBuilder &builder, FilePlace header, const GmshBlock &block, index bytes,
                    std::string_view what) {
        index done = 0;
        builder.addBlock(header, block, [&](index k) {
            input_.skipRecords(k - done, bytes, what);
            done = k;
            return input_.cursor().place();
        });
    }

    /// Version 2 text has one line for each element without headers, version 2 binary headers without a number of
    /// blocks.
    void readElements() {
        const bool version4 = input_.format().version4();
        const auto [blocks, elements] = readTotals(2 * input_.size41Bytes(), "the number of elements");
        result_.elements = elements;
        const bool headers = version4 || input_.format().binary;
        SegmentBuilder builder(result_.elementSegments, segmentLength(elements, ranks_), headers);
        // Version 2 binary does not state the number of blocks: they end with the last element.
        for (index b = 0; version4 || !headers ? b < blocks : builder.entries() < elements; b++) {
            const FilePlace header = input_.cursor().place();
            GmshBlock block;
            block.count = elements;
            if (headers)
                block = readElementHeader(input_, elements - builder.entries());
            // Block headers of version 2 name no entity: the segment's `tag` carries the number of tags instead.
            if (!version4)
                block.tag = block.tags;
            addRecords(builder, header, block, headers ? elementBytes(input_, block) : 0, "elements");
        }
        builder.close();
        checkTotal(builder.entries(), elements, "elements");
    }

    // In text, whatever the file type.
    void readPhysicalNames() {
        FileCursor &cursor = input_.cursor();
        cursor.requireLine("the number of names");
        const index count = WordReader(cursor).integer("the number of names", 0, cursor.bytesLeft());
        for (index i = 0; i < count; i++) {
            cursor.requireLine("a physical name");
            WordReader words(cursor);
            index dimension = anyDimension;
            index tag = words.integer("the dimension or the tag of a group", -largestTag, largestTag);
            if (startsWithInteger(words.rest())) {
                if (tag < 0 || tag > 3)
                    cursor.fail(fmt::format("the dimension is {}: it must lie in [0, 3]", tag));
                dimension = tag;
                tag = words.integer("the tag of a group", -largestTag, largestTag);
            }
            std::string_view name = words.rest();
            if (name.starts_with('"')) { // text after the name is not part of it
                name.remove_prefix(1);
                name = name.substr(0, name.find('"'));
            }
            result_.named.push_back({dimension, std::abs(tag)});
            result_.names.emplace_back(name);
        }
    }

    /// Files of version 2.0 have no dimensions: a name follows the tag.
    static bool startsWithInteger(std::string_view text) {
        const std::string_view word = text.substr(0, text.find_first_of(" \t"));
        const std::string_view digits = word.substr(word.starts_with('-') ? 1 : 0);
        return !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
    }

    // Points, curves, surfaces, volumes.
    std::array<index, 4> readEntityCounts(std::string_view section) {
        if (!input_.format().version4())
            input_.cursor().fail(fmt::format("{} belongs to version 4", section));
        std::array<index, 4> counts{};
        input_.beginRecord("numbers of entities");
        for (index &count : counts)
            count = input_.size("the number of entities");
        input_.endRecord();
        for (const index count : counts)
            input_.checkCount(count, 20, "the number of entities");
        return counts;
    }

    // Only the groups of curves and surfaces are kept: points and volumes are no faces.
    void readEntities() {
        const std::array<index, 4> counts = readEntityCounts("$Entities");
        for (std::size_t dimension = 0; dimension < 4; dimension++)
            for (index i = 0; i < counts[dimension]; i++) {
                input_.beginRecord("an entity");
                const index tag = input_.integer("the tag of an entity", -largestTag, largestTag);
                readEntity(static_cast<index>(dimension), tag);
            }
    }

    /// The rest of an entity, with its groups: bounds (six numbers; three for points of version 4.1), groups, and,
    /// except for points, bounding entities.
    void readEntity(index dimension, index tag) {
        for (int k = 0; k < (dimension == 0 && input_.format().version41() ? 3 : 6); k++)
            input_.number("a bound of an entity");
        const index groups = input_.size("the number of groups");
        input_.checkCount(groups, 1, "the number of groups");
        for (index k = 0; k < groups; k++) {
            const index group = std::abs(input_.integer("the tag of a group", -largestTag, largestTag));
            if (dimension == 1 || dimension == 2)
                result_.groups.push_back({dimension, tag, group});
        }
        if (dimension > 0) {
            const index parts = input_.size("the number of bounding entities");
            input_.checkCount(parts, 1, "the number of bounding entities");
            for (index k = 0; k < parts; k++)
                input_.integer("a bounding entity", -largestTag, largestTag);
        }
        input_.endRecord();
    }

    /// Pieces of the entities of a mesh that Gmsh has partitioned; elements name the pieces.
    void readPartitionedEntities() {
        if (!input_.format().version4())
            input_.cursor().fail("$PartitionedEntities belongs to version 4");
        input_.beginRecord("the number of partitions");
        input_.size41("the number of partitions");
        input_.endRecord();
        input_.beginRecord("the number of ghost entities");
        const index ghosts = input_.size41("the number of ghost entities");
        input_.endRecord();
        input_.checkCount(ghosts, 8, "the number of ghost entities");
        input_.skipRecords(ghosts, 8, "ghost entities");
        const std::array<index, 4> counts = readEntityCounts("$PartitionedEntities");
        for (std::size_t dimension = 0; dimension < 4; dimension++)
            for (index i = 0; i < counts[dimension]; i++)
                readPiece(static_cast<index>(dimension));
    }

    // An entity with a parent and a list of partitions; groups as readEntity.
    void readPiece(index dimension) {
        input_.beginRecord("a partitioned entity");
        GmshPiece piece{};
        piece.dimension = dimension;
        piece.entity = input_.integer("the tag of an entity", -largestTag, largestTag);
        piece.parentDimension = input_.integer("the dimension of a parent", -1, 3);
        piece.parent = input_.integer("the tag of a parent", -largestTag, largestTag);
        const index partitions = input_.size41("the number of partitions");
        input_.checkCount(partitions, 4, "the number of partitions");
        for (index k = 0; k < partitions; k++)
            input_.integer("a partition", -largestTag, largestTag);
        readEntity(dimension, piece.entity);
        if (dimension == 1 || dimension == 2)
            result_.pieces.push_back(piece);
    }

    /// Version 2 writes this section as text in binary files, too, hence an input of its own. Only the maps are kept:
    /// pairs of nodes are found again by position.
    void readPeriodic() {
        GmshFormat format = input_.format();
        format.binary = format.binary && format.version4();
        GmshInput input(file_, format, input_.cursor().place());
        input.beginRecord("the number of links");
        const index count = input.size41("the number of links");
        input.endRecord();
        input.checkCount(count, 12, "the number of links");
        for (index i = 0; i < count; i++)
            if (format.version41())
                readLink41(input);
            else
                format.binary ? readLink40(input) : readLink2(input);
        input_.cursor().moveTo(input.cursor().place());
    }

    // Dimension, slave and master.
    static GmshPeriodicLink readLinkEnds(GmshInput &input) {
        GmshPeriodicLink link{};
        input.beginRecord("a periodic link");
        link.dimension = input.integer("the dimension", 0, 3);
        link.entity = input.integer("the tag of an entity", -largestTag, largestTag);
        link.master = input.integer("the tag of an entity", -largestTag, largestTag);
        input.endRecord();
        return link;
    }

    // The affine map by rows, 16 numbers.
    static void readMap(GmshInput &input, GmshPeriodicLink &link) {
        link.known = true;
        for (real &value : link.map)
            value = input.number("a value of an affine map");
    }

    // Pairs of nodes are passed over.
    void addLink(GmshInput &input, const GmshPeriodicLink &link, index nodes) {
        input.checkCount(nodes, 2 * input.size41Bytes(), "the number of nodes");
        input.skipRecords(nodes, 2 * input.size41Bytes(), "pairs of nodes");
        result_.links.push_back(link);
    }

    void readLink41(GmshInput &input) {
        GmshPeriodicLink link = readLinkEnds(input);
        input.beginRecord("an affine map");
        const index values = input.size("the number of values", 16);
        if (values != 0 && values != 16)
            input.cursor().fail(fmt::format("an affine map has {} values; expected 16 or none", values));
        if (values == 16)
            readMap(input, link);
        input.endRecord();
        input.beginRecord("the number of nodes");
        const index nodes = input.size("the number of nodes");
        input.endRecord();
        addLink(input, link, nodes);
    }

    /// Version 4.0, binary: a number below 0 in place of the number of nodes announces a map.
    void readLink40(GmshInput &input) {
        GmshPeriodicLink link = readLinkEnds(input);
        index nodes = input.size("the number of nodes", largestTag, -largestTag);
        if (nodes < 0) {
            readMap(input, link);
            nodes = input.size("the number of nodes");
        }
        addLink(input, link, nodes);
    }

    /// Version 2, and 4.0 in text.
    void readLink2(GmshInput &input) {
        GmshPeriodicLink link = readLinkEnds(input);
        FileCursor &cursor = input.cursor();
        cursor.requireLine("the number of nodes");
        WordReader words(cursor);
        if (words.rest().starts_with("Affine")) {
            words.word("Affine");
            link.known = true;
            for (real &value : link.map)
                value = words.number("a value of an affine map");
            cursor.requireLine("the number of nodes");
            words = WordReader(cursor);
        }
        const index nodes = words.integer("the number of nodes", 0, cursor.bytesLeft());
        cursor.skipLines(nodes, "pairs of nodes");
        result_.links.push_back(link);
    }

    const MeshFile &file_;
    int ranks_;
    GmshInput input_;
    GmshIndex result_;
    bool sawNodes_ = false;
    bool sawElements_ = false;
    bool sawEntities_ = false;
};

} // namespace

// Binary values need no line.
void GmshInput::beginRecord(std::string_view what) {
    if (format_.binary)
        return;
    cursor_.requireLine(what);
    words_ = WordReader(cursor_);
}

void GmshInput::endRecord() const {
    if (!format_.binary)
        words_.end();
}

void GmshInput::skipRecords(index count, index bytes, std::string_view what) {
    if (!format_.binary) {
        cursor_.skipLines(count, what);
        return;
    }
    const index there = cursor_.bytesLeft() / std::max<index>(bytes, 1);
    if (count > 0 && count > there) {
        cursor_.skipBytes(there * bytes); // to the first one that is missing
        cursor_.fail(fmt::format("the file ends where more {} should be", what));
    }
    cursor_.skipBytes(count * bytes);
}

index GmshInput::integer(std::string_view what, index lowest, index highest) {
    if (!format_.binary)
        return words_.integer(what, lowest, highest);
    const index value = cursor_.value<std::int32_t>(format_.swapped);
    if (value < lowest || value > highest)
        cursor_.fail(fmt::format("{} is {}: it must lie in [{}, {}]", what, value, lowest, highest));
    return value;
}

index GmshInput::size(std::string_view what, index highest, index lowest) {
    if (!format_.binary || sizeBytes() == 4)
        return integer(what, lowest, highest);
    const index value = cursor_.value<std::int64_t>(format_.swapped);
    if (value < lowest || value > highest)
        cursor_.fail(fmt::format("{} is {}: it must lie in [{}, {}]", what, value, lowest, highest));
    return value;
}

index GmshInput::size41(std::string_view what) {
    return format_.version41() ? size(what) : integer(what, 0, largestTag);
}

real GmshInput::number(std::string_view what) {
    if (!format_.binary)
        return words_.number(what);
    const real value = cursor_.value<real>(format_.swapped);
    if (!(std::abs(value) <= std::numeric_limits<real>::max()))
        cursor_.fail(fmt::format("{} is {}, which is not a finite number", what, value));
    return value;
}

// In text each entry has at least a character and an end of line.
void GmshInput::checkCount(index count, index bytes, std::string_view what) const {
    const index each = format_.binary ? std::max<index>(bytes, 1) : 2;
    if (count > cursor_.bytesLeft() / each + 1)
        cursor_.fail(fmt::format("{} is {}, but only {} bytes are left in the file", what, count, cursor_.bytesLeft()));
}

namespace {

/// The entity of a block; version 4.0 gives its tag first, 4.1 its dimension.
void readEntityOf(GmshBlock &block, GmshInput &input) {
    const auto readTag = [&] { block.tag = input.integer("the tag of an entity", -largestTag, largestTag); };
    if (!input.format().version41())
        readTag();
    block.dimension = input.integer("the dimension", 0, 3);
    if (input.format().version41())
        readTag();
}

} // namespace

GmshBlock readNodeHeader(GmshInput &input, index most) {
    GmshBlock block;
    input.beginRecord("the header of a block of nodes");
    readEntityOf(block, input);
    const bool parametric = input.integer("whether there are parameters", 0, 1) == 1;
    block.type = parametric ? block.dimension : 0;
    if (block.dimension == 3 && !input.format().version41()) // Gmsh 4.0 says so of volumes, which have none
        block.type = 0;
    block.count = input.size("the number of nodes in the block", most);
    input.endRecord();
    return block;
}

// Types are refused here, once a block: readers of elements rely on gmshElement(block.type).
GmshBlock readElementHeader(GmshInput &input, index most) {
    GmshBlock block;
    input.beginRecord("the header of a block of elements");
    if (input.format().version4()) {
        readEntityOf(block, input);
        block.type = input.integer("the type of elements", -largestTag, largestTag);
        block.count = input.size("the number of elements in the block", most);
    } else {
        block.type = input.integer("the type of elements", -largestTag, largestTag);
        block.count = input.integer("the number of elements in the block", 1, most);
        block.tags = input.integer("the number of tags", 0, 1000);
    }
    input.endRecord();
    const GmshElement *element = gmshElement(block.type);
    if (element == nullptr)
        input.cursor().fail(
            fmt::format("elements of type {} are not supported: {}", gmshTypeText(block.type), onlySecondOrder));
    if (input.format().version4() && elementInfo(element->type).dimension != block.dimension)
        input.cursor().fail(
            fmt::format("elements of type {} on an entity of dimension {}", block.type, block.dimension));
    return block;
}

// Number, tags (version 2) and nodes, all of one width.
index elementBytes(const GmshInput &input, const GmshBlock &block) {
    return input.size41Bytes() * (1 + block.tags + elementInfo(gmshElement(block.type)->type).nodes);
}

GmshIndex indexGmsh(const MeshFile &file, int ranks) { return Indexer(file, ranks).run(); }

// Trivially copyable parts as bytes, in the order of the struct.
void broadcastIndex(CommunicatorView comm, GmshIndex &gmsh) {
    comm.broadcast(gmsh.format);
    comm.broadcast(gmsh.nodes);
    comm.broadcast(gmsh.elements);
    broadcastList(comm, gmsh.nodeSegments);
    broadcastList(comm, gmsh.elementSegments);
    broadcastList(comm, gmsh.groups);
    broadcastList(comm, gmsh.pieces);
    broadcastList(comm, gmsh.named);
    broadcastStrings(comm, gmsh.names);
    broadcastList(comm, gmsh.links);
    broadcastStrings(comm, gmsh.warnings);
}

} // namespace DNDS::Geom::Detail
