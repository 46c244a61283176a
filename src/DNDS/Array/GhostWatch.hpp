/// @file GhostWatch.hpp
/// @brief The check of each access to a ghost in programs that define DNDS_DEBUG_CHECKS.
#pragma once

#include <atomic>
#include <cstdint>

namespace DNDS {

class ArrayBase;

/// Decides whether a program may use the ghosts of a pair now. One per transformer, in every build; code compiled
/// with DNDS_DEBUG_CHECKS reports mappings and pulls to it, and checks each access to a ghost through a pair or a
/// pair's view of host memory. All is Local.
///
/// An access throws
///
/// - while a pull of all ghosts is in flight, for reading and writing: StateError;
/// - for reading, if ghosts were never pulled, or if this rank's owned rows have other contents than when the last pull
///   arrived: StaleError.
///
/// It does not throw if only the program can tell: ghosts that the program has written itself or taken for writing,
/// pulls of some ghosts only, pulls that failed, and pulls by code that was compiled without DNDS_DEBUG_CHECKS.
///
/// It compares versions first, and contents (O(owned rows)) only if versions differ: so access that could have written
/// but did not, as by a non-const `view()`, raises no false alarm.
class GhostWatch {
  public:
    /// A view's check before it uses a ghost. Valid as long as the transformer.
    class Access {
      public:
        /// Throws StateError or StaleError, see above. Safe in several threads at once.
        void check() const { watch_.check(writes_); }
        /// The ghosts are handed out as a view of their own, without checks.
        void handOut() const noexcept { watch_.handOut(writes_); }

      private:
        friend class GhostWatch;
        Access(GhostWatch &watch, bool writes) noexcept : watch_(watch), writes_(writes) {}
        GhostWatch &watch_;
        bool writes_;
    };

    /// The watch of these arrays, with ghosts in unknown state.
    GhostWatch(const ArrayBase &father, const ArrayBase &son) noexcept : father_(&father), son_(&son) {}
    /// Views and exchanges point to it.
    GhostWatch(const GhostWatch &) = delete;
    GhostWatch &operator=(const GhostWatch &) = delete;

    /// Whether these are the watched arrays. Compares addresses only.
    bool watches(const ArrayBase *father, const ArrayBase *son) const noexcept {
        return father == father_ && son == son_;
    }

    /// The ghosts are new, and zero.
    void created();
    /// A pull of all ghosts has started.
    void started() noexcept { state_.store(State::InFlight, std::memory_order_relaxed); }
    /// A pull has completed. O(owned rows): keeps their hash.
    void arrived();
    /// Resets to unknown: no checks until the next pull.
    void forget() noexcept { state_.store(State::Unknown, std::memory_order_relaxed); }

    /// Whether nothing has written the ghosts since `created` or `arrived`.
    bool unwritten() const noexcept;
    /// Continues as if nothing had been taken for writing meanwhile: for views that ask `writing()`.
    void keep() noexcept;
    /// Swaps states, after the contents of the arrays were swapped.
    void swap(GhostWatch &other) noexcept;

    /// For views that read ghosts, and for views that may write them.
    const Access &reading() const noexcept { return reading_; }
    const Access &writing() const noexcept { return writing_; }

  private:
    enum class State : unsigned char { Unknown, NeverPulled, InFlight, Pulled };

    /// See Access::check.
    void check(bool writes);
    void handOut(bool writes) noexcept;
    /// Whether the father's contents are those at the last arrival; true where only the device could tell.
    bool sameContents();

    const ArrayBase *father_;
    const ArrayBase *son_;
    std::atomic<State> state_ = State::Unknown;
    std::uint64_t sonVersion_ = 0;                 ///< version of the contents that `state_` describes
    std::atomic<std::uint64_t> fatherVersion_ = 0; ///< version of contents equal to those at the last arrival
    std::uint64_t fatherHash_ = 0;                 ///< hash of these
    bool hashed_ = false;                          ///< false if the host copy was stale
    Access reading_{*this, false};
    Access writing_{*this, true};
};

} // namespace DNDS
