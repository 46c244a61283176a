/// @file GhostWindow.hpp
/// @brief A window over the rows of a distributed array, addressed by ghost.
#pragma once

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/OneSided/KernelViews.hpp"
#include "DNDS/OneSided/RemoteMemory.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace DNDS {

namespace Detail {

/// The memory that the ranks of the node share; null where they do not.
HostMemoryResource arenaOf(const CommunicatorContext &context);

/// The part of a `GhostWindow` that does not depend on the elements' type: the memory, and the table from ghosts to
/// their owners' rows, which is made once, so that operations search nothing.
class GhostWindowCore {
  public:
    /// The rows of a father of fixed width, at `layout`.
    struct Rows {
        std::shared_ptr<const GhostMapping> mapping;
        RowLayout layout;
        rowsize width = 0;
        std::string name;
    };
    /// Collective. `describe`, which finds the rows in `space`, is called once and may throw, which is thrown on all
    /// ranks.
    GhostWindowCore(std::shared_ptr<CommunicatorContext> context, MemorySpace space,
                    const std::function<Rows()> &describe);

    RemoteMemory &memory() noexcept { return *memory_; }
    /// For calls on the host.
    const GhostTable &host() const noexcept { return host_; }
    /// For kernels in the rows' space.
    GhostTable kernels() const;

  private:
    /// [ghosts] owner and row there; [ranks + 1] first global row. Copies on the device for kernels in device memory.
    std::vector<GhostTarget> ghosts_;
    std::vector<std::int64_t> firstRows_;
    Device::DeviceBuffer<GhostTarget> deviceGhosts_;
    Device::DeviceBuffer<std::int64_t> deviceFirstRows_;
    std::unique_ptr<RemoteMemory> memory_;
    GhostTable host_;
};

} // namespace Detail

/// Reads and changes the owners' rows of ghosts, or of any global row, without their owners' help: for updates that
/// arise where they are found (a particle hits a ghost cell, parts of a component meet) and are not worth a push.
///
///     GhostWindow window(u);                                      // u: a pair of rows of fixed width, with ghosts
///     window.accumulate(window.ghost(k), 2, 0.5, AtomicOp::Add);  // element 2 of the owner's row
///     window.compareAndSwap(window.global(row), 0, expected, value);
///     window.barrier();                                           // now owners see it, and ghosts are stale
///
/// In host memory the father moves to memory that the ranks of the node map, which invalidates earlier views and
/// pointers; ranks of other nodes are reached as by a `SymmetricHeap`. In device memory (`MemorySpace::Device`) ranks
/// have to reach each other's devices. Each rank keeps a target for each of its ghosts, and the first row of each rank:
/// O(ghosts + ranks).
///
/// All functions are Local unless stated. They throw as those of `RemoteMemory`, IndexError for a row or element that
/// does not exist, and StateError after the father was resized, swapped or moved to another memory, or the pair got
/// another ghost mapping. What one rank does to a row is ordered only by `fence`, `quiet` and `barrier`.
template <class T>
class GhostWindow : public GhostVerbs<GhostWindow<T>, T> {
  public:
    /// Collective. The pair has its ghost mapping; its father outlives the window and keeps its size. Throws on all
    /// ranks: StateError without a mapping, LayoutError for rows that differ in size, ArgumentError where ranks differ
    /// in `space`.
    template <class TArray>
    requires std::is_same_v<typename TArray::Element, T>
    explicit GhostWindow(ArrayPair<TArray> &pair, MemorySpace space = MemorySpace::Host)
        : core_(std::make_unique<Detail::GhostWindowCore>(
              CommunicatorContext::of(pair.father->comm()), space,
              [&pair, space]() -> Detail::GhostWindowCore::Rows {
                  DNDS_CHECK(pair.trans.pattern() != nullptr && pair.trans.ghostMapping() != nullptr, StateError,
                             "a window over '{}' needs a ghost mapping: call createGhostMapping or borrowGGIndexing "
                             "first",
                             pair.father->label());
                  const auto &mapping = pair.trans.ghostMapping();
                  const HostMemoryResource arena = Detail::arenaOf(*mapping->global()->context());
                  if (space == MemorySpace::Host && arena)
                      pair.father->rehost(arena);
                  return {mapping, pair.father->rowLayout(space, Access::Write), pair.father->width(),
                          std::string(pair.father->label())};
              })),
          touch_([father = static_cast<std::shared_ptr<TArray>>(pair.father), space] {
              static_cast<void>(father->rowLayout(space, Access::Write));
          }),
          generation_([father = static_cast<std::shared_ptr<TArray>>(pair.father)] { return father->generation(); }),
          made_(generation_()), pattern_(pair.trans.member().pattern), madeFor_(pair.trans.pattern()) {}

    /// The path to the rows of another rank, as readable text.
    std::string path(int rank) const { return core().memory().path(rank); }

    /// This rank's earlier puts and changes are seen, at each owner, before its later ones.
    void fence() { core().memory().fence(); }
    /// Completes this rank's operations, at the owners, too.
    void quiet() { core().memory().complete(); }
    /// Completes the operations of all ranks; the father counts as written, in the window's space. Collective.
    void barrier() {
        core().memory().barrier();
        touch_();
    }
    /// The same after the work queued on the stream. Collective.
    void barrier(Device::StreamHandle stream) {
        Device::synchronize(stream);
        barrier();
    }
    /// Serves other ranks' operations on this rank's rows, where these come as messages.
    void progress() { core().memory().progress(); }
    /// For kernels in the window's space. Throws StateError as above.
    GhostWindowView<T> view() const {
        requireSameRows();
        return GhostWindowView<T>(core().kernels());
    }

  private:
    friend class GhostVerbs<GhostWindow, T>;

    const Detail::GhostTable &table() const { return core().host(); }
    void requireSameRows() const {
        DNDS_CHECK(generation_() == made_, StateError,
                   "the rows under a window were resized, swapped or moved: make the window again");
        DNDS_CHECK(pattern_() == madeFor_.get(), StateError,
                   "the pair under a window got another ghost mapping: make the window again");
    }
    /// The address of an access; throws if it is wrong.
    HostRemoteAddress address(AccessFault fault, RemoteCall call, GhostTarget target, index j, index count) const {
        // Only tests here; the text of an error is made in `refuse`, which is out of line.
        RemoteMemory &memory = core().memory();
        memory.checkKernels();
        if (generation_() != made_ || pattern_() != madeFor_.get() || target.rank < 0 || j < 0 ||
            j > this->width() - count) [[unlikely]]
            refuse(call, target, j, count);
        const std::uint64_t offset = table().template offsetOf<T>(target, j, count);
        const std::uint64_t bytes = toSize(count) * sizeof(T);
        if (fault == AccessFault::None)
            fault = memory.faultOf(target.rank, offset, bytes);
        if (fault != AccessFault::None) [[unlikely]]
            memory.refuse(fault, call, target.rank, offset, bytes);
        return memory.address(target.rank, offset);
    }
    /// Throws why an access is wrong, and revokes the communicator with it.
    [[gnu::noinline]] void refuse(RemoteCall call, GhostTarget target, index j, index count) const {
        core().memory().checked(call, [&] {
            requireSameRows();
            DNDS_CHECK(target.rank >= 0, IndexError,
                       "a window over rows: there is no row {} of that kind; ghosts here are 0 to {} (excluded), own "
                       "rows 0 to {}",
                       target.row, core().host().ghostCount, core().host().owned);
            DNDS_CHECK(j >= 0 && j <= this->width() - count, IndexError,
                       "a window over rows: element {} of row {} of rank {}: rows have {} elements", j, target.row,
                       target.rank, this->width());
        });
    }
    Detail::GhostWindowCore &core() const {
        DNDS_CHECK(core_ != nullptr, StateError, "this window of ghosts was moved from");
        return *core_;
    }

    /// Null after a move.
    std::unique_ptr<Detail::GhostWindowCore> core_;
    /// Marks the father as written; its generation now, and when the window was made. Both hold the father.
    std::function<void()> touch_;
    std::function<std::uint64_t()> generation_;
    std::uint64_t made_;
    std::function<const ExchangePattern *()> pattern_; ///< the pair's current one
    std::shared_ptr<const ExchangePattern> madeFor_;   ///< held, so that no later pattern has its address
};

/// `GhostWindow window(u)`: elements are those of the pair.
template <class TArray>
GhostWindow(ArrayPair<TArray> &, MemorySpace = MemorySpace::Host) -> GhostWindow<typename TArray::Element>;

} // namespace DNDS
