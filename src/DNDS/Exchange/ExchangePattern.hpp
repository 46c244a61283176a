/// @file ExchangePattern.hpp
/// @brief Senders, receivers and row numbers of an exchange: no data type, no width, no memory.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Transport/TransportTypes.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace DNDS {

class GhostMapping;

/// Rows of this rank that it exchanges with some peers. A view of its pattern's lists.
struct PeerRows {
    std::span<const int> ranks;    ///< ranks of the peers, strictly ascending
    std::span<const index> starts; ///< rows of peer k are numbers [starts[k], starts[k + 1]) of all rows in `values`
    std::span<const index> values; ///< row numbers of all peers; may be empty if each peer's are a range or boxes
    std::vector<RowList> lists;    ///< the rows of each peer; exchanges share properties computed from them

    /// The number of peers. Local.
    std::size_t size() const noexcept { return ranks.size(); }
    /// Calls `function(row)` for the rows of all peers, peer by peer. Local, O(rows).
    template <class Function>
    void forEachRow(Function &&function) const {
        for (const RowList &rows : lists)
            rows.forEach(function);
    }
    /// The rows of all peers, concatenated. Local. O(rows).
    std::vector<index> allRows() const;
    /// Rows of peer `k`, if there are `values`.
    std::span<const index> list(std::size_t k) const {
        return values.subspan(static_cast<std::size_t>(starts[k]), static_cast<std::size_t>(starts[k + 1] - starts[k]));
    }
};

/// The rows that each pair of ranks exchanges, shared by all arrays and exchanges of these rows. Immutable.
class ExchangePattern : public std::enable_shared_from_this<ExchangePattern> {
  public:
    /// All ghosts of a mapping. Local. Cost O(peers).
    explicit ExchangePattern(std::shared_ptr<const GhostMapping> mapping);

    /// The rows that one rank gives and gets in a pull. Lists are in the order of ranks; row k from rank s to rank r is
    /// the same row in the lists of both. A rank may exchange rows with itself. A row may be given several times.
    template <class Lists>
    struct PulledRows {
        index fatherSize = 0; ///< owned rows
        index sonSize = 0;    ///< number of ghosts; those without sender are left alone
        Lists given;          ///< own rows, to readers
        Lists received;       ///< ghosts, from owners; each of them once
    };
    using Rows = PulledRows<RankLists>;
    /// From lists of rows, without global numbers: halos of structured blocks, say. Collective; one reduction without
    /// errors. Errors of `describe` are thrown on all ranks. Throws on all ranks IndexError for rows that do not exist,
    /// ArgumentError for lists out of order or ghosts received twice, StateError naming a pair of ranks where one
    /// gives another number of rows than the other expects, or if ranks make different patterns.
    static std::shared_ptr<const ExchangePattern> fromLists(const std::shared_ptr<CommunicatorContext> &context,
                                                            const std::function<Rows()> &describe);

    /// Rows in boxes, for some peers.
    struct PeerBoxes {
        std::vector<int> ranks;     ///< ascending strictly
        std::vector<RowList> lists; ///< one list per peer: `RowList::boxes(...)` or a range

        /// Adds the next peer; ranks ascend.
        void append(int rank, RowList rows) {
            ranks.push_back(rank);
            lists.push_back(std::move(rows));
        }
    };
    /// A box of given rows, whose copies are pushed back, and the position of its first row among all rows of `given`.
    struct PushedBox {
        RowBox rows;
        index place = 0;
    };
    struct Boxes : PulledRows<PeerBoxes> {
        /// All given rows in the order in which pushes apply the copies of each; empty: that of `given`. Pushes of
        /// arrays whose rows differ in size use that of `given`.
        std::vector<PushedBox> pushOrder = {};
    };
    /// As `fromLists`, from boxes of rows: some bytes are kept for each box, nothing for a row. Ghosts and owned rows
    /// may be rows of one array. Collective. Cost O(rows received) once, to find ghosts that are received twice.
    /// Throws as `fromLists`, and ArgumentError for lists that are neither boxes nor ranges.
    static std::shared_ptr<const ExchangePattern> fromBoxes(const std::shared_ptr<CommunicatorContext> &context,
                                                            const std::function<Boxes()> &describe);

    /// The pattern that moves some of the ghosts only: those in `ghosts`, rows of the son in any order, duplicates
    /// allowed. Collective; each rank names the ghosts it reads, and their owners are told: one sparse exchange of cost
    /// O(ghosts + rows read). Arrays keep their sizes; other ghosts are left alone. Also moves arrays of this pattern:
    ///
    ///     const auto some = u.trans.pattern()->restrictedTo(ghostsOfTheStencil);
    ///     Exchange pull(some, Direction::Pull, {u.trans.member()});
    ///
    /// Throws IndexError on all ranks for rows that are no ghosts of this pattern. If the rows of each owner are a
    /// range of ghosts a pull costs nothing extra; others are unpacked.
    std::shared_ptr<const ExchangePattern> restrictedTo(std::span<const index> ghosts) const;

    ExchangePattern(const ExchangePattern &) = delete;
    ExchangePattern &operator=(const ExchangePattern &) = delete;
    ~ExchangePattern() = default;

    /// The mapping that numbers the ghosts; null for a pattern from lists.
    const std::shared_ptr<const GhostMapping> &mapping() const noexcept { return mapping_; }
    CommunicatorContext &context() const noexcept { return *context_; }
    const std::shared_ptr<CommunicatorContext> &sharedContext() const noexcept { return context_; }
    /// The number among the numberings, mappings and patterns of the communicator: the same on all ranks.
    std::uint64_t serial() const noexcept { return serial_; }
    /// Whether this is `array`, or a restriction of it: whether it moves rows of arrays with that pattern. `array` is
    /// compared, never dereferenced.
    bool moves(const ExchangePattern *array) const noexcept {
        return array == this || (whole_ && whole_->moves(array));
    }

    /// Whether it moves only some of the ghosts of another pattern.
    bool isRestriction() const noexcept { return whole_ != nullptr; }

    /// Owned rows and ghosts of this rank. Local, O(1).
    index fatherSize() const noexcept { return fatherSize_; }
    index sonSize() const noexcept { return sonSize_; }
    /// Ranks that read rows of this rank, and those rows; ascending for each reader if there is a mapping.
    const PeerRows &readers() const noexcept { return readers_; }
    /// Ranks that this rank reads from, and the ghosts that each of them owns. Without restriction, those of a mapping
    /// are the ranges [starts[k], starts[k + 1]).
    const PeerRows &owners() const noexcept { return owners_; }
    /// The order in which pushes apply contributions, if not that of `readers()`: see Boxes. Local.
    std::span<const PushedBox> pushOrder() const noexcept { return pushOrder_; }

    /// Owned rows that some peer (or this rank itself) needs, ascending. Local. O(owned rows) once, then O(1).
    std::span<const index> boundaryRows() const;
    /// Owned rows that no peer needs, ascending: to be computed while a pull is in flight. Cost as `boundaryRows`.
    std::span<const index> innerRows() const;

  private:
    /// From checked rows, or boxes. Local.
    ExchangePattern(std::shared_ptr<CommunicatorContext> context, std::uint64_t serial, Rows rows);
    ExchangePattern(std::shared_ptr<CommunicatorContext> context, std::uint64_t serial, Boxes boxes);
    /// Describes, checks, and agrees: for `fromLists` and `fromBoxes`. Collective.
    template <class Described>
    static std::shared_ptr<const ExchangePattern> make(const std::shared_ptr<CommunicatorContext> &context,
                                                       const std::function<Described()> &describe);
    /// Fills in `boundary_` and `inner_`.
    void classifyRows() const;

    /// The communicator's state; keeps it while patterns exist.
    std::shared_ptr<CommunicatorContext> context_;
    /// Keeps the lists to which `readers_` and `owners_` refer, for a whole mapping; null for patterns from lists
    /// or boxes.
    std::shared_ptr<const GhostMapping> mapping_;
    std::shared_ptr<const ExchangePattern> whole_; ///< the whole pattern, if this is a restriction
    /// Part of the keys by which ranks compare their patterns and exchanges.
    std::uint64_t serial_ = 0;
    index fatherSize_ = 0;
    index sonSize_ = 0;
    Rows rows_; ///< without `values` if made from boxes; empty for a whole mapping, which has the lists
    /// Ranks that are sent rows in a pull, and ranks that send them; in a push the other way round.
    PeerRows readers_;
    PeerRows owners_;
    std::vector<PushedBox> pushOrder_;
    mutable std::once_flag classified_; ///< most exchanges never need it, and set-up must be fast
    /// Under `classified_`; const after that, so that threads read them without a lock.
    mutable std::vector<index> boundary_;
    mutable std::vector<index> inner_;
};

} // namespace DNDS
