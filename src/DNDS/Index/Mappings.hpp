/// @file Mappings.hpp
/// @brief The owners of global rows, and the ghosts that copy them.
///
/// - `GlobalMapping`: ownership of global rows
/// - `GhostMapping`: the rows of other ranks that this rank copies, and its own rows that others copy
/// - `Redistribute`: moves rows of arrays to other ranks and renumbers them
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace DNDS {

class ArrayBase;

/// A row as its owner numbers it.
struct OwnedRow {
    int rank;  ///< the owner
    index row; ///< within the owner's rows
};

/// Numbers the rows of all ranks consecutively: rank r owns the contiguous range [begin(r), end(r)). Immutable.
class GlobalMapping {
  public:
    /// Every rank contributes its number of rows. Collective. Memory O(ranks). Throws ArgumentError on all ranks when a
    /// rank passes a negative number.
    static std::shared_ptr<const GlobalMapping> create(CommunicatorView comm, index localRows);

    /// This rank, and the number of ranks. Local.
    int rank() const noexcept { return rank_; }
    int ranks() const noexcept { return static_cast<int>(offsets_.size()) - 1; }
    /// The number of rows of all ranks. Local, O(1), like all functions below unless stated otherwise.
    index globalSize() const noexcept { return offsets_.back(); }
    index begin(int rank) const noexcept { return offsets_[static_cast<std::size_t>(rank)]; }
    index end(int rank) const noexcept { return offsets_[static_cast<std::size_t>(rank) + 1]; }
    index size(int rank) const noexcept { return end(rank) - begin(rank); }
    /// This rank's first global row, the one after its last, and its number of rows.
    index localBegin() const noexcept { return begin(rank_); }
    index localEnd() const noexcept { return end(rank_); }
    index localSize() const noexcept { return size(rank_); }
    /// Whether this rank owns a global row; whether the row exists.
    bool isLocal(index global) const noexcept { return global >= begin(rank_) && global < end(rank_); }
    bool contains(index global) const noexcept { return global >= 0 && global < globalSize(); }
    /// The entries of `rows` that this rank does not own, in their order. Local, O(rows).
    std::vector<index> ofOthers(std::span<const index> rows) const;

    /// The owner of a global row. O(log ranks). Throws IndexError outside [0, globalSize()).
    OwnedRow owner(index global) const;
    /// The global number of a rank's row. Throws IndexError when the rank has no such row.
    index toGlobal(int rank, index row) const;

    /// The serial number of this numbering among those of its communicator; equal on all ranks.
    std::uint64_t serial() const noexcept { return serial_; }
    /// The shared state of the communicator of these rows.
    const std::shared_ptr<CommunicatorContext> &context() const noexcept { return context_; }

  private:
    GlobalMapping(std::shared_ptr<CommunicatorContext> context, std::uint64_t serial, int rank,
                  std::vector<index> offsets)
        : context_(std::move(context)), serial_(serial), rank_(rank), offsets_(std::move(offsets)) {}

    /// Kept by numberings, mappings and patterns; its communicator may be freed before (`alive`).
    std::shared_ptr<CommunicatorContext> context_;
    std::uint64_t serial_;
    int rank_;
    /// Rank r owns [offsets_[r], offsets_[r + 1]): ranks + 1 entries, ascending from 0; ranks without rows repeat a
    /// number.
    std::vector<index> offsets_;
};

/// The correspondence of ghost (son) rows with owned (father) rows. Immutable.
///
/// Ghosts are sorted by owner, then by global row, without duplicates (except for `fromRepeatedPullList`); ghost k is
/// row k of every son made with this mapping, so the rows of one owner are contiguous. A rank's own rows may be ghosts,
/// too.
///
/// In local numbering a rank's owned rows come first, then its ghosts: local row `fatherSize() + k` is ghost k.
///
/// All ranks make their mappings in the same order. If a rank passes another numbering or array name than rank 0, all
/// throw a StateError that names both; one reduction.
class GhostMapping {
  public:
    /// Makes a mapping from the global rows that this rank copies, in any order, duplicates allowed. Collective. Cost:
    /// a linear-time sort of the list and one message per peer. Throws IndexError on all ranks if any rank lists a row
    /// that does not exist.
    static std::shared_ptr<const GhostMapping> fromPullList(std::shared_ptr<const GlobalMapping> global,
                                                            std::span<const index> pullRows,
                                                            PeerDiscovery discovery = PeerDiscovery::Auto);

    /// As `fromPullList`, but each entry of the list, which must ascend, is a separate ghost: a row listed twice is
    /// copied twice, as for the images of a periodic mesh. `findGhost` and `toLocal` find the first copy. Collective.
    /// Throws also ArgumentError on all ranks if a list does not ascend.
    static std::shared_ptr<const GhostMapping> fromRepeatedPullList(std::shared_ptr<const GlobalMapping> global,
                                                                    std::span<const index> pullRows,
                                                                    PeerDiscovery discovery = PeerDiscovery::Auto);

    /// Makes a mapping from the own rows that others copy: `localRows[starts[r]..starts[r + 1])` go to rank r.
    /// Collective. `starts` has ranks + 1 entries. Ghosts are sorted as above, not in push order. Throws IndexError or
    /// ArgumentError on all ranks if any rank's list is invalid. `name` is the name of the array, for messages and to
    /// compare orders.
    static std::shared_ptr<const GhostMapping> fromPushList(std::shared_ptr<const GlobalMapping> global,
                                                            std::span<const index> localRows,
                                                            std::span<const index> starts,
                                                            PeerDiscovery discovery = PeerDiscovery::Auto,
                                                            std::string_view name = {});

    /// The same for rows that `describe` returns; its exceptions are thrown on all ranks, without extra communication.
    /// Collective over the ranks of `context`.
    struct PullRequest {
        std::shared_ptr<const GlobalMapping> global;
        std::span<const index> pullRows;
        std::string_view name = {}; ///< name of the array, if any; must outlive the call
        bool repeats = false;       ///< as `fromRepeatedPullList`
    };
    static std::shared_ptr<const GhostMapping> fromPullList(CommunicatorContext &context,
                                                            const std::function<PullRequest()> &describe,
                                                            PeerDiscovery discovery = PeerDiscovery::Auto);

    /// The numbering of the owned rows. Local.
    const std::shared_ptr<const GlobalMapping> &global() const noexcept { return global_; }
    /// The serial number of this mapping among those of its communicator; equal on all ranks.
    std::uint64_t serial() const noexcept { return serial_; }

    /// Owned rows and ghosts of this rank. Local, O(1).
    index fatherSize() const noexcept { return global_->localSize(); }
    index ghostSize() const noexcept { return static_cast<index>(ghosts_.values.size()); }
    /// Global rows of the ghosts, ascending: [ghostSize()].
    std::span<const index> ghosts() const noexcept { return ghosts_.values; }

    /// The ranks that own ghosts of this rank, each with its contiguous range of ghosts. `values` are global rows.
    const RankLists &ownerPeers() const noexcept { return ghosts_; }
    /// The ranks that copy this rank's rows, each with these rows. `values` are own rows, ascending for each reader.
    const RankLists &readerPeers() const noexcept { return wanted_; }

    /// The local number of a global row: an owned row, else a ghost; nothing if this rank has neither. Local. O(log
    /// ghosts).
    std::optional<index> toLocal(index global) const noexcept;
    /// The number of the ghost that copies a global row, from 0, even where this rank owns the row. Local. O(log
    /// ghosts).
    std::optional<index> findGhost(index global) const noexcept;
    /// The global number of a local row. Local, O(1). Throws IndexError outside [0, fatherSize() + ghostSize()).
    index toGlobal(index local) const;
    /// Translates a list of global rows into 32-bit local rows, for adjacency. Local. O(n log ghosts). Throws
    /// IndexError, naming the first row that this rank neither owns nor copies, and ArgumentError beyond 2^31 - 1 local
    /// rows.
    std::vector<LocalIndex> toLocal(std::span<const index> global) const;

  private:
    /// From lists on which all ranks have agreed.
    GhostMapping(std::shared_ptr<const GlobalMapping> global, std::uint64_t serial, RankLists ghosts, RankLists wanted)
        : global_(std::move(global)), serial_(serial), ghosts_(std::move(ghosts)), wanted_(std::move(wanted)) {}
    /// Makes a mapping from this rank's ghosts and the requests of others, as global rows. Collective; one reduction.
    static std::shared_ptr<const GhostMapping> make(CommunicatorContext &context,
                                                    std::shared_ptr<const GlobalMapping> global, RankLists ghosts,
                                                    RankLists wanted, std::string_view name);

    /// The numbering whose rows the ghosts copy.
    std::shared_ptr<const GlobalMapping> global_;
    std::uint64_t serial_;
    /// Keyed by owner: global rows that this rank copies; and keyed by reader: own rows, as local numbers, that
    /// others copy. List k of one rank for another is the same rows in the same order as its counterpart there.
    RankLists ghosts_;
    RankLists wanted_;
};

/// A new distribution of rows: made once, from a partition or from a permutation, it moves any number of arrays.
///
/// Rows arrive in the order of their source ranks, and of one rank in their order there, so that the result does not
/// depend on timing; `permuted` reorders them on each rank. New global numbers follow: rank r owns one contiguous
/// range, after the ranges of lower ranks.
///
///     auto moved = Redistribute::toRanks(state.globalMapping(), targets); // targets: [own rows] ranks
///     moved.move(state);                                                  // rows leave and arrive
///     state.setGlobalMapping(moved.after());
///     moved.move(cellNodes);                                              // of any type, width and layout
///     neighbours = moved.newNumbers(neighbours);                          // old global rows -> new ones
///     moved.inverse().move(state);                                        // and back, bit by bit
///
/// A rank may give away all its rows or receive none. Set-up keeps O(own rows, before and after) numbers on each rank.
/// Functions marked so are Collective over the ranks of the mapping; a failure on one rank throws on all.
class Redistribute {
  public:
    /// Row i of this rank moves to rank `targets[i]`: [own rows]. Collective; two messages per peer, one word per row,
    /// and `sparseExchange` to find peers. Throws IndexError naming the row for an invalid rank, ArgumentError if the
    /// number of targets is not that of rows, StateError without a mapping.
    static Redistribute toRanks(std::shared_ptr<const GlobalMapping> before, std::span<const int> targets);

    /// The same movement, after which row i of this rank, as it would have arrived, becomes row `places[i]`: [own rows
    /// after]. Collective; one message per peer, one word per row. Throws IndexError naming the row for an invalid or
    /// repeated place, ArgumentError if the number of places is not that of rows.
    Redistribute permuted(std::span<const index> places) const;

    /// The reverse movement. Local. O(own rows, before and after).
    Redistribute inverse() const;

    /// The numberings before and after.
    const std::shared_ptr<const GlobalMapping> &before() const noexcept { return before_; }
    const std::shared_ptr<const GlobalMapping> &after() const noexcept { return after_; }

    /// The new global number of each row that this rank owned: [own rows before]. Local, O(1).
    std::span<const index> newNumbers() const noexcept { return newNumbers_; }
    /// The old global number of each row that this rank owns afterwards: [own rows after]. Local, O(1).
    std::span<const index> oldNumbers() const noexcept { return oldNumbers_; }

    /// The new numbers of arbitrary rows of any rank, in the order of the list, duplicates allowed; `InvalidIndex` is
    /// kept. Collective; two messages per rank that owned some of them, one word per row. Throws IndexError for any
    /// other number that is not a row.
    std::vector<index> newNumbers(std::span<const index> oldRows) const;
    /// The old numbers of arbitrary new rows; else as `newNumbers`.
    std::vector<index> oldNumbers(std::span<const index> newRows) const;

    /// An array and the destination of its rows, which may be the same array.
    struct Move {
        const ArrayBase *from;
        ArrayBase *to;
    };

    /// Moves the rows of arrays, all in one message per peer. Collective. `to` gets this rank's rows after the
    /// movement, with their sizes, and the width of `from`; it has the type and layout of `from`. CSR arrays are
    /// compressed before and afterwards. Host memory; buffers hold the rows that leave and arrive, and 8 bytes per row
    /// if sizes differ. Rows that stay on their rank are copied without a buffer, unless an array both receives and
    /// gives rows.
    ///
    /// Throws ArgumentError if an array does not have the rows of `before()`; LayoutError if types or layouts differ
    /// between `from` and `to`, or these, run-time widths or the number of arrays differ between ranks that exchange
    /// rows; StateError for a decompressed CSR array, and if ranks call `move` of different movements; StaleError if
    /// data are current on the device only. All arrays are then unchanged. Without memory `to` may have any rows.
    void move(std::span<const Move> arrays) const;
    void move(const ArrayBase &from, ArrayBase &to) const;
    /// Matrices whose shapes differ by row keep these beside their elements: move elements and shapes as two arrays. A
    /// shape that all rows share is not moved: call `to.adoptShape(from)` first.
    template <class TArray>
    requires TArray::shapePerRow void move(const TArray &from, TArray &to) const = delete;
    template <class TArray>
    requires TArray::shapePerRow void move(TArray &array) const = delete;
    /// Moves an array in place. Afterwards, remake what refers to its rows, such as a ghost mapping.
    void move(ArrayBase &array) const;

  private:
    Redistribute() = default;
    const CommunicatorView &comm() const { return before_->context()->comm(); }
    /// This rank's message to each target. Local.
    RankLists packRows(std::span<const Move> arrays) const;
    /// Checks the messages, agrees, then fills the arrays. Collective.
    void unpackRows(std::span<const Move> arrays, const RankLists &incoming) const;
    /// Assigns new numbers to rows from their places. Collective.
    void number();

    /// Both numberings of one communicator.
    std::shared_ptr<const GlobalMapping> before_;
    std::shared_ptr<const GlobalMapping> after_;
    RankLists leaving_;  ///< keyed by rank: own old rows that move there
    RankLists arriving_; ///< keyed by rank: own new rows from there, in the order of arrival
    /// One number a row, as the functions of these names return them: one entry a row before, and one a row after
    /// the movement.
    std::vector<index> newNumbers_;
    std::vector<index> oldNumbers_;
};

} // namespace DNDS
