/// @file CommunicatorContext.hpp
/// @brief What DNDS keeps for each communicator of its user: a private duplicate and unique message tags.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/Revocation.hpp"
#include "DNDS/Mpi/ThreadUse.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <typeindex>
#include <utility>
#include <vector>

namespace DNDS {

struct NodeTopology;

/// A communicator and a tag that no other exchange uses: messages on different channels never mix.
struct Channel {
    MPI_Comm comm = MPI_COMM_NULL;
    int tag = 0;
    std::size_t place = 0; ///< of the communicator among the context's
};

/// An object whose parts on the ranks of a communicator talk to each other, and go on after a recovery. Enlisted with
/// the context by whoever owns it, from the end of its collective construction on.
class Recoverable {
  public:
    Recoverable() = default;
    Recoverable(const Recoverable &) = delete;
    Recoverable &operator=(const Recoverable &) = delete;
    virtual ~Recoverable() = default;

    /// Gives up what is under way: cancels receives, and forgets what was begun. True when neither MPI nor a device
    /// reads or writes memory of this object any more; called again until then. Local, does not wait.
    virtual bool settle() noexcept = 0;
    /// When all ranks have settled: becomes as it was when it was made, epochs included, and takes its channels from
    /// `CommunicatorContext::renewed`. Local. What it throws is thrown on all ranks.
    virtual void renew() = 0;
};

/// One object a communicator, cached on it as an MPI attribute (as PETSc does), so that any number of arrays and
/// exchanges costs one duplicated communicator instead of one each.
///
/// The duplicate is freed when the user frees the communicator, or in MPI_Finalize: both are the same moment on all
/// ranks, which destructors of arrays are not. Patterns hold the object by `shared_ptr`; after its communicator is gone
/// `alive()` is false and starting an exchange throws.
///
/// It serves several threads where MPI does (MPI_THREAD_MULTIPLE). Set-ups are collective: one at a time, in the same
/// order on all ranks, on whichever thread (`SetUp` notices two at a time). Between them, each thread may run an
/// exchange, and any thread may destroy one. Threads that set up at the same time have a communicator each.
class CommunicatorContext : public std::enable_shared_from_this<CommunicatorContext> {
  public:
    /// The context of `comm`, made on first use; of a private duplicate, the context that owns it. Collective on first
    /// use, Local afterwards, on any thread. Throws ArgumentError on all ranks where their environment variables differ
    /// (docs/reference/settings.md), or say what cannot be.
    static std::shared_ptr<CommunicatorContext> of(CommunicatorView comm);
    /// The same where it was made already; null elsewhere. Local, on any thread.
    static std::shared_ptr<CommunicatorContext> find(CommunicatorView comm);

    /// For `of`: Local, and of no use before `connect`.
    explicit CommunicatorContext(CommunicatorView user);
    ~CommunicatorContext();

    /// The private duplicate. Throws StateError when the user's communicator was freed or MPI is finalized.
    const CommunicatorView &comm(SourceLocation where = SourceLocation::current()) const;
    bool alive() const noexcept { return alive_.load(std::memory_order_relaxed); }

    /// While one lives, this thread makes a collective set-up call; they nest. A thread that comes while another one is
    /// in such a call waits for its end: messages and numbers of the two must not mix.
    class [[nodiscard]] SetUp {
      public:
        /// Throws StateError, before anything was sent, in a call at the same time as one of another thread where MPI
        /// does not serve several threads. Local; may wait for other threads.
        explicit SetUp(CommunicatorContext &context, SourceLocation where = SourceLocation::current());
        /// Throws StateError where another thread was in a set-up call of the context when this one began: then the
        /// order is not the same on all ranks but by chance. To be called where ranks agree on failures. Local.
        void requireAlone(SourceLocation where = SourceLocation::current()) const;
        bool alone() const noexcept { return alone_; }

      private:
        std::optional<ThreadUse::Scope> use_;
        std::unique_lock<std::recursive_mutex> lock_;
        bool alone_;
    };

    /// Whose users `ThreadUse` has to tell apart: `own`, or, where MPI does not serve several threads, those of the
    /// process. Local.
    ThreadUse &useOf(ThreadUse &own) const noexcept { return servesThreads_ ? own : ThreadUse::ofProcess(); }

    /// A channel that was never handed out before. Local, but all ranks must call it in the same order (it is part of
    /// collective set-up calls), so that they get equal channels. Collective (one duplication) each time MPI's tags run
    /// out.
    Channel nextChannel();
    /// The channel of a tag that the program has chosen, the same on all ranks, for messages between ranks that do not
    /// wait for others to make their ends. Local. Throws ArgumentError for tags below 0 or beyond half of MPI's.
    Channel programChannel(int tag) const;

    /// Runs `body`, a running call: start, wait, put, iterate. What it throws revokes the communicator, so that no
    /// other rank waits for this one; `call` and `name` ("the pull of", "u") are what the others are told. Throws
    /// RevokedError instead where it is revoked already. Local. Cost: as Revocation::requireValid.
    template <class Body>
    decltype(auto) running(std::string_view call, std::string_view name, Body &&body,
                           SourceLocation where = SourceLocation::current()) {
        if (alive()) // else `body` says so
            revocation_.requireValid(where);
        try {
            return std::forward<Body>(body)();
        } catch (...) {
            failRunning(call, name, where);
        }
    }
    /// This rank has failed in `call` of `name`. Local, does not wait.
    void revoke(std::string_view call, std::string_view name, const std::exception_ptr &failure) noexcept;
    Revocation &revocation() noexcept { return revocation_; }

    /// Makes the communicator and all that uses it usable again, after a failure on any rank: what was under way is
    /// given up, epochs begin anew, and messages from before match nothing. Owned rows keep their values; ghosts are
    /// stale. Collective over all ranks, each outside of other calls. Waits for all ranks. Throws PeerError where one
    /// has ended, or does not come within DNDS_WAIT_TIMEOUT; on all ranks what one has no memory for.
    void recover();
    /// What `recover` calls from now on, until `delist`. Local.
    void enlist(Recoverable &object);
    void delist(Recoverable &object) noexcept;
    /// For `Recoverable::renew`: the channel that takes the place of `channel`.
    Channel renewed(const Channel &channel) const {
        return {channelOwners()[channel.place].view().handle(), channel.tag, channel.place};
    }

    /// Seconds to wait for other ranks, as DNDS_WAIT_TIMEOUT says; 0: as long as their processes live. Local.
    double waitTimeout() const noexcept { return waitTimeout_; }

    /// Which ranks share this rank's node, and their memory.
    const NodeTopology &node() const noexcept { return *node_; }

    /// What other parts of DNDS keep once for each communicator: an object of type `T`, which `make()` returns a
    /// pointer to when it is first asked for. `make` throws on all ranks or on none, and may communicate. Collective at
    /// the first call, Local afterwards. The object goes with the context.
    template <class T, class Make>
    T &attach(Make &&make) {
        if (const std::shared_ptr<T> made = attachment<T>())
            return *made;
        const SetUp setUp(*this);
        if (const std::shared_ptr<T> made = attachment<T>()) // by a thread that was waited for
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
    /// The same where it was made; null elsewhere. Local.
    template <class T>
    std::shared_ptr<T> attachment() const {
        const std::lock_guard lock(attaching_);
        const auto found = attachments_.find(std::type_index(typeid(T)));
        return found == attachments_.end() ? nullptr : std::static_pointer_cast<T>(found->second);
    }

    /// Counts numberings, mappings and patterns of this communicator, which ranks tell apart by it: the same number on
    /// all ranks. Local, called as `nextChannel`.
    std::uint64_t nextSerial();

    /// For destructors: keeps what MPI or other ranks may still read or write until `finished`, which must not throw,
    /// says that nothing moves any more. It is asked now, where this thread may call MPI for what the thread `maker`
    /// made, then now and then, and when the communicator goes. Once the communicator is freed, such memory never is.
    /// Local, does not wait, on any thread.
    void park(std::shared_ptr<void> kept, std::function<bool()> finished, std::thread::id maker) noexcept;

    /// Keeps this rank's part of an object that is gone here, which other ranks may still read and write, until all
    /// ranks keep theirs and have recovered, or the communicator goes. `object` is the same number on all ranks
    /// (`nextSerial`). `end`, which may be empty, is called on all ranks before any of them frees its part. Local, on
    /// any thread.
    void keep(std::uint64_t object, std::shared_ptr<void> kept, std::function<void()> end);
    /// Keeps memory that other ranks may still write to, until the communicator has recovered, or goes. Local, on any
    /// thread.
    void keepUntilRecovery(std::shared_ptr<void> kept);
    /// For `Recoverable::renew`: a rank that has destroyed its part of `object`; -1 where none has. Local.
    int destroyedOn(std::uint64_t object) const {
        const auto found = destroyed_.find(object);
        return found == destroyed_.end() ? -1 : found->second;
    }

    /// Whether something is parked. Local, O(1).
    bool hasParked() const noexcept { return parkedCount_.load(std::memory_order_relaxed) > 0; }
    /// Lets go on what is parked, if anything is: peers may wait for it. Local; on a thread that may call MPI.
    void progressParked() {
        if (hasParked())
            freeFinished();
    }

    /// Frees what is parked and the communicators; called when the user's communicator goes. What peers do not complete
    /// within a second is never freed.
    void release() noexcept;

  private:
    struct Parked {
        std::shared_ptr<void> kept;
        std::function<bool()> finished;
    };
    using ParkedList = std::list<Parked>;
    /// What is never freed, but reachable, so that nothing reports it as lost.
    static ParkedList &forEver();
    /// For `running`, of the exception being handled.
    [[noreturn]] void failRunning(std::string_view call, std::string_view name, SourceLocation where);
    void keepForEver() noexcept;
    /// Makes it. Collective.
    static std::shared_ptr<CommunicatorContext> make(const CommunicatorView &comm);
    /// Makes the duplicate and finds out about the node. Collective.
    void connect(int ranksPerNode);
    /// One more private duplicate for channels, in a list that has room. Collective.
    void addDuplicate();
    std::vector<Communicator> &channelOwners() noexcept { return channels_.empty() ? owned_ : channels_; }
    const std::vector<Communicator> &channelOwners() const noexcept { return channels_.empty() ? owned_ : channels_; }
    /// Whether nothing is left.
    bool freeFinished();
    template <class Done>
    void waitRevoked(std::string_view what, const Done &done);
    /// Waits until all ranks have come here; takes what arrives on channels meanwhile.
    void meet(std::string_view what, bool discards);
    bool settleAll() noexcept;
    void discardArrived();
    void freeKept();

    bool servesThreads_; ///< whether MPI does
    std::recursive_mutex settingUp_;
    std::vector<Communicator> owned_;    ///< for collectives, and channels until the first recovery
    std::vector<Communicator> channels_; ///< since then, in the place of `owned_`
    Revocation revocation_;
    double waitTimeout_ = 0;
    std::mutex enlisting_; ///< of `recoverables_`
    std::vector<Recoverable *> recoverables_;
    std::mutex parking_; ///< of `parked_`: exchanges may be destroyed on any thread
    ParkedList parked_;
    struct Kept {
        std::shared_ptr<void> memory;
        std::function<void()> end;
    };
    std::map<std::uint64_t, Kept> kept_; ///< by objects; under the same lock
    std::vector<std::shared_ptr<void>> keptUntilRecovery_;
    std::map<std::uint64_t, int> destroyed_; ///< objects that some rank keeps, and that rank, at the last recovery
    std::atomic<std::size_t> parkedCount_{0};
    CommunicatorView view_;
    std::unique_ptr<NodeTopology> node_; ///< filled in by `connect`
    mutable std::mutex attaching_;       ///< of `attachments_`
    std::map<std::type_index, std::shared_ptr<void>> attachments_;
    std::uint64_t serial_ = 1;
    int nextTag_ = 1;
    int lastTag_ = 0; ///< of `nextChannel`; tags beyond it are the program's
    std::atomic<bool> alive_ = true;
};

} // namespace DNDS
