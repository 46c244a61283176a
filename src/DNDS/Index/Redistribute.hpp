/// @file Redistribute.hpp
/// @brief Moves rows of arrays to other ranks, and tells which numbers they get there.
#pragma once

#include "DNDS/Index/GlobalMapping.hpp"
#include "DNDS/Mpi/SparseExchange.hpp"
#include "DNDS/Storage/ArrayBase.hpp"

#include <memory>
#include <span>
#include <vector>

namespace DNDS {

/// A new distribution of rows: made once, from a partition or from a permutation, it moves any number of arrays.
///
/// Rows arrive in order of the rank they come from, and from one rank in the order they had there, so that the result
/// does not depend on timing; `permuted` puts them into another order on each rank. New global numbers follow: rank r
/// owns one contiguous range, after those of the ranks before it.
///
///     auto moved = Redistribute::toRanks(state.globalMapping(), targets); // targets: [own rows] ranks
///     moved.move(state);                                                  // rows leave and arrive
///     state.setGlobalMapping(moved.after());
///     moved.move(cellNodes);                                              // of any type, width and layout
///     neighbours = moved.newNumbers(neighbours);                          // old global rows -> new ones
///     moved.inverse().move(state);                                        // and back, bit by bit
///
/// Ranks may give all their rows, or get none. Set-up keeps O(own rows, before and after) numbers on each rank. Makers
/// and functions that say so are Collective over the ranks of the mapping; what fails on one rank throws on all.
class Redistribute {
  public:
    /// Row i of this rank goes to rank `targets[i]`: [own rows]. Collective; two messages a peer, of one word a row,
    /// and what `sparseExchange` takes to find peers. Throws IndexError naming the row for a rank that is not there,
    /// ArgumentError for another number of targets than rows, StateError without a mapping.
    static Redistribute toRanks(std::shared_ptr<const GlobalMapping> before, std::span<const int> targets);

    /// Rows stay on their ranks: row i becomes row `places[i]`, [own rows]. Collective; two reductions. Throws
    /// IndexError naming the row for a place that is not there or has two rows, ArgumentError and StateError as above.
    static Redistribute withinRanks(std::shared_ptr<const GlobalMapping> before, std::span<const index> places);

    /// The same movement, after which row i of this rank, as it would have arrived, becomes row `places[i]`: [own rows
    /// after]. Collective; one message a peer, of one word a row. Errors as `withinRanks`.
    Redistribute permuted(std::span<const index> places) const;

    /// The movement back. Local. O(own rows, before and after).
    Redistribute inverse() const;

    /// The numberings before and after.
    const std::shared_ptr<const GlobalMapping> &before() const noexcept { return before_; }
    const std::shared_ptr<const GlobalMapping> &after() const noexcept { return after_; }

    /// The new global number of each row that this rank owned: [own rows before]. Local, O(1).
    std::span<const index> newNumbers() const noexcept { return newNumbers_; }
    /// The old global number of each row that this rank owns afterwards: [own rows after]. Local, O(1).
    std::span<const index> oldNumbers() const noexcept { return oldNumbers_; }

    /// The new numbers of any rows of any ranks, in the order of the list, duplicates welcome; `InvalidIndex` stays
    /// what it is. Collective; two messages for each rank that owned some of them, of a word a row. Throws IndexError
    /// for another number that is no row.
    std::vector<index> newNumbers(std::span<const index> oldRows) const;
    /// The old numbers of any new rows; else as `newNumbers`.
    std::vector<index> oldNumbers(std::span<const index> newRows) const;

    /// An array and where its rows go. Both may be the same.
    struct Move {
        const ArrayBase *from;
        ArrayBase *to;
    };

    /// Moves the rows of arrays, all in one message a peer. Collective. `to` gets this rank's rows after the movement,
    /// of the sizes they had, and its width from `from`; it has the type and layout of `from`. CSR arrays are
    /// compressed before and afterwards. Host memory; buffers take the bytes of the rows that leave and of those that
    /// arrive, and 8 bytes a row where rows differ in size. Rows that stay on their rank are copied without a buffer,
    /// unless an array gets rows and gives some, too.
    ///
    /// Throws ArgumentError where an array has not the rows of `before()`; LayoutError where types or layouts differ
    /// between `from` and `to`, or these, run-time widths or the number of arrays between ranks that exchange rows;
    /// StateError for a decompressed CSR array, and where ranks call `move` of different movements; StaleError for what
    /// is current on the device only. Then all arrays are as they were. MemoryError and std::bad_alloc may leave `to`
    /// with any rows.
    void move(std::span<const Move> arrays) const;
    void move(const ArrayBase &from, ArrayBase &to) const;
    /// Matrices whose shapes differ by row keep these beside their elements: move elements and shapes as two arrays. A
    /// shape that all rows share is not moved: call `to.adoptShape(from)` first.
    template <class TArray>
    requires TArray::shapePerRow void move(const TArray &from, TArray &to) const = delete;
    template <class TArray>
    requires TArray::shapePerRow void move(TArray &array) const = delete;
    /// In place. What the array refers to by row, a ghost mapping for example, is made anew afterwards.
    void move(ArrayBase &array) const { move(array, array); }

  private:
    Redistribute() = default;
    const CommunicatorView &comm() const { return before_->context()->comm(); }
    RankLists packRows(std::span<const Move> arrays) const;
    void unpackRows(std::span<const Move> arrays, const RankLists &incoming) const;
    /// Gives rows their new numbers from their places. Collective.
    void number();

    std::shared_ptr<const GlobalMapping> before_;
    std::shared_ptr<const GlobalMapping> after_;
    RankLists leaving_;  ///< for each rank the own old rows that go there
    RankLists arriving_; ///< for each rank the own new rows that its rows become, in the order in which they arrive
    std::vector<index> newNumbers_;
    std::vector<index> oldNumbers_;
};

} // namespace DNDS
