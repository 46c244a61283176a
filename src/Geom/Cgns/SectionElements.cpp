#include "DNDS/Geom/Cgns/SectionElements.hpp"
#include "DNDS/Base/Error.hpp"

#include <algorithm>

namespace DNDS::Geom::Cgns {

SectionTable::SectionTable(const std::vector<Section> &sections) : sections_(&sections) {
    for (std::size_t k = 0; k < sections.size(); k++) {
        // Patches have ordinals but no numbers of the file, so they cannot be found.
        offsets_.push_back(offsets_.back() + sections[k].size);
        if (sections[k].kind != SectionKind::Patch && sections[k].size > 0)
            byLastId_[{sections[k].zone, sections[k].firstId + sections[k].size - 1}] = k;
    }
}

// The last section that begins at or before it; empty sections are passed over.
std::size_t SectionTable::sectionOf(index ordinal) const {
    return static_cast<std::size_t>(std::upper_bound(offsets_.begin(), offsets_.end(), ordinal) - offsets_.begin()) - 1;
}

// The first section of the zone that ends at or after `id`; there may be a gap before it.
index SectionTable::find(int zone, index id) const {
    const auto found = byLastId_.lower_bound({zone, id});
    if (found == byLastId_.end() || found->first.first != zone)
        return none;
    const Section &section = (*sections_)[found->second];
    return id < section.firstId ? none : offsets_[found->second] + id - section.firstId;
}

index SectionTable::idOf(index ordinal) const {
    const std::size_t k = sectionOf(ordinal);
    const Section &section = (*sections_)[k];
    return section.kind == SectionKind::Patch ? 0 : section.firstId + ordinal - offsets_[k];
}

namespace {

/// The position of the next rank's first element in an old section, and the number of elements before it.
struct StreamState {
    index position = 0;
    index elements = 0;
    index intact = 1; ///< 0 after a rank has failed
};

class ElementReader {
  public:
    ElementReader(CommunicatorContext &context, const Model &model, const SectionTable &table,
                  const SectionTable &faces, TreeSource &source)
        : comm_(context.comm()), channel_(context.nextChannel()), model_(model), table_(table), faces_(faces),
          source_(source) {}

    /// Sections in order; only streams need messages. A failure is kept until all are done, then agreed on.
    ElementRun read() {
        comm_.beforeCollective(); // other ranks wait for this rank's part of old sections
        const Range own = EvenSplit(table_.size(), comm_.size()).part(comm_.rank());
        for (std::size_t k = own.size() > 0 ? table_.sectionOf(own.begin) : 0;
             k < table_.sections().size() && own.size() > 0 && table_.begin(k) < own.end; k++) {
            const Range part{std::max(own.begin, table_.begin(k)) - table_.begin(k),
                             std::min(own.end, table_.end(k)) - table_.begin(k)};
            if (part.size() > 0)
                readPart(k, part);
        }
        comm_.agree(failure_);
        return std::move(run_);
    }

  private:
    void readPart(std::size_t k, const Range &part);
    void readFixed(const Section &section, const Range &part);
    void readOffsets(const Section &section, const Range &part);
    void readStream(std::size_t k, const Range &part);
    std::vector<index> readWords(const Section &section, const Range &words, std::exception_ptr &failure);
    void walkStream(const Section &section, const Range &words, std::vector<index> &numbers, StreamState &state);
    void makeStructured(const Section &section, const Range &part);
    void makePatch(const Section &section, const Range &part);

    std::vector<index> offsetsOf(const Section &section, const Range &part);
    /// The type and the number of nodes that the first word of an element of a MIXED section encodes.
    std::pair<ElementType, index> mixedType(const Section &section, index id, index code) const;
    void appendElement(const Section &section, index id, ElementType type, std::span<const index> numbers);
    index nodeOf(const Section &section, index id, index number) const;
    index faceOf(const Section &section, index id, index number) const;

    const CommunicatorView &comm_;
    Channel channel_;
    const Model &model_;
    const SectionTable &table_;
    const SectionTable &faces_;
    TreeSource &source_;
    ElementRun run_;
    std::exception_ptr failure_;
};

void ElementReader::readPart(std::size_t k, const Range &part) {
    const Section &section = table_.sections()[k];
    if (section.kind == SectionKind::Stream)
        return readStream(k, part); // other ranks wait for the result
    if (failure_)
        return;
    attempt(failure_, [&] {
        switch (section.kind) {
        case SectionKind::Fixed:
            return readFixed(section, part);
        case SectionKind::Offsets:
            return readOffsets(section, part);
        case SectionKind::Structured:
            return makeStructured(section, part);
        case SectionKind::Patch:
            return makePatch(section, part);
        default: // polyhedra of parents, faces of cells: read later
            run_.types.insert(run_.types.end(), static_cast<std::size_t>(part.size()), section.type);
            run_.starts.insert(run_.starts.end(), static_cast<std::size_t>(part.size()), run_.starts.back());
        }
    });
}

// From a number in the zone to one over all zones.
index ElementReader::nodeOf(const Section &section, index id, index number) const {
    const Zone &zone = model_.zones[static_cast<std::size_t>(section.zone)];
    DNDS_CHECK(number >= 1 && number <= zone.nodes, DataError, "{}, element {}: node {} of a zone with {} nodes",
               model_.sectionText(section), id, number, zone.nodes);
    return zone.firstNode + number - 1;
}

// From a number in the zone to the ordinal of a face, plus 1; the sign is kept.
index ElementReader::faceOf(const Section &section, index id, index number) const {
    const bool inward = number < 0;
    const index ordinal = number == std::numeric_limits<index>::min() || number == 0
                              ? SectionTable::none
                              : faces_.find(section.zone, inward ? -number : number);
    DNDS_CHECK(ordinal != SectionTable::none, DataError, "{}, element {}: there is no face {}",
               model_.sectionText(section), id, number);
    return inward ? -(ordinal + 1) : ordinal + 1;
}

void ElementReader::appendElement(const Section &section, index id, ElementType type, std::span<const index> numbers) {
    run_.types.push_back(type);
    const std::size_t fewest = type == ElementType::Polyhedron ? 4 : type == ElementType::Polygon ? 3 : 1;
    const bool edge = section.type == ElementType::Polygon && model_.cellDimension == 2;
    DNDS_CHECK(numbers.size() >= fewest, DataError, "{}, element {}: a {} of {} {}", model_.sectionText(section), id,
               type == ElementType::Polyhedron ? "polyhedron" : "polygon", numbers.size(),
               type == ElementType::Polyhedron ? "faces"
               : edge                          ? "edges"
                                               : "corners");
    for (const index number : numbers)
        run_.nodes.push_back(type == ElementType::Polyhedron ? faceOf(section, id, number)
                                                             : nodeOf(section, id, number));
    run_.starts.push_back(static_cast<index>(run_.nodes.size()));
}

void ElementReader::readFixed(const Section &section, const Range &part) {
    const index width = section.nodes;
    const std::size_t before = run_.nodes.size();
    run_.nodes.resize(before + static_cast<std::size_t>(part.size() * width));
    const auto nodes = std::span<index>(run_.nodes).subspan(before);
    source_.read(*section.connectivity, part.begin * width, nodes);
    run_.types.insert(run_.types.end(), static_cast<std::size_t>(part.size()), section.type);
    std::size_t kept = before;
    for (index e = 0; e < part.size(); e++) {
        const auto own = nodes.subspan(static_cast<std::size_t>(e * width), static_cast<std::size_t>(width));
        // Some programs write zeros for nodes if the parents already identify the face.
        if (!section.byParents || std::any_of(own.begin(), own.end(), [](index node) { return node != 0; }))
            for (const index number : own)
                run_.nodes[kept++] = nodeOf(section, section.firstId + part.begin + e, number);
        run_.starts.push_back(static_cast<index>(kept));
    }
    run_.nodes.resize(kept);
}

std::vector<index> ElementReader::offsetsOf(const Section &section, const Range &part) {
    std::vector<index> offsets(static_cast<std::size_t>(part.size()) + 1);
    source_.read(*section.offsets, part.begin, std::span<index>(offsets));
    const index words = section.words();
    for (index e = part.begin; e < part.end; e++) { // each by itself, so that all partitions find the same first one
        const index start = offsets[static_cast<std::size_t>(e - part.begin)];
        const index end = offsets[static_cast<std::size_t>(e - part.begin) + 1];
        DNDS_CHECK(
            start >= 0 && start <= end && end <= words && (e > 0 || start == 0) &&
                (e + 1 < section.size || end == words),
            DataError,
            "{}, element {}: it is from {} to {} of the {} numbers of connectivity, as the start offsets have it",
            model_.sectionText(section), section.firstId + e, start, end, words);
    }
    return offsets;
}

void ElementReader::readOffsets(const Section &section, const Range &part) {
    const std::vector<index> offsets = offsetsOf(section, part);
    std::vector<index> numbers(static_cast<std::size_t>(offsets.back() - offsets.front()));
    source_.read(*section.connectivity, offsets.front(), std::span<index>(numbers));
    for (index e = 0; e < part.size(); e++) {
        const auto k = static_cast<std::size_t>(e);
        const index id = section.firstId + part.begin + e;
        std::span<const index> element(numbers);
        element = element.subspan(static_cast<std::size_t>(offsets[k] - offsets.front()),
                                  static_cast<std::size_t>(offsets[k + 1] - offsets[k]));
        ElementType type = section.type;
        if (type == ElementType::Mixed) {
            const auto [mixed, nodes] = mixedType(section, id, element.empty() ? -1 : element.front());
            element = element.subspan(1);
            DNDS_CHECK(static_cast<index>(element.size()) == nodes, DataError, "{}, element {}: {} with {} nodes",
                       model_.sectionText(section), id, elementInfo(mixed).name, element.size());
            type = mixed;
        }
        appendElement(section, id, type, element);
    }
}

// Old files add the number of corners to the code of polygons.
std::pair<ElementType, index> ElementReader::mixedType(const Section &section, index id, index code) const {
    if (const index corners = model_.polygonCorners(code); corners > 0)
        return {ElementType::Polygon, corners};
    const index given = code;
    code = model_.typeCode(code);
    DNDS_CHECK(code >= 0 && code < 1000 && isElementType(static_cast<int>(code)) &&
                   elementInfo(static_cast<ElementType>(code)).nodes > 0,
               DataError, "{}, element {} of a MIXED section: {}", model_.sectionText(section), id,
               unsupportedType(given));
    const auto type = static_cast<ElementType>(code);
    return {type, elementInfo(type).nodes};
}

std::vector<index> ElementReader::readWords(const Section &section, const Range &words, std::exception_ptr &failure) {
    std::vector<index> numbers;
    if (!failure)
        attempt(failure, [&] {
            numbers.resize(static_cast<std::size_t>(words.size()));
            source_.read(*section.connectivity, words.begin, std::span<index>(numbers));
        });
    return numbers;
}

/// Elements of old sections are found only one after the other. Ranks read their parts of the numbers concurrently;
/// then the position of the next element is sent from rank to rank, and each walks through its part in memory.
void ElementReader::readStream(std::size_t k, const Range &part) {
    const Section &section = table_.sections()[k];
    // Numbers are divided in proportion to elements, whose places are not known yet; the product may exceed 64 bits.
    const auto wordOf = [&](index element) {
        return static_cast<index>(static_cast<long double>(element) / static_cast<long double>(section.size) *
                                  static_cast<long double>(section.words()));
    };
    const Range words{wordOf(part.begin), part.end == section.size ? section.words() : wordOf(part.end)};
    std::vector<index> numbers = readWords(section, words, failure_);

    StreamState state;
    constexpr int count = 3;
    if (part.begin > 0) {
        const int previous = EvenSplit(table_.size(), comm_.size()).owner(table_.begin(k) + part.begin - 1);
        checkMpi(MPI_Recv(&state, count, mpiTypeOf<index>(), previous, channel_.tag, channel_.comm, MPI_STATUS_IGNORE),
                 "MPI_Recv");
    }
    if (failure_ || state.intact == 0)
        state.intact = 0;
    else
        try {
            walkStream(section, words, numbers, state);
            DNDS_CHECK(part.end < section.size || state.elements == section.size, DataError,
                       "{}: it states {} elements, but its connectivity holds {}", model_.sectionText(section),
                       section.size, state.elements);
        } catch (...) {
            failure_ = std::current_exception();
        }
    // The next rank must not start from a wrong place.
    if (failure_)
        state.intact = 0;
    if (part.end < section.size) {
        const int next = EvenSplit(table_.size(), comm_.size()).owner(table_.begin(k) + part.end);
        checkMpi(MPI_Send(&state, count, mpiTypeOf<index>(), next, channel_.tag, channel_.comm), "MPI_Send");
    }
}

/// Takes the elements that begin in `words`, which start at `state`, and moves `state` past them.
void ElementReader::walkStream(const Section &section, const Range &words, std::vector<index> &numbers,
                               StreamState &state) {
    while (state.position < words.end) {
        const index id = section.firstId + state.elements;
        const auto at = static_cast<std::size_t>(state.position - words.begin);
        const auto [type, length] = section.type == ElementType::Mixed ? mixedType(section, id, numbers[at])
                                                                       : std::pair(section.type, numbers[at]);
        DNDS_CHECK(length >= 0 && length < section.words() - state.position && state.elements < section.size, DataError,
                   "{}, element {}: it is longer than the rest of the section", model_.sectionText(section), id);
        const index end = state.position + 1 + length;
        if (end > words.begin + static_cast<index>(numbers.size())) { // the last element: the rest of it
            const index have = words.begin + static_cast<index>(numbers.size());
            numbers.resize(static_cast<std::size_t>(end - words.begin));
            source_.read(*section.connectivity, have,
                         std::span<index>(numbers).subspan(static_cast<std::size_t>(have - words.begin)));
        }
        appendElement(section, id, type,
                      std::span<const index>(numbers).subspan(at + 1, static_cast<std::size_t>(length)));
        state.position = end;
        state.elements++;
    }
}

// The first index varies fastest; corners are in the order of QUAD_4 and HEXA_8.
void ElementReader::makeStructured(const Section &section, const Range &part) {
    const Zone &zone = model_.zones[static_cast<std::size_t>(section.zone)];
    const index cellsI = zone.vertices[0] - 1;
    const index cellsJ = zone.vertices[1] - 1;
    for (index cell = part.begin; cell < part.end; cell++) {
        const Triple at{cell % cellsI + 1, cell / cellsI % cellsJ + 1,
                        section.nodes == 8 ? cell / cellsI / cellsJ + 1 : 1};
        for (index level = 0; level < (section.nodes == 8 ? 2 : 1); level++)
            for (const auto &[i, j] : {std::pair<index, index>{0, 0}, {1, 0}, {1, 1}, {0, 1}})
                run_.nodes.push_back(zone.firstNode + zone.nodeAt({at[0] + i, at[1] + j, at[2] + level}));
        run_.types.push_back(section.type);
        run_.starts.push_back(static_cast<index>(run_.nodes.size()));
    }
}

/// Normals point out of the zone if the zone is right-handed.
void ElementReader::makePatch(const Section &section, const Range &part) {
    const Zone &zone = model_.zones[static_cast<std::size_t>(section.zone)];
    const auto dimensions = static_cast<std::size_t>(zone.dimensions);
    const auto normal = static_cast<std::size_t>(section.normal);
    // Directions of the patch; (u, v, normal) is a cyclic order of (i, j, k).
    const std::size_t u = dimensions == 2 ? 1 - normal : (normal + 1) % 3;
    const std::size_t v = (normal + 2) % 3;
    std::vector<index> listed;
    if (section.corners != nullptr) {
        listed.resize(static_cast<std::size_t>(part.size()) * dimensions);
        source_.read(*section.corners, part.begin * static_cast<index>(dimensions), std::span<index>(listed));
    }
    for (index face = part.begin; face < part.end; face++) {
        Triple at = section.low;
        if (section.corners != nullptr) {
            for (std::size_t d = 0; d < dimensions; d++) {
                const index given = listed[static_cast<std::size_t>(face - part.begin) * dimensions + d];
                DNDS_CHECK(given >= 1 && given <= section.high[d], DataError,
                           "{}, {} '{}': face {} of its list has index {}, which leaves the zone",
                           model_.zoneText(section.zone), section.listedBy, section.name, face + 1, given);
                at[d] = given + (d == normal ? section.shift : 0);
            }
        } else {
            const index alongU = section.high[u] - section.low[u] + 1;
            const index alongV = dimensions == 3 ? section.high[v] - section.low[v] + 1 : 1;
            at[u] += face % alongU;
            if (dimensions == 3)
                at[v] += face / alongU % alongV;
            at[normal] += face / alongU / alongV;
        }
        // At the low side the normal (u x v) points into the zone.
        const bool atLow = at[normal] == 1;
        std::vector<Triple> corners(static_cast<std::size_t>(section.nodes), at);
        corners[1][u]++;
        if (dimensions == 3) {
            corners[2][u]++;
            corners[2][v]++;
            corners[3][v]++;
        }
        if (dimensions == 3 ? atLow : atLow == (normal == 0))
            std::reverse(corners.begin(), corners.end());
        for (const Triple &corner : corners)
            run_.nodes.push_back(zone.firstNode + zone.nodeAt(corner));
        run_.types.push_back(section.type);
        run_.starts.push_back(static_cast<index>(run_.nodes.size()));
    }
}

} // namespace

ElementRun readElements(CommunicatorContext &context, const Model &model, const SectionTable &table,
                        const SectionTable &faces, TreeSource &source) {
    ElementRun run = ElementReader(context, model, table, faces, source).read();
    run.mapping = GlobalMapping::create(context.comm(), run.size());
    return run;
}

std::span<const index> ElementRows::row(index ordinal) const {
    const auto found = std::lower_bound(ordinals.begin(), ordinals.end(), ordinal);
    DNDS_CHECK(found != ordinals.end() && *found == ordinal, StateError, "element {} was not fetched", ordinal);
    const auto k = static_cast<std::size_t>(found - ordinals.begin());
    return std::span<const index>(nodes).subspan(static_cast<std::size_t>(starts[k]),
                                                 static_cast<std::size_t>(starts[k + 1] - starts[k]));
}

ElementRows fetchElements(CommunicatorContext &context, const ElementRun &run, std::vector<index> ordinals) {
    ElementRows rows;
    // Ascending ordinals belong to ascending ranks: the answers come in the order of the ordinals.
    queryOwners(
        context, ordinals.size(), [&](std::size_t i) { return run.mapping->owner(ordinals[i]).rank; },
        [&](std::size_t i) { return ordinals[i]; },
        [&](index ordinal, std::vector<index> &reply) {
            const auto nodes = run.nodesOf(ordinal - run.first());
            reply.push_back(static_cast<index>(nodes.size()));
            reply.insert(reply.end(), nodes.begin(), nodes.end());
        },
        [&](std::size_t, RecordReader &reader) {
            const auto nodes = reader.next(reader.next());
            rows.nodes.insert(rows.nodes.end(), nodes.begin(), nodes.end());
            rows.starts.push_back(static_cast<index>(rows.nodes.size()));
        });
    rows.ordinals = std::move(ordinals);
    return rows;
}

} // namespace DNDS::Geom::Cgns
