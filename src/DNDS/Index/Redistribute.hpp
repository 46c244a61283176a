/// @file Redistribute.hpp
/// @brief Moves rows of arrays to other ranks and renumbers them.
#pragma once

#include "DNDS/Index/Mappings.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Storage/ArrayBase.hpp"

#include <memory>
#include <span>
#include <vector>

namespace DNDS {

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
    void move(ArrayBase &array) const { move(array, array); }

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
