/// @file GhostMapping.hpp
/// @brief Which rows of others this rank keeps copies of, and which of its rows others keep copies of.
#pragma once

#include "DNDS/Index/GlobalMapping.hpp"
#include "DNDS/Mpi/SparseExchange.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace DNDS {

/// The correspondence of ghost (son) rows with owned (father) rows. Immutable.
///
/// Ghosts are sorted by owner, then by global row, without duplicates (`fromRepeatedPullList` keeps them); ghost k is
/// row k of every son made with this mapping, so what one owner sends lands in one contiguous range. Rows of one's own
/// rank may be ghosts too.
///
/// In local numbering a rank's owned rows come first, then its ghosts: local row `fatherSize() + k` is ghost k.
///
/// All ranks make their mappings in the same order. Where one takes another numbering, or an array of another name,
/// than rank 0, all throw StateError that names both; one reduction.
class GhostMapping {
  public:
    /// From the global rows this rank wants copies of, in any order, duplicates welcome. Collective.
    /// Cost: a linear-time sort of the list and one message a peer. Throws IndexError on all ranks when a row of any
    /// rank's list does not exist.
    static std::shared_ptr<const GhostMapping> fromPullList(std::shared_ptr<const GlobalMapping> global,
                                                            std::span<const index> pullRows,
                                                            PeerDiscovery discovery = PeerDiscovery::Auto);

    /// As `fromPullList`, but each entry of the list, which must ascend, is a ghost of its own: a row that is listed
    /// twice is copied twice, as the images of a periodic mesh need it. `findGhost` and `toLocal` find the first copy.
    /// Collective. Throws also ArgumentError on all ranks where a list does not ascend.
    static std::shared_ptr<const GhostMapping> fromRepeatedPullList(std::shared_ptr<const GlobalMapping> global,
                                                                    std::span<const index> pullRows,
                                                                    PeerDiscovery discovery = PeerDiscovery::Auto);

    /// From the own rows this rank gives copies of: `localRows[starts[r]..starts[r + 1])` go to rank r. Collective.
    /// `starts` has ranks + 1 entries. Ghosts are sorted as above, not in the order in which they were pushed. Throws
    /// IndexError or ArgumentError on all ranks when any rank's list is wrong. `name` is that of the array, for
    /// messages and to compare orders.
    static std::shared_ptr<const GhostMapping> fromPushList(std::shared_ptr<const GlobalMapping> global,
                                                            std::span<const index> localRows,
                                                            std::span<const index> starts,
                                                            PeerDiscovery discovery = PeerDiscovery::Auto,
                                                            std::string_view name = {});

    /// The same for rows that `describe` names when called; what it throws is thrown on all ranks, at no extra
    /// communication. Collective over the ranks of `context`.
    struct PullRequest {
        std::shared_ptr<const GlobalMapping> global;
        std::span<const index> pullRows;
        std::string_view name = {}; ///< of the array, if there is one; it outlives the call
    };
    static std::shared_ptr<const GhostMapping> fromPullList(CommunicatorContext &context,
                                                            const std::function<PullRequest()> &describe,
                                                            PeerDiscovery discovery = PeerDiscovery::Auto);

    /// The numbering of the owned rows. Local.
    const std::shared_ptr<const GlobalMapping> &global() const noexcept { return global_; }
    /// The number of this mapping among the numberings and mappings of its communicator: the same on all ranks.
    std::uint64_t serial() const noexcept { return serial_; }

    /// Owned rows and ghosts of this rank. Local, O(1).
    index fatherSize() const noexcept { return global_->localSize(); }
    index ghostSize() const noexcept { return static_cast<index>(ghosts_.values.size()); }
    /// Global rows of the ghosts, ascending: [ghostSize()].
    std::span<const index> ghosts() const noexcept { return ghosts_.values; }

    /// The ranks that own ghosts of this one, and the contiguous range of ghosts each owns. `values` are global rows.
    const RankLists &ownerPeers() const noexcept { return ghosts_; }
    /// The ranks that keep copies of this rank's rows, and which. `values` are own rows, ascending for each reader.
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
    GhostMapping(std::shared_ptr<const GlobalMapping> global, std::uint64_t serial, RankLists ghosts, RankLists wanted)
        : global_(std::move(global)), serial_(serial), ghosts_(std::move(ghosts)), wanted_(std::move(wanted)) {}
    /// From global rows: this rank's ghosts, and what others want of its rows. Collective; one reduction.
    static std::shared_ptr<const GhostMapping> make(CommunicatorContext &context,
                                                    std::shared_ptr<const GlobalMapping> global, RankLists ghosts,
                                                    RankLists wanted, std::string_view name);

    std::shared_ptr<const GlobalMapping> global_;
    std::uint64_t serial_;
    RankLists ghosts_;
    RankLists wanted_;
};

} // namespace DNDS
