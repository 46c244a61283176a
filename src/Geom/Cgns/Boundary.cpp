#include "DNDS/Geom/Cgns/Boundary.hpp"

#include "DNDS/Geom/Source/IndexPermutation.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace DNDS::Geom::Cgns {

namespace {

/// Reads shares of point sets. All functions are Local.
/// Each rank takes an even share of each set, wherever its elements are: reading a list costs a rank its
/// length over the number of ranks.
class PointReader {
  public:
    PointReader(const CommunicatorView &comm, const Model &model, const Elements &elements, TreeSource &source)
        : comm_(comm), model_(model), source_(source),
          elements_(elements.cellTable.size() + elements.faceTable.size()) {}

    /// This rank's share of the numbers of a set: elements, or nodes, from 1 in the zone. Nodes that the zone does not
    /// have are left out and added to `*left`; without it they are an error.
    std::vector<index> numbers(const PointSet &points, int zone, const std::string &where, index *left = nullptr) const;
    /// This rank's share of the pairs of nodes, from 0 over all zones, that a structured connection joins.
    std::vector<std::pair<index, index>> gridPairs(const Connection &connection) const;
    /// Converts a node number from 1 in its zone to one from 0 over all zones.
    index node(int zone, index number) const {
        return model_.zones[static_cast<std::size_t>(zone)].firstNode + number - 1;
    }
    std::string text(const Connection &connection) const {
        return fmt::format("{}, connection '{}'", model_.zoneText(connection.zone), connection.name);
    }
    std::string text(const BoundaryCondition &condition) const {
        return fmt::format("{}, boundary condition '{}'", model_.zoneText(condition.zone), condition.name);
    }

  private:
    std::optional<index> numberOf(const Zone &zone, std::span<const index> indices, const std::string &where,
                                  bool mayLeave) const;

    const CommunicatorView &comm_;
    const Model &model_;
    TreeSource &source_;
    index elements_; ///< number of elements of the whole mesh
};

/// The number of a node given by its indices; nothing if it may leave the zone and does.
std::optional<index> PointReader::numberOf(const Zone &zone, std::span<const index> indices, const std::string &where,
                                           bool mayLeave) const {
    Triple at{1, 1, 1};
    for (std::size_t k = 0; k < indices.size(); k++) {
        at[k] = indices[k];
        if (at[k] >= 1 && at[k] <= zone.vertices[k])
            continue;
        DNDS_CHECK(mayLeave, DataError, "{}: index {} in a zone with {} nodes in that direction", where, at[k],
                   zone.vertices[k]);
        return std::nullopt;
    }
    return zone.nodeAt(at) + 1;
}

// O(share) time and memory: a list is read once over all ranks. With `left`, entries outside the zone are dropped
// and counted; without it the first one throws, and callers agree on the failure.
std::vector<index> PointReader::numbers(const PointSet &points, int zoneNumber, const std::string &where,
                                        index *left) const {
    const Zone &zone = model_.zones[static_cast<std::size_t>(zoneNumber)];
    Range share = EvenSplit(points.size(), comm_.size()).part(comm_.rank());
    std::vector<index> result;
    if (points.list == nullptr) {
        DNDS_CHECK(!points.vertices || points.last <= zone.nodes, DataError,
                   "{}: nodes {} to {} of a zone with {} nodes", where, points.first, points.last, zone.nodes);
        DNDS_CHECK(points.vertices || points.size() <= elements_, DataError, "{}: elements {} to {} do not exist",
                   where, points.first, points.last);
        for (index k = share.begin; k < share.end; k++)
            result.push_back(points.first + k);
        return result;
    }
    result.resize(static_cast<std::size_t>(share.size() * points.numbersEach));
    source_.read(*points.list, share.begin * points.numbersEach, std::span<index>(result));
    if (zone.structured) {
        const auto width = static_cast<std::size_t>(points.numbersEach);
        for (std::size_t k = 0; k < result.size() / width; k++)
            result[k] = numberOf(zone, std::span<const index>(result).subspan(k * width, width), where, left != nullptr)
                            .value_or(0);
        result.resize(result.size() / width);
    }
    if (!points.vertices)
        return result;
    const auto isOutside = [&](index number) { return number < 1 || number > zone.nodes; };
    if (left != nullptr) {
        *left += static_cast<index>(std::erase_if(result, isOutside));
        return result;
    }
    for (const index number : result)
        DNDS_CHECK(!isOutside(number), DataError, "{}: node {} of a zone with {} nodes", where, number, zone.nodes);
    return result;
}

/// Point `point` of the range, decoded by division with the extents; the donor's point follows along the transformed
/// axes. No file access.
/// O(own share). Invariant: extents of both ranges agree under the axes, as ModelBuilder has checked, so the
/// donor's point stays in its zone.
std::vector<std::pair<index, index>> PointReader::gridPairs(const Connection &connection) const {
    const auto &[from, to] = *connection.points.grid;
    const Triple &donorFrom = (*connection.donorPoints.grid)[0];
    const Zone &zone = model_.zones[static_cast<std::size_t>(connection.zone)];
    const Zone &donor = model_.zones[static_cast<std::size_t>(connection.donor)];
    const Range share = EvenSplit(connection.points.size(), comm_.size()).part(comm_.rank());
    std::vector<std::pair<index, index>> pairs;
    for (index point = share.begin; point < share.end; point++) {
        Triple at = from;
        Triple donorAt = donorFrom;
        index rest = point;
        for (std::size_t k = 0; k < static_cast<std::size_t>(zone.dimensions); k++) {
            const index steps = std::abs(to[k] - from[k]) + 1;
            const index step = (to[k] < from[k] ? -1 : 1) * (rest % steps);
            rest /= steps;
            at[k] += step;
            const auto axis = static_cast<std::size_t>(std::abs(connection.axes[k])) - 1;
            donorAt[axis] += connection.axes[k] < 0 ? -step : step;
        }
        pairs.emplace_back(zone.firstNode + zone.nodeAt(at), donor.firstNode + donor.nodeAt(donorAt));
    }
    return pairs;
}

// ---------------------------------------------------------------------------------------------------------------------
// Marks

/// " from A to B" of a range.
std::string rangeText(const PointSet &points) {
    return points.list == nullptr && !points.grid ? fmt::format(" from {} to {}", points.first, points.last) : "";
}

/// Shares of point sets are read where they are, and each mark is sent to the rank that read the element: one sparse
/// exchange of three words a mark. Ranges need no messages, as every rank can intersect them with its own elements.
/// Reading costs O(points / ranks) on each rank, however uneven the patches are; afterwards a rank has the marks of
/// its own elements only.
class MarkReader {
  public:
    MarkReader(CommunicatorContext &context, const Model &model, const Elements &elements, TreeSource &source)
        : context_(context), comm_(context.comm()), model_(model), elements_(elements),
          points_(context.comm(), model, elements, source) {}

    /// Mirrored connections are dropped first, as marks hold the numbers of the remaining ones. Conditions and periodic
    /// sides share one exchange; afterwards each rank has the marks of its own elements.
    Marks read() {
        notFaces_.assign(model_.conditions.size(), 0);
        std::vector<PeriodicSides> sides;
        comm_.guarded([&] { sides = readPeriodicSides(); });
        dropMirrored(sides);
        Outbox marked;
        comm_.guarded([&] {
            for (std::size_t k = 0; k < model_.conditions.size(); k++)
                markCondition(static_cast<int>(k), marked);
            markPeriodic(sides, marked);
        });
        const RankLists arrived = sparseExchange(context_, marked.take());
        for (std::size_t i = 0; i < arrived.values.size(); i += 3)
            mark(arrived.values[i], static_cast<int>(arrived.values[i + 1]), static_cast<int>(arrived.values[i + 2]));
        sortMarks();
        warnOfOthers();
        choosePatches();
        return std::move(marks_);
    }

  private:
    /// This rank's share of both sides of a periodic connection.
    struct PeriodicSides {
        const Connection *connection;
        std::array<std::vector<index>, 2> numbers;
        std::array<std::uint64_t, 2> hashes{}; ///< hashes of the sets, over all ranks
    };
    static constexpr int noCondition = -1;

    // Local: reads this rank's shares and hashes them.
    std::vector<PeriodicSides> readPeriodicSides() const;
    // Collective.
    void dropMirrored(std::vector<PeriodicSides> &sides);
    void markPeriodic(const std::vector<PeriodicSides> &sides, Outbox &marked);
    void markSide(const PeriodicSides &sides, std::size_t side, int mark, Outbox &marked);
    void markCondition(int number, Outbox &marked);
    void markRange(const SectionTable &table, const ElementRun &run, int zone, index first, index last, int mark,
                   int condition);
    // Marks this rank's elements of a section in the list of faces.
    void markSection(int section, int mark);
    // Adds a record for the rank that has the element: key, mark, condition.
    void addressMark(int zone, index id, int mark, int condition, Outbox &marked);
    void mark(index key, int mark, int condition);
    // Each face once for each mark, in order.
    void sortMarks();
    index missing(const BoundaryCondition &condition) const;
    // Collective: a warning for each condition with points that are no faces.
    void warnOfOthers();
    void choosePatches();

    CommunicatorContext &context_;
    const CommunicatorView &comm_;
    const Model &model_;
    const Elements &elements_;
    PointReader points_;
    Marks marks_;
    std::vector<index> notFaces_; ///< [conditions]: elements that are not faces, or nodes that do not exist
};

/// The hash of a set is the sum of the hashes of its numbers: it does not depend on order, and shares of ranks add
/// up.
std::vector<MarkReader::PeriodicSides> MarkReader::readPeriodicSides() const {
    std::vector<PeriodicSides> all;
    for (const Connection &connection : model_.connections) {
        if (!connection.periodic)
            continue;
        PeriodicSides sides{&connection, {}, {}};
        if (connection.points.grid) {
            for (const auto &[a, b] : points_.gridPairs(connection)) {
                sides.numbers[0].push_back(a);
                sides.numbers[1].push_back(b);
            }
        } else {
            const std::string where = points_.text(connection);
            sides.numbers = {points_.numbers(connection.points, connection.zone, where),
                             points_.numbers(connection.donorPoints, connection.donor, where)};
        }
        for (std::size_t side = 0; side < 2; side++)
            for (const index number : sides.numbers[side])
                sides.hashes[side] += mixBits(static_cast<std::uint64_t>(number));
        all.push_back(std::move(sides));
    }
    return all;
}

/// Files often store a connection once per side; two whose sides are the same sets, swapped, are one.
/// Sets are compared by 64-bit sums, so two different ones could be taken for equal; with the sizes equal as well,
/// the chance is about 2^-64.
void MarkReader::dropMirrored(std::vector<PeriodicSides> &sides) {
    for (PeriodicSides &side : sides)
        comm_.allReduce(side.hashes.data(), 2, MPI_SUM);
    const auto mirrors = [](const PeriodicSides &a, const PeriodicSides &b) {
        return a.connection->zone == b.connection->donor && a.connection->donor == b.connection->zone &&
               a.connection->points.vertices == b.connection->points.vertices &&
               a.connection->points.size() == b.connection->points.size() && a.hashes[0] == b.hashes[1] &&
               a.hashes[1] == b.hashes[0];
    };
    std::vector<PeriodicSides> kept;
    for (PeriodicSides &side : sides)
        if (std::none_of(kept.begin(), kept.end(), [&](const PeriodicSides &other) { return mirrors(other, side); }))
            kept.push_back(std::move(side));
    sides = std::move(kept);
}

// Marks of sides are negative: -1 - 2 c for the first side of connection c, -2 - 2 c for the second.
void MarkReader::markPeriodic(const std::vector<PeriodicSides> &sides, Outbox &marked) {
    for (std::size_t c = 0; c < sides.size(); c++) {
        marks_.periodic.push_back({sides[c].connection->name, *sides[c].connection->periodic});
        for (std::size_t side = 0; side < 2; side++)
            markSide(sides[c], side, -1 - (2 * static_cast<int>(c) + static_cast<int>(side)), marked);
    }
}

// Sides of structured zones are sections of their own; others name nodes or elements.
void MarkReader::markSide(const PeriodicSides &sides, std::size_t side, int mark, Outbox &marked) {
    const Connection &connection = *sides.connection;
    const int zone = side == 0 ? connection.zone : connection.donor;
    if (connection.sections[side] >= 0)
        return markSection(connection.sections[side], mark);
    const bool vertices = side == 0 ? connection.points.vertices : connection.donorPoints.vertices;
    for (const index number : sides.numbers[side])
        if (vertices)
            marks_.nodes.push_back({mark, points_.node(zone, number)});
        else
            addressMark(zone, number, mark, noCondition, marked);
}

/// Ranges of elements go directly to the elements of this rank; lists and vertices are read in shares.
void MarkReader::markCondition(int number, Outbox &marked) {
    const BoundaryCondition &condition = model_.conditions[static_cast<std::size_t>(number)];
    const PointSet &points = condition.points;
    if (condition.section >= 0)
        return markSection(condition.section, condition.patch);
    if (points.vertices || points.list != nullptr) {
        index &left = notFaces_[static_cast<std::size_t>(number)];
        for (const index point : points_.numbers(points, condition.zone, points_.text(condition), &left))
            if (points.vertices)
                marks_.nodes.push_back({condition.patch, points_.node(condition.zone, point)});
            else
                addressMark(condition.zone, point, condition.patch, number, marked);
        return;
    }
    markRange(elements_.cellTable, elements_.cells, condition.zone, points.first, points.last, condition.patch, number);
    markRange(elements_.faceTable, elements_.faces, condition.zone, points.first, points.last, condition.patch, number);
}

/// Intersects three ranges: the section, this rank's run, and the set.
/// O(sections + marked elements of this rank). Elements of a range that no section has are counted by `missing`.
void MarkReader::markRange(const SectionTable &table, const ElementRun &run, int zone, index first, index last,
                           int mark, int condition) {
    for (std::size_t k = 0; k < table.sections().size(); k++) {
        const Section &section = table.sections()[k];
        if (section.zone != zone || section.kind == SectionKind::Patch)
            continue;
        const index begin = std::max({table.begin(k), run.first(), table.begin(k) + first - section.firstId});
        const index end =
            std::min({table.end(k), run.first() + run.size(), table.begin(k) + last + 1 - section.firstId});
        for (index ordinal = begin; ordinal < end; ordinal++)
            this->mark(ElementKey::make(ordinal, &run == &elements_.cells), mark, condition);
    }
}

// Sections made for one condition hold its faces and no others.
void MarkReader::markSection(int section, int mark) {
    const auto k = static_cast<std::size_t>(section);
    const index begin = std::max(elements_.faceTable.begin(k), elements_.faces.first());
    const index end = std::min(elements_.faceTable.end(k), elements_.faces.first() + elements_.faces.size());
    for (index ordinal = begin; ordinal < end; ordinal++)
        this->mark(ElementKey::make(ordinal, false), mark, noCondition);
}

/// Faces first: the numbers of a zone are unique over both lists, but most marks name faces.
void MarkReader::addressMark(int zone, index id, int mark, int condition, Outbox &marked) {
    index ordinal = elements_.faceTable.find(zone, id);
    const bool inCells = ordinal == SectionTable::none;
    if (inCells)
        ordinal = elements_.cellTable.find(zone, id);
    if (ordinal == SectionTable::none) {
        DNDS_CHECK(condition != noCondition, DataError,
                   "{}: a periodic connection names element {}, which is not a face", model_.zoneText(zone), id);
        notFaces_[static_cast<std::size_t>(condition)]++;
        return;
    }
    const ElementRun &run = inCells ? elements_.cells : elements_.faces;
    std::vector<index> &record = marked.to(run.mapping->owner(ordinal).rank);
    record.insert(record.end(), {ElementKey::make(ordinal, inCells), mark, condition});
}

/// `key` names an element of this rank.
void MarkReader::mark(index key, int mark, int condition) {
    const bool inCells = ElementKey::inCells(key);
    const ElementRun &run = inCells ? elements_.cells : elements_.faces;
    const index element = ElementKey::ordinal(key) - run.first();
    if (elementInfo(run.types[static_cast<std::size_t>(element)]).dimension == model_.cellDimension - 1)
        marks_.faces.push_back({inCells, element, mark});
    else if (condition != noCondition)
        notFaces_[static_cast<std::size_t>(condition)]++;
}

/// Duplicates come from overlapping sets of one patch.
/// O(marks log marks). The order (list, element, mark) is that in which Assemble numbers faces; marks of a face are
/// contiguous.
void MarkReader::sortMarks() {
    const auto key = [](const MarkedElement &face) { return std::tuple(!face.inCells, face.element, face.mark); };
    std::sort(marks_.faces.begin(), marks_.faces.end(),
              [&](const MarkedElement &a, const MarkedElement &b) { return key(a) < key(b); });
    marks_.faces.erase(std::unique(marks_.faces.begin(), marks_.faces.end(),
                                   [&](const MarkedElement &a, const MarkedElement &b) { return key(a) == key(b); }),
                       marks_.faces.end());
}

/// The number of elements in a range that no section has.
index MarkReader::missing(const BoundaryCondition &condition) const {
    const PointSet &points = condition.points;
    if (condition.section >= 0 || points.vertices || points.list != nullptr)
        return 0;
    index found = 0;
    for (const SectionTable *table : {&elements_.cellTable, &elements_.faceTable})
        for (const Section &section : table->sections())
            if (section.zone == condition.zone && section.kind != SectionKind::Patch)
                found += std::max<index>(0, std::min(points.last, section.firstId + section.size - 1) -
                                                std::max(points.first, section.firstId) + 1);
    return points.size() - found;
}

// Files without conditions are exempt: there, MIXED sections count as conditions although most of their elements are
// cells.
void MarkReader::warnOfOthers() {
    comm_.allReduce(notFaces_.data(), static_cast<int>(notFaces_.size()), MPI_SUM);
    for (std::size_t k = 0; k < model_.conditions.size(); k++)
        notFaces_[k] += missing(model_.conditions[k]);
    for (std::size_t k = 0; k < model_.conditions.size() && !model_.patchesAreSections; k++)
        if (notFaces_[k] > 0)
            marks_.warnings.push_back(fmt::format(
                "{}: {} of its {} {}{} {}", points_.text(model_.conditions[k]), notFaces_[k],
                model_.conditions[k].points.size(), model_.conditions[k].points.vertices ? "nodes" : "elements",
                rangeText(model_.conditions[k].points),
                model_.conditions[k].points.vertices ? "do not exist in its zone" : "are not faces"));
}

/// For files without conditions: faces of periodic sides are taken out of the patches of their sections, and patches
/// without faces are dropped, on all ranks alike.
/// One reduction of a count a patch; all ranks drop the same patches and renumber alike.
void MarkReader::choosePatches() {
    marks_.patches = model_.patches;
    if (!model_.patchesAreSections)
        return;
    // Marks of a face are ascending: those of periodic sides come first.
    const MarkedElement *before = nullptr;
    std::vector<MarkedElement> kept;
    for (const MarkedElement &face : marks_.faces) {
        const bool periodic =
            before != nullptr && before->mark < 0 && before->inCells == face.inCells && before->element == face.element;
        if (face.mark < 0 || !periodic)
            kept.push_back(face);
        if (!periodic || face.mark < 0)
            before = &face;
    }
    marks_.faces = std::move(kept);
    std::vector<index> counts(model_.patches.size(), 0);
    for (const MarkedElement &face : marks_.faces)
        if (face.mark >= 0)
            ++counts[static_cast<std::size_t>(face.mark)];
    comm_.allReduce(counts.data(), static_cast<int>(counts.size()), MPI_SUM);
    std::vector<int> renumbered(counts.size(), 0);
    marks_.patches.clear();
    for (std::size_t k = 0; k < counts.size(); k++) {
        renumbered[k] = static_cast<int>(marks_.patches.size());
        if (counts[k] > 0)
            marks_.patches.push_back(model_.patches[k]);
    }
    for (MarkedElement &face : marks_.faces)
        if (face.mark >= 0)
            face.mark = renumbered[static_cast<std::size_t>(face.mark)];
}

} // namespace

Marks readMarks(CommunicatorContext &context, const Model &model, const Elements &elements, TreeSource &source) {
    return MarkReader(context, model, elements, source).read();
}

/// Entry k of one list belongs to entry k of the other; both lists are split in the same way, so a rank has both ends
/// of its pairs.
/// O(points / ranks) time and memory; no messages but the agreement of `guarded`.
JoinPairs readJoins(CommunicatorContext &context, const Model &model, const Elements &elements, TreeSource &source) {
    const PointReader points(context.comm(), model, elements, source);
    JoinPairs joins;
    // Faces of a connection may be in MIXED sections, hence in either list.
    const auto faceKey = [&](int zone, index id, const Connection &connection) {
        const index face = elements.faceTable.find(zone, id);
        const index other = face == SectionTable::none ? elements.cellTable.find(zone, id) : SectionTable::none;
        DNDS_CHECK(face != SectionTable::none || other != SectionTable::none, DataError,
                   "{}: element {} of zone '{}' is not a face", points.text(connection), id,
                   model.zones[static_cast<std::size_t>(zone)].name);
        return face != SectionTable::none ? ElementKey::make(face, false) : ElementKey::make(other, true);
    };
    // This rank's share of the faces of a side.
    const auto faceKeys = [&](const Connection &connection, std::size_t side) {
        const PointSet &set = side == 0 ? connection.points : connection.donorPoints;
        const int zone = side == 0 ? connection.zone : connection.donor;
        std::vector<index> keys;
        if (const int section = connection.sections[side]; section >= 0) {
            const index begin = elements.faceTable.begin(static_cast<std::size_t>(section));
            const Range share = EvenSplit(set.size(), context.comm().size()).part(context.comm().rank());
            for (index k = share.begin; k < share.end; k++)
                keys.push_back(ElementKey::make(begin + k, false));
            return keys;
        }
        for (const index number : points.numbers(set, zone, points.text(connection)))
            keys.push_back(faceKey(zone, number, connection));
        return keys;
    };
    context.comm().guarded([&] {
        for (std::size_t c = 0; c < model.connections.size(); c++) {
            const Connection &connection = model.connections[c];
            if (connection.periodic)
                continue;
            if (connection.points.grid) {
                const auto pairs = points.gridPairs(connection);
                joins.nodes.insert(joins.nodes.end(), pairs.begin(), pairs.end());
                continue;
            }
            const std::string where = points.text(connection);
            if (connection.points.vertices) {
                const std::vector<index> own = points.numbers(connection.points, connection.zone, where);
                const std::vector<index> donor = points.numbers(connection.donorPoints, connection.donor, where);
                for (std::size_t k = 0; k < own.size(); k++)
                    joins.nodes.emplace_back(points.node(connection.zone, own[k]),
                                             points.node(connection.donor, donor[k]));
                continue;
            }
            const std::vector<index> own = faceKeys(connection, 0);
            const std::vector<index> donor = faceKeys(connection, 1);
            for (std::size_t k = 0; k < own.size(); k++)
                joins.faces.push_back({static_cast<int>(c), own[k], donor[k]});
        }
    });
    return joins;
}

} // namespace DNDS::Geom::Cgns
