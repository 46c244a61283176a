/// @file SectionElements.hpp
/// @brief The elements of many sections as one list distributed over ranks, and each rank's part of it.
#pragma once

#include "DNDS/Geom/Cgns/Model.hpp"
#include "DNDS/Geom/Cgns/TreeSource.hpp"
#include "DNDS/Index/Mappings.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <map>
#include <memory>
#include <span>
#include <vector>

namespace DNDS::Geom::Cgns {

using Range = IndexRange;

/// The sections of a list and the ordinals of their elements in the whole list, from 0.
/// Ordinals number the elements of all sections of a list, in the order of the list: the numbering in which ranks
/// share out elements, evenly and across sections. Refers to the sections, which must stay where they are.
class SectionTable {
  public:
    explicit SectionTable(const std::vector<Section> &sections);

    const std::vector<Section> &sections() const noexcept { return *sections_; }
    index size() const noexcept { return offsets_.back(); }
    /// Ordinals of section `section` are [begin, end).
    index begin(std::size_t section) const { return offsets_[section]; }
    index end(std::size_t section) const { return offsets_[section + 1]; }
    /// The section of an element of the list. O(log sections).
    std::size_t sectionOf(index ordinal) const;

    static constexpr index none = -1;
    /// The element with this number in its zone; `none` if the list has none. O(log sections).
    index find(int zone, index id) const;
    /// The number of an element in its zone; 0 for the faces of structured zones, which have none.
    index idOf(index ordinal) const;

  private:
    const std::vector<Section> *sections_;
    /// [sections + 1] the ordinal of each section's first element.
    std::vector<index> offsets_{0};
    /// Sections by {zone, number of the last element}: the first entry at or after {zone, id} is the only candidate,
    /// as ranges are disjoint.
    std::map<std::pair<int, index>, std::size_t> byLastId_;
};

/// The elements of a list that this rank has read: contiguous, in order of rank.
/// CSR rows, encoded as in ElementBlock once faces of parents and polyhedra are resolved.
struct ElementRun {
    std::shared_ptr<const GlobalMapping> mapping; ///< ownership of ordinals
    std::vector<ElementType> types;
    std::vector<index> starts{0};
    /// Nodes of all zones, from 0. For a Polyhedron of an NFACE_n section its faces until they are resolved: the
    /// ordinal in the list of faces plus 1, negative if the face points inward.
    std::vector<index> nodes;

    index size() const noexcept { return static_cast<index>(types.size()); }
    /// Ordinal of the first element of this rank.
    index first() const { return mapping->localBegin(); }
    std::span<const index> nodesOf(index element) const {
        const auto e = static_cast<std::size_t>(element);
        return std::span<const index>(nodes).subspan(static_cast<std::size_t>(starts[e]),
                                                     static_cast<std::size_t>(starts[e + 1] - starts[e]));
    }
};

/// Reads this rank's share of a list. Collective. `faces`: the list that polyhedra refer to. Polyhedra of parents get
/// no faces yet, faces of cells no nodes. Throws DataError on all ranks.
/// Ranks read their shares at the same time: O(own elements). Only old sections without offsets
/// (SectionKind::Stream) are walked in sequence, in memory: each rank receives the position of its first element
/// from the rank before it and sends the next rank its own, also after a failure. So no rank waits for ever, and
/// waits
/// form no cycle, as they follow the order of ranks. An element belongs to the rank in whose words it begins, so
/// shares of such sections are not quite even.
ElementRun readElements(CommunicatorContext &context, const Model &model, const SectionTable &table,
                        const SectionTable &faces, TreeSource &source);

/// Rows of nodes, in order of their ordinals.
/// The answer to a query: rows of elements that other ranks own.
struct ElementRows {
    std::vector<index> ordinals;
    std::vector<index> starts{0};
    std::vector<index> nodes;

    /// The row of an ordinal, which must exist. O(log rows).
    std::span<const index> row(index ordinal) const;
};

/// The nodes of any elements of a list: [ordinals, ascending, distinct]. Collective.
/// One query: O(ordinals + nodes of the rows) words. Ascending ordinals have ascending owners, so rows arrive in
/// order.
ElementRows fetchElements(CommunicatorContext &context, const ElementRun &run, std::vector<index> ordinals);

} // namespace DNDS::Geom::Cgns
