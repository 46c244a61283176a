#include "DNDS/Geom/Foam/PolyMesh.hpp"

#include "DNDS/Geom/Foam/FoamCase.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace DNDS::Geom::Foam {

namespace {

constexpr index maxEntries = index{1} << 48;

/// Reads the file of one list and finds its entries.
///
/// A list is a number and entries in parentheses. In text any blanks and comments may be between words, so that all of
/// it is looked at. In binary files entries follow each other without blanks; only faces that are not compact are lists
/// of their own, with a number as text before each.
/// O(bytes) time for text, O(1) for binary lists of fixed width; O(segments) memory. Segments of lists by face are
/// cut at multiples of the same `length()`, so that the same rank gets a face's corners, owner and neighbour.
class ListScanner {
  public:
    /// `faces` is the number of faces, in lists that have an entry for each.
    ListScanner(std::string path, int ranks, index faces = maxEntries)
        : file_(openFile(path)), cursor_(file_), ranks_(ranks), faces_(faces) {
        result_.path = std::move(path);
    }

    /// One of these is called, once: it scans the whole file.
    ListFile points() {
        takeHeaderOf("vectorField");
        result_.count = takeCount("points");
        scanEntries("points", 3 * encoding().scalarBytes, [&] { skipGroup(); });
        return std::move(result_);
    }
    // "N{value}" stands for N equal entries.
    ListFile labels(std::string_view what) {
        takeHeaderOf("labelList");
        result_.count = takeCount(what);
        if (nextByte(cursor_) == '{') {
            cursor_.advance();
            result_.uniform = true;
            addSegments(cursor_.place(), 0);
        } else {
            scanEntries(what, encoding().labelBytes, [&] { takeWord(cursor_, "a number of a cell"); });
        }
        return std::move(result_);
    }
    // Compact lists have all corners in one, after a list of offsets.
    ListFile faces() {
        takeHeaderOf("faceList", "faceCompactList");
        if (result_.compact) {
            scanCompact();
            return std::move(result_);
        }
        result_.count = takeCount("faces");
        scanEntries("faces", 0, [&] {
            const index corners = takeInteger(cursor_, "the number of corners of a face", 0, maxEntries);
            if (encoding().binary)
                skipBytes(corners, encoding().labelBytes);
            else
                skipGroup();
        });
        return std::move(result_);
    }

  private:
    Encoding &encoding() { return result_.encoding; }

    /// Takes the header, whose class must be one of these; `otherType` is that of compact lists.
    void takeHeaderOf(std::string_view type, std::string_view otherType = {}) {
        const std::string found = takeHeader(cursor_, encoding());
        if (found == "decomposedBlockData")
            cursor_.fail("the file is collated, as decomposed cases have it; reconstructParMesh -constant of OpenFOAM "
                         "makes one mesh of them");
        if (found != type && (otherType.empty() || found != otherType))
            cursor_.fail(fmt::format("the header's class is '{}', but should be '{}'", shown(found), type));
        result_.compact = found == otherType;
        if (result_.compact && !encoding().binary)
            cursor_.fail("faceCompactList is read in binary files only");
        if (encoding().binary)
            cursor_.countBytes();
    }

    /// Takes the number of entries, which is text in binary files, too.
    index takeCount(std::string_view what) {
        return takeInteger(cursor_, fmt::format("the number of {}", what), 0, faces_);
    }

    /// Moves past binary values in parentheses; the place of the first.
    FilePlace skipBytes(index count, int bytes) {
        takeByte(cursor_, '(');
        const FilePlace place = cursor_.place();
        cursor_.moveTo({place.offset + count * bytes, place.line});
        if (cursor_.peek() != ')')
            cursor_.fail(
                fmt::format("a list of {} entries of {} bytes does not end with ')' here: the file ends early, "
                            "or its count or the header's arch is wrong",
                            count, bytes));
        cursor_.advance();
        nextByte(cursor_); // reads the checksum of a compressed file
        return place;
    }

    /// Moves past words in parentheses.
    void skipGroup() {
        takeByte(cursor_, '(');
        for (int c = cursor_.peek(); c != ')'; c = cursor_.peek()) {
            if (c < 0 || c == '(')
                cursor_.fail("a '(' has no ')'");
            cursor_.advance();
        }
        cursor_.advance();
    }

    /// The number of entries of a segment: the same for all lists with an entry for each face.
    index length() { return segmentLength(faces_ < maxEntries ? faces_ : result_.count, ranks_); }

    /// The segment that begins with entry `first`, at `place`.
    void addSegment(index first, FilePlace place) {
        FileSegment &segment = result_.segments.emplace_back();
        segment.first = first;
        segment.count = std::min(length(), result_.count - first);
        segment.place = place;
    }

    /// Entries of `bytes` from `place` on.
    void addSegments(FilePlace place, index bytes) {
        for (index first = 0; first < result_.count; first += length())
            addSegment(first, {place.offset + first * bytes, place.line});
    }

    /// `bytes` of a binary entry, or 0 if they are of several sizes; `skip` moves past one.
    template <class Skip>
    void scanEntries(std::string_view what, int bytes, Skip &&skip) {
        const index count = result_.count;
        if (count == 0 && nextByte(cursor_) != '(') // as binary files have it
            return;
        if (encoding().binary && bytes > 0) {
            addSegments(skipBytes(count, bytes), bytes);
            return;
        }
        takeByte(cursor_, '(');
        for (index i = 0; i < count; i++) {
            if (nextByte(cursor_) == ')')
                cursor_.fail(fmt::format("the list of {} ends after {} of {}", what, i, count));
            if (i % length() == 0)
                addSegment(i, cursor_.place());
            skip();
        }
        const int end = nextByte(cursor_);
        if (end >= 0 && end != ')')
            cursor_.fail(fmt::format("the list of {} has more than its {} entries", what, count));
        takeByte(cursor_, ')');
        nextByte(cursor_); // reads the checksum of a compressed file
    }

    /// Two lists: the offsets of the corners of each face, and after the last; the corners.
    void scanCompact() {
        const index offsets = takeCount("offsets of faces");
        if (offsets == 0)
            return;
        result_.count = offsets - 1;
        const FilePlace place = skipBytes(offsets, encoding().labelBytes);
        result_.corners = takeCount("corners of faces");
        addSegments(place, encoding().labelBytes);
        const FilePlace corners =
            result_.corners > 0 ? skipBytes(result_.corners, encoding().labelBytes) : cursor_.place();
        for (FileSegment &segment : result_.segments)
            segment.secondPlace = corners;
    }

    MeshFile file_;
    FileCursor cursor_;
    int ranks_;
    index faces_;
    ListFile result_;
};

/// The patches, whose file is text even if its header says otherwise. `inner` is the number of inner faces, or -1: then
/// the first patch decides.
/// Patches are contiguous and cover the boundary faces: each must begin where the one before ends.
/// O(bytes of the file). Ranges are checked to be contiguous, so that a face's patch is found by binary search.
std::vector<Patch> readPatches(const std::string &path, index inner, index faces) {
    const MeshFile file = openFile(path);
    FileCursor cursor(file);
    Encoding encoding;
    const std::string type = takeHeader(cursor, encoding);
    if (type != "polyBoundaryMesh")
        cursor.fail(fmt::format("the header's class is '{}', but should be 'polyBoundaryMesh'", shown(type)));
    // Lists that were written by hand have no number.
    const index count =
        nextByte(cursor) == '(' ? maxEntries : takeInteger(cursor, "the number of patches", 0, maxEntries);
    std::vector<Patch> patches;
    index end = inner;
    takeByte(cursor, '(');
    for (index i = 0; i < count; i++) {
        if (nextByte(cursor) == ')' && count == maxEntries)
            break;
        if (nextByte(cursor) == ')')
            cursor.fail(fmt::format("the list ends after {} of {} patches", i, count));
        Patch patch;
        patch.name = takeWord(cursor, "the name of a patch");
        const Dictionary entries = takeDictionary(cursor);
        const auto number = [&](std::string_view keyword, index lowest, index highest) {
            const auto value = entries.find(keyword);
            if (value == entries.end())
                cursor.fail(fmt::format("patch '{}' has no {}", shown(patch.name), keyword));
            WordReader words(cursor, value->second);
            const index result =
                words.integer(fmt::format("{} of patch '{}'", keyword, shown(patch.name)), lowest, highest);
            words.end();
            return result;
        };
        patch.type = valueOf(entries, "type");
        patch.neighbour = valueOf(entries, "neighbourPatch");
        patch.transform = valueOf(entries, "transform");
        const auto vector = [&](std::string_view keyword) -> Point {
            const std::string text = valueOf(entries, keyword, "(0 0 0)");
            if (text.size() < 2 || text.front() != '(' || text.back() != ')')
                cursor.fail(fmt::format("{} of patch '{}' is '{}', which is not a vector", keyword, shown(patch.name),
                                        shown(text)));
            WordReader words(cursor, std::string_view(text).substr(1, text.size() - 2));
            const Point v{words.number(keyword), words.number(keyword), words.number(keyword)};
            words.end();
            return v;
        };
        patch.axis = vector("rotationAxis");
        patch.centre = vector("rotationCentre");
        if (std::ranges::find(patches, patch.name, &Patch::name) != patches.end())
            cursor.fail(fmt::format("there are two patches '{}'", shown(patch.name)));
        if (end < 0)
            end = number("startFace", 0, faces);
        patch.size = number("nFaces", 0, faces - end);
        patch.begin = patch.size == 0 ? end : number("startFace", 0, faces);
        if (patch.begin != end)
            cursor.fail(fmt::format("patch '{}' begins at face {}, but should at {}, where {} end", shown(patch.name),
                                    patch.begin, end, i == 0 ? "inner faces" : "those of the patch before"));
        if (patch.type.starts_with("processor"))
            cursor.fail(fmt::format("patch '{}' of type {} belongs to a decomposed case, of which this is a part; "
                                    "reconstructParMesh -constant of OpenFOAM makes one mesh of them",
                                    shown(patch.name), shown(patch.type)));
        end += patch.size;
        patches.push_back(std::move(patch));
    }
    takeByte(cursor, ')');
    if (end >= 0 && end != faces)
        cursor.fail(fmt::format("the patches end at face {}, but there are {} faces", end, faces));
    return patches;
}

/// Local; on rank 0.
/// Files are opened one after the other; each is read once, from begin to end if it is text.
PolyMesh scan(const std::string &path, const std::string &region, int ranks) {
    PolyMesh mesh;
    mesh.folder = meshFolder(path, region);
    mesh.points = ListScanner(findFile(mesh.folder, "points"), ranks).points();
    mesh.faces = ListScanner(findFile(mesh.folder, "faces"), ranks).faces();
    const index faces = mesh.faces.count;
    DNDS_CHECK(faces > 0, DataError, "{}: the mesh has no faces", mesh.faces.path);
    // Owners and neighbours are cut at the same faces as the list of faces: a rank reads all about its own faces.
    mesh.owner = ListScanner(findFile(mesh.folder, "owner"), ranks, faces).labels("owners of faces");
    DNDS_CHECK(mesh.owner.count == faces, DataError, "{}: {} owners for {} faces", mesh.owner.path, mesh.owner.count,
               faces);
    mesh.neighbour = ListScanner(findFile(mesh.folder, "neighbour"), ranks, faces).labels("neighbours of faces");
    index &inner = mesh.neighbour.count;
    const bool padded = inner == faces; // old files have -1 for boundary faces
    mesh.patches = readPatches(findFile(mesh.folder, "boundary"), padded ? -1 : inner, faces);
    if (padded && !mesh.patches.empty())
        inner = mesh.patches.front().begin;
    // Entries beyond the inner faces (-1 in old files) are not read.
    std::erase_if(mesh.neighbour.segments, [&](const FileSegment &segment) { return segment.first >= inner; });
    if (!mesh.neighbour.segments.empty())
        mesh.neighbour.segments.back().count = inner - mesh.neighbour.segments.back().first;
    return mesh;
}

/// Rank 0's mesh on all ranks, texts, numbers and vectors of all patches in a list each. Collective.
/// O(patches + segments) words; a fixed number of broadcasts, in the same order on all ranks.
void broadcastMesh(CommunicatorView comm, PolyMesh &mesh) {
    constexpr std::size_t perPatch = 4;
    std::vector<std::string> texts{mesh.folder};
    std::vector<index> numbers;
    std::vector<Point> vectors;
    for (ListFile *list : {&mesh.points, &mesh.faces, &mesh.owner, &mesh.neighbour}) {
        texts.push_back(list->path);
        comm.broadcast(list->encoding);
        std::array<index, 4> rest{list->compact ? 1 : 0, list->uniform ? 1 : 0, list->count, list->corners};
        comm.broadcast(rest);
        list->compact = rest[0] != 0;
        list->uniform = rest[1] != 0;
        list->count = rest[2];
        list->corners = rest[3];
        broadcastList(comm, list->segments);
    }
    for (const Patch &patch : mesh.patches) {
        texts.insert(texts.end(), {patch.name, patch.type, patch.neighbour, patch.transform});
        numbers.insert(numbers.end(), {patch.begin, patch.size});
        vectors.insert(vectors.end(), {patch.axis, patch.centre});
    }
    broadcastStrings(comm, texts);
    broadcastList(comm, numbers);
    broadcastList(comm, vectors);
    auto text = texts.begin();
    mesh.folder = *text++;
    for (ListFile *list : {&mesh.points, &mesh.faces, &mesh.owner, &mesh.neighbour})
        list->path = *text++;
    mesh.patches.resize(static_cast<std::size_t>(texts.end() - text) / perPatch);
    for (std::size_t p = 0; p < mesh.patches.size(); p++, text += perPatch)
        mesh.patches[p] = {text[0],        text[1],           text[2], text[3], numbers[2 * p], numbers[2 * p + 1],
                           vectors[2 * p], vectors[2 * p + 1]};
}

/// `Real` is the type of numbers in the file.
template <class Real>
Point binaryPoint(FileCursor &cursor, bool swapped) {
    Point point;
    for (real &x : point) {
        x = cursor.value<Real>(swapped);
        if (!std::isfinite(x))
            cursor.fail(fmt::format("a coordinate is {}, which is not a finite number", x));
    }
    return point;
}

} // namespace

PolyMesh scanPolyMesh(CommunicatorView comm, const std::string &path, const std::string &region) {
    PolyMesh mesh;
    onRankZero(comm, [&] { mesh = scan(path, region, comm.size()); });
    broadcastMesh(comm, mesh);
    return mesh;
}

index takeLabel(FileCursor &cursor, const Encoding &encoding, std::string_view what, index lowest, index highest) {
    if (!encoding.binary)
        return takeInteger(cursor, what, lowest, highest);
    const index value = encoding.labelBytes == 4 ? index{cursor.value<std::int32_t>(encoding.swapped)}
                                                 : index{cursor.value<std::int64_t>(encoding.swapped)};
    if (value < lowest || value > highest)
        cursor.fail(fmt::format("{} is {}: it must lie in [{}, {}]", what, value, lowest, highest));
    return value;
}

Point takePoint(FileCursor &cursor, const Encoding &encoding) {
    if (encoding.binary)
        return encoding.scalarBytes == 4 ? binaryPoint<float>(cursor, encoding.swapped)
                                         : binaryPoint<double>(cursor, encoding.swapped);
    takeByte(cursor, '(');
    Point point;
    for (real &x : point)
        x = takeNumber(cursor, "a coordinate");
    takeByte(cursor, ')');
    return point;
}

} // namespace DNDS::Geom::Foam
