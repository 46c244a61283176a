/// @file CommunicatorContext.hpp
/// @brief The library's state for each communicator of the user: a private duplicate and unique message tags; the ranks
/// that share this rank's node, and the memory they share.
///
/// `ThreadUse` detects concurrent use, by two threads, of a resource for one thread at a time. `sparseExchange`
/// delivers lists for a few ranks each, when receivers do not know their senders.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <typeindex>
#include <utility>
#include <vector>

namespace DNDS {

class NodeArena;

/// A place in a rank's arena, as numbers that are the same for all ranks of the node.
struct ArenaLocation {
    std::uint32_t segment = 0;
    std::uint64_t offset = 0;
};

/// The view that a communicator's ranks have of their node.
struct NodeTopology {
    std::vector<int> members;         ///< the ranks of the communicator on this node, by node rank: ascending
    std::shared_ptr<NodeArena> arena; ///< null if memory cannot be shared
    /// For reports: the reason why `arena` is null.
    std::string whyNoArena;
    bool crowded = false; ///< more ranks than processors: a waiting rank should yield

    /// The rank on this node of a rank of the communicator; -1 for ranks of other nodes. O(log members).
    int nodeRank(int rank) const {
        const auto at = std::lower_bound(members.begin(), members.end(), rank);
        return at != members.end() && *at == rank ? static_cast<int>(at - members.begin()) : -1;
    }
    bool sameNode(int rank) const { return nodeRank(rank) >= 0; }

    /// Discovers the node. Collective over `comm`. `ranksPerNode` as in Communicator::splitNode.
    static NodeTopology discover(CommunicatorView comm, int ranksPerNode);
};

/// The thread that uses a resource. Not a lock: of two threads that enter in the same nanoseconds none may notice, so
/// that entering costs two stores; a thread that waits inside is noticed by all others that enter.
///
///     const ThreadUse::Scope use(use_, [&] { return fmt::format("the pull of '{}'", name); });
class ThreadUse {
  public:
    /// As long as it lives, this thread is the user. Scopes of one thread nest.
    class [[nodiscard]] Scope {
      public:
        /// `what()` is the resource's name in the message or, for the whole process, the next action. Throws
        /// StateError while another thread is the user. Local.
        template <class What>
        Scope(ThreadUse &use, What &&what, SourceLocation where = SourceLocation::current())
            : use_(use), before_(use.user_.load(std::memory_order_relaxed)) {
            const std::thread::id self = std::this_thread::get_id();
            if (before_ != std::thread::id() && before_ != self) [[unlikely]]
                throwUsed(&use == &ofProcess(), what(), where);
            use.user_.store(self, std::memory_order_relaxed);
        }
        Scope(const Scope &) = delete;
        Scope &operator=(const Scope &) = delete;
        ~Scope() { use_.user_.store(before_, std::memory_order_relaxed); }

      private:
        /// The resource, and its user when this scope began, who is restored at its end: the same thread or no
        /// thread.
        ThreadUse &use_;
        std::thread::id before_;
    };

    /// The use of MPI if it does not serve several threads at a time.
    static ThreadUse &ofProcess() noexcept {
        static ThreadUse process;
        return process;
    }

  private:
    [[noreturn]] static void throwUsed(bool process, const std::string &what, SourceLocation where);

    /// The thread inside, or none. Relaxed: a hint, not a lock.
    std::atomic<std::thread::id> user_{};
};

class Revocation;

/// A communicator and a tag of its own: messages on different channels never mix.
struct Channel {
    MPI_Comm comm = MPI_COMM_NULL;
    int tag = 0;
    std::size_t place = 0; ///< index of the communicator in the context
};

/// An object whose parts on the ranks of a communicator talk to each other, and that works again after a recovery. Its
/// owner enlists it with the context, at the end of its collective construction.
class Recoverable {
  public:
    Recoverable() = default;
    Recoverable(const Recoverable &) = delete;
    Recoverable &operator=(const Recoverable &) = delete;
    virtual ~Recoverable() = default;

    /// Abandons operations in flight: cancels receives, and resets the state. True when neither MPI nor a device
    /// reads or writes memory of this object any more; called again until then. Local; waits for own kernels only.
    virtual bool settle() noexcept = 0;
    /// When all ranks have settled: resets the object to its initial state, epochs included, with channels from
    /// `CommunicatorContext::renewed`. Local. Its exceptions are thrown on all ranks.
    virtual void renew() = 0;
};

/// One object a communicator, cached on it as an MPI attribute (as PETSc does), so that any number of arrays and
/// exchanges costs one duplicated communicator instead of one each.
///
/// The duplicate is freed when the user frees the communicator, or in MPI_Finalize: both are the same moment on all
/// ranks, which destructors of arrays are not. Patterns hold the object by `shared_ptr`; with its communicator freed
/// `alive()` is false and starting an exchange throws.
///
/// It serves several threads if MPI does (MPI_THREAD_MULTIPLE). Set-ups are collective: one at a time, in the same
/// order on all ranks, on any thread (`SetUp` notices two at a time). Between them, each thread may run an
/// exchange, and any thread may destroy one. Threads that set up at the same time have a communicator each.
class CommunicatorContext : public std::enable_shared_from_this<CommunicatorContext> {
  public:
    /// The context of `comm`, made on first use; of a private duplicate, the context that owns it. Collective on first
    /// use, Local afterwards, on any thread. Throws ArgumentError on all ranks if their environment variables differ
    /// (docs/reference/settings.md), or are invalid.
    static std::shared_ptr<CommunicatorContext> of(CommunicatorView comm);
    /// The same if it was made before; else null. Local, on any thread.
    static std::shared_ptr<CommunicatorContext> find(CommunicatorView comm);

    /// For `of`: Local, and not usable before `connect`.
    explicit CommunicatorContext(CommunicatorView user);
    ~CommunicatorContext();

    /// The private duplicate. Throws StateError when the user's communicator was freed or MPI is finalized.
    const CommunicatorView &comm(SourceLocation where = SourceLocation::current()) const;
    bool alive() const noexcept { return alive_.load(std::memory_order_relaxed); }

    /// While one lives, this thread makes a collective set-up call; they nest. A second thread waits for the end of the
    /// first one's call: messages and numbers of the two must not mix.
    class [[nodiscard]] SetUp {
      public:
        /// Throws StateError, before anything was sent, if another thread is in such a call and MPI
        /// does not serve several threads. Local; may wait for other threads.
        explicit SetUp(CommunicatorContext &context, SourceLocation where = SourceLocation::current());
        /// Throws StateError if another thread was in a set-up call of the context when this one began: then ranks have
        /// the same order only by chance. To be called where ranks agree on failures. Local.
        void requireAlone(SourceLocation where = SourceLocation::current()) const;
        bool alone() const noexcept { return alone_; }

      private:
        std::optional<ThreadUse::Scope> use_;
        /// Recursive: set-up calls nest on one thread.
        std::unique_lock<std::recursive_mutex> lock_;
        bool alone_;
    };

    /// The object in which `ThreadUse` tells users apart: `own`, or, without support for several threads, that of the
    /// process. Local.
    ThreadUse &useOf(ThreadUse &own) const noexcept { return servesThreads_ ? own : ThreadUse::ofProcess(); }

    /// A channel that was never handed out before. Local, but all ranks must call it in the same order (it is part of
    /// collective set-up calls), so that they get equal channels. Collective (one duplication) each time MPI's tags are
    /// used up.
    Channel nextChannel();
    /// The channel of a tag chosen by the program, the same on all ranks, for messages between ranks that do not
    /// set up their ends collectively. Local. Throws ArgumentError for tags below 0 or beyond half of MPI's.
    Channel programChannel(int tag) const;

    /// Runs `body`, a running call: start, wait, put, iterate. Its exceptions revoke the communicator, so that no
    /// other rank waits for this one; `call` and `name` ("the pull of", "u") appear in the others' errors. Throws
    /// RevokedError instead if it is revoked already. Local. Cost: as Revocation::requireValid.
    template <class Body>
    decltype(auto) running(std::string_view call, std::string_view name, Body &&body,
                           SourceLocation where = SourceLocation::current()) {
        if (alive()) // else `body` throws
            requireValid(where);
        try {
            return std::forward<Body>(body)();
        } catch (...) {
            failRunning(call, name, where);
        }
    }
    /// Reports the failure of this rank in `call` of `name`. Local, does not wait.
    void revoke(std::string_view call, std::string_view name, const std::exception_ptr &failure) noexcept;
    /// Throws RevokedError if the communicator is revoked. Local. Cost: as Revocation::requireValid.
    void requireValid(SourceLocation where = SourceLocation::current());
    /// Whether some rank has failed, as far as this node knows. Local; one load.
    bool revoked() const noexcept;
    Revocation &revocation() noexcept { return *revocation_; }

    /// Makes the communicator and all its users usable again, after a failure on any rank: operations in flight are
    /// cancelled, epochs start over, and messages from before match nothing. Owned rows keep their values; ghosts are
    /// stale. Collective over all ranks, each outside of other calls. Waits for all ranks. Throws PeerError where one
    /// has ended, or does not come within DNDS_WAIT_TIMEOUT; MemoryError on all ranks where one lacks memory.
    void recover();
    /// Adds `object` to the objects settled by `recover`, until `delist`. Local.
    void enlist(Recoverable &object);
    void delist(Recoverable &object) noexcept;
    /// For `Recoverable::renew`: the replacement of `channel`.
    Channel renewed(const Channel &channel) const {
        return {channelOwners()[channel.place].view().handle(), channel.tag, channel.place};
    }

    /// Seconds to wait for other ranks, from DNDS_WAIT_TIMEOUT; 0: as long as their processes live. Local.
    double waitTimeout() const noexcept { return waitTimeout_; }

    /// The ranks that share this rank's node, and their memory.
    const NodeTopology &node() const noexcept { return *node_; }

    /// State that other parts of DNDS keep once per communicator: an object of type `T`, to which `make()` returns a
    /// pointer at the first request. `make` throws on all ranks or on none, and may communicate. Collective at
    /// the first call, Local afterwards. The context destroys the object.
    template <class T, class Make>
    T &attach(Make &&make) {
        if (const std::shared_ptr<T> made = attachment<T>())
            return *made;
        const SetUp setUp(*this);
        if (const std::shared_ptr<T> made = attachment<T>()) // made by a thread that this one has waited for
            return *made;
        std::shared_ptr<void> *place = nullptr;
        comm().guarded([&] {
            setUp.requireAlone();
            const std::lock_guard lock(attaching_);
            place = &attachments_[std::type_index(typeid(T))];
        });
        std::shared_ptr<T> made = std::forward<Make>(make)();
        const std::lock_guard lock(attaching_);
        *place = made;
        return *made;
    }
    /// The same if it was made; else null. Local.
    template <class T>
    std::shared_ptr<T> attachment() const {
        const std::lock_guard lock(attaching_);
        const auto found = attachments_.find(std::type_index(typeid(T)));
        return found == attachments_.end() ? nullptr : std::static_pointer_cast<T>(found->second);
    }

    /// Numbers numberings, mappings and patterns of this communicator, so that ranks can tell them apart: the same on
    /// all ranks. Local, called as `nextChannel`.
    std::uint64_t nextSerial();

    /// For destructors: keeps memory that MPI or other ranks may still read or write until `finished`, which must not
    /// throw, returns true. It is called now, if this thread may call MPI for operations of the thread `maker`,
    /// then now and then, and when the communicator is freed. Memory still in use after that is never freed.
    /// Local, does not wait, on any thread.
    void park(std::shared_ptr<void> kept, std::function<bool()> finished, std::thread::id maker) noexcept;

    /// Keeps this rank's part of an object destroyed here, which other ranks may still read and write, until all
    /// ranks keep theirs and have recovered; for ever if the communicator is freed before. `object` is the same
    /// number on all ranks (`nextSerial`). `end`, which may be empty, is called on all ranks before any of them
    /// frees its part. Local, on any thread.
    void keep(std::uint64_t object, std::shared_ptr<void> kept, std::function<void()> end);
    /// Keeps memory that other ranks may still write to, until the communicator has recovered; for ever if it is
    /// freed before. Local, on any thread.
    void keepUntilRecovery(std::shared_ptr<void> kept);
    /// For `Recoverable::renew`: a rank that has destroyed its part of `object`; -1 if none has. Local.
    int destroyedOn(std::uint64_t object) const {
        const auto found = destroyed_.find(object);
        return found == destroyed_.end() ? -1 : found->second;
    }

    /// Whether something is parked. Local, O(1).
    bool hasParked() const noexcept { return parkedCount_.load(std::memory_order_relaxed) > 0; }
    /// Progresses parked operations, if there are any: peers may wait for them. Local; on a thread that may call MPI.
    void progressParked() {
        if (hasParked())
            freeFinished();
    }

    /// Frees parked objects and the communicators; called when the user's communicator is freed. Operations incomplete
    /// on some peer after a second are never freed.
    void release() noexcept;

  private:
    struct Parked;
    using ParkedList = std::list<Parked>;
    /// Objects that are never freed, but reachable, so that leak checkers do not report them.
    static ParkedList &forEver();
    /// For `running`: reports the exception being handled.
    [[noreturn]] void failRunning(std::string_view call, std::string_view name, SourceLocation where);
    void keepForEver() noexcept;
    /// Makes a context. Collective.
    static std::shared_ptr<CommunicatorContext> make(const CommunicatorView &comm);
    /// Makes the duplicate and discovers the node. Collective.
    void connect(int ranksPerNode);
    /// One more private duplicate for channels, in a list that has room. Collective.
    void addDuplicate();
    std::vector<Communicator> &channelOwners() noexcept { return channels_.empty() ? owned_ : channels_; }
    const std::vector<Communicator> &channelOwners() const noexcept { return channels_.empty() ? owned_ : channels_; }
    /// Frees parked objects that are finished; true when none is left, in no thread.
    bool freeFinished();
    /// As `waitUntil`, within `recover`: continues although the communicator is revoked.
    template <class Done>
    void waitRevoked(std::string_view what, const Done &done);
    /// Waits until all ranks are here; optionally discards messages that arrive on channels meanwhile.
    void meet(std::string_view what, bool discards);
    /// Settles all enlisted objects; true when MPI needs the memory of none of them.
    bool settleAll() noexcept;
    /// Receives and drops messages that have arrived on the private communicators.
    void discardArrived();
    /// Frees objects that all ranks have destroyed, and notes the others that some rank has. Collective.
    void freeKept();

    bool servesThreads_; ///< whether MPI serves several threads
    /// Held by `SetUp`: one set-up call at a time, whose parts may nest.
    std::recursive_mutex settingUp_;
    std::vector<Communicator> owned_;    ///< for collectives, and for channels until the first recovery
    std::vector<Communicator> channels_; ///< channels after it, in place of `owned_`
    std::unique_ptr<Revocation> revocation_;
    /// From DNDS_WAIT_TIMEOUT, the same on all ranks; seconds.
    double waitTimeout_ = 0;
    std::mutex enlisting_; ///< guards `recoverables_`
    /// Objects between `enlist` and `delist`, in the order of their construction.
    std::vector<Recoverable *> recoverables_;
    std::mutex parking_; ///< guards `parked_`: exchanges may be destroyed on any thread
    ParkedList parked_;
    /// This rank's part of an object that it has destroyed while others may use it, and what ends it: see `keep`.
    using Kept = std::pair<std::shared_ptr<void>, std::function<void()>>;
    std::map<std::uint64_t, Kept> kept_; ///< keyed by object; under the same lock
    /// Memory that peers may still write; under the same lock.
    std::vector<std::shared_ptr<void>> keptUntilRecovery_;
    std::map<std::uint64_t, int> destroyed_;  ///< objects that some rank keeps, and that rank, at the last recovery
    std::atomic<std::size_t> parkedCount_{0}; ///< including objects that a thread asks just now
    /// The private duplicate; the user's communicator until `connect`.
    CommunicatorView view_;
    std::unique_ptr<NodeTopology> node_; ///< filled in by `connect`
    mutable std::mutex attaching_;       ///< guards `attachments_`
    std::map<std::type_index, std::shared_ptr<void>> attachments_;
    /// The next number of `nextSerial`, and the next tag; both equal on all ranks outside of set-up calls. Tag 0 is
    /// that of notices of failures.
    std::uint64_t serial_ = 1;
    int nextTag_ = 1;
    int lastTag_ = 0; ///< last tag of `nextChannel`; tags beyond it are the program's
    std::atomic<bool> alive_ = true;
};

/// Lists of numbers to or from some ranks: list `k` belongs to `ranks[k]` and is `values[starts[k]..starts[k + 1])`.
/// Ranks ascend strictly; `starts` has one entry more than `ranks` and begins with 0.
struct RankLists {
    std::vector<int> ranks;
    std::vector<index> starts{0};
    std::vector<index> values;

    /// Number of lists.
    std::size_t size() const noexcept { return ranks.size(); }
    /// The list of `ranks[k]`.
    std::span<const index> list(std::size_t k) const {
        return std::span<const index>(values).subspan(static_cast<std::size_t>(starts[k]),
                                                      static_cast<std::size_t>(starts[k + 1] - starts[k]));
    }
    /// Appends the list of the next higher rank.
    void append(int rank, std::span<const index> list);
};

/// Method by which receivers learn their senders.
enum class PeerDiscovery : unsigned char {
    Auto,     ///< all-to-all up to 32 ranks, consensus above
    AllToAll, ///< every rank tells every other its count: fewest steps when ranks are few
    Consensus ///< synchronous sends and a non-blocking barrier: messages in proportion to peers, not ranks
};

/// Delivers each outgoing list to its rank and returns the lists that other ranks sent here. Collective.
///
/// Lists to oneself are allowed and copied; empty lists are not sent. Consensus is the NBX algorithm (Hoefler, Siebert,
/// Lumsdaine: Scalable communication protocols for dynamic sparse data exchange, PPoPP 2010), with its own tag a call.
/// Cost: O(peers + values) messages and memory, and O(log ranks) or O(ranks) steps for discovery.
///
/// `failure` is the exception of this rank's preparation of its lists, if any: then all ranks throw it as
/// `CommunicatorView::agree` does, and nothing is delivered. The same where a rank has no memory to receive: counts
/// go first, and lists only when all ranks have confirmed, by one reduction, that they have room.
RankLists sparseExchange(CommunicatorContext &context, const RankLists &outgoing,
                         PeerDiscovery discovery = PeerDiscovery::Auto, const std::exception_ptr &failure = nullptr);

} // namespace DNDS
