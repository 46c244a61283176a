#include "DNDS/Mpi/CommunicatorContext.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/AtFinalize.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Revocation.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace DNDS {

namespace {

/// The value of the attribute on the user's communicator: one reference, freed by MPI with the communicator.
using Attribute = std::shared_ptr<CommunicatorContext>;

/// MPI_Comm_free of the user's communicator calls it on all ranks at the same point of the program: the private
/// duplicates can be freed there, which is collective as well.
int deleteAttribute(MPI_Comm, int, void *value, void *) {
    auto *held = static_cast<Attribute *>(value);
    (*held)->release();
    delete held;
    return MPI_SUCCESS;
}

/// The attribute keys, and the list of all contexts. Releases those of MPI_COMM_WORLD and of communicators that were
/// never freed at the start of MPI_Finalize, when communication still works.
/// `mutex` is never held during communication: `making` marks a communicator while its context is made.
struct Keys {
    std::mutex mutex;             ///< guards the members below, and is held while a context is looked for or hung on
    std::condition_variable made; ///< tells that something has left `making`
    std::vector<MPI_Comm> making; ///< communicators whose context some thread makes
    int context = MPI_KEYVAL_INVALID;
    int duplicate = MPI_KEYVAL_INVALID; ///< on the private duplicates: the context, which owns them
    std::vector<std::weak_ptr<CommunicatorContext>> contexts;

    Keys() {
        checkMpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleteAttribute, &context, nullptr),
                 "MPI_Comm_create_keyval");
        checkMpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &duplicate, nullptr),
                 "MPI_Comm_create_keyval");
        making.reserve(64); // one rank alone must not run out of memory where others wait for it
        atFinalize([](void *all) noexcept { static_cast<Keys *>(all)->releaseLeftovers(); }, this);
    }
    void releaseLeftovers() noexcept {
        for (const auto &each : std::exchange(contexts, {}))
            if (const auto alive = each.lock())
                alive->release();
    }
};

Keys &keys() {
    static Keys made;
    return made;
}

/// MPI's largest tag; 32767, which the standard guarantees, where MPI does not tell.
int largestTag(MPI_Comm comm) {
    void *value = nullptr;
    int found = 0;
    checkMpi(MPI_Comm_get_attr(comm, MPI_TAG_UB, &value, &found), "MPI_Comm_get_attr");
    return found != 0 ? *static_cast<int *>(value) : 32767;
}

using Choices = decltype(Environment{}.choices());

/// Virtual nodes, timeouts and transports must be the same on all ranks. Collective; one reduction. Throws
/// ArgumentError on all ranks where one differs.
void agreeOn(const CommunicatorView &comm, const Choices &choices) {
    std::vector<std::string> values;
    comm.guarded([&] {
        for (const auto &choice : choices)
            values.push_back(choice.second);
    });
    requireSame(comm, values, [&](std::size_t k, const std::string *first) {
        const auto quoted = [](std::string_view value) {
            return value.empty() ? std::string("not set") : fmt::format("'{}'", value);
        };
        throw ArgumentError(
            fmt::format("the environment variable {} is {} on rank {}, but {} on rank 0: give all ranks the same value",
                        choices[k].first, quoted(values[k]), comm.rank(), quoted(*first)));
    });
}

/// Under the lock of `keys`.
std::shared_ptr<CommunicatorContext> foundOn(const CommunicatorView &comm) {
    void *value = nullptr;
    int found = 0;
    checkMpi(MPI_Comm_get_attr(comm.handle(), keys().context, &value, &found), "MPI_Comm_get_attr");
    if (found != 0)
        return *static_cast<Attribute *>(value);
    checkMpi(MPI_Comm_get_attr(comm.handle(), keys().duplicate, &value, &found), "MPI_Comm_get_attr");
    return found != 0 ? static_cast<CommunicatorContext *>(value)->shared_from_this() : nullptr;
}

} // namespace

std::shared_ptr<CommunicatorContext> CommunicatorContext::find(CommunicatorView comm) {
    const std::lock_guard lock(keys().mutex);
    return foundOn(comm);
}

// Look under the lock, make without it, publish by an attribute: O(1) after the first call. One thread a communicator
// makes the context; the others wait, then find the attribute. After a failure a waiting thread tries again.
std::shared_ptr<CommunicatorContext> CommunicatorContext::of(CommunicatorView comm) {
    requireMpiActive("a communicator's context is needed");
    // It is the same whichever thread of each rank makes it, so that several may ask for it at a time.
    const auto isMaking = [](MPI_Comm handle) {
        return std::ranges::find(keys().making, handle) != keys().making.end();
    };
    {
        std::unique_lock lock(keys().mutex);
        keys().made.wait(lock, [&] { return !isMaking(comm.handle()); });
        if (auto found = foundOn(comm))
            return found;
        keys().making.push_back(comm.handle());
    }
    // Without the lock: making waits for other ranks, and threads with other communicators must not wait with it.
    // Threads with this one wait on `made`.
    std::shared_ptr<CommunicatorContext> made;
    const std::exception_ptr failure = attempt([&] { made = make(comm); });
    {
        const std::lock_guard lock(keys().mutex);
        std::erase(keys().making, comm.handle());
    }
    keys().made.notify_all();
    if (failure)
        std::rethrow_exception(failure);
    return made;
}

std::shared_ptr<CommunicatorContext> CommunicatorContext::make(const CommunicatorView &comm) {
    // In three steps, so that all ranks have the context or none: allocate locally, and agree; compare settings;
    // make the duplicate. Attached last: until then no other call finds it, and an exception frees it.
    std::unique_ptr<Attribute> held;
    int ranksPerNode = 0;
    Choices choices;
    comm.guarded([&] {
        const Environment environment = readEnvironment();
        ranksPerNode = environment.ranksPerNode;
        choices = environment.choices();
        Detail::prepareRollCall(environment);
        held = std::make_unique<Attribute>(std::make_shared<CommunicatorContext>(comm));
        (*held)->waitTimeout_ = environment.waitTimeout;
        const std::lock_guard lock(keys().mutex);
        std::erase_if(keys().contexts, [](const auto &context) { return context.expired(); });
        keys().contexts.push_back(*held);
    });
    agreeOn(comm, choices);
    // All ranks have this context, or none has: from here on nothing is allocated by one alone.
    (*held)->connect(ranksPerNode);
    const std::lock_guard lock(keys().mutex);
    checkMpi(MPI_Comm_set_attr(comm.handle(), keys().context, held.get()), "MPI_Comm_set_attr");
    return *held.release();
}

// Collective steps: the duplicate, the node and its shared memory, the identity, and last the record of failures, which
// lies in that memory.
void CommunicatorContext::connect(int ranksPerNode) {
    addDuplicate();
    view_ = owned_.back().view();
    lastTag_ = largestTag(view_.handle()) / 2;
    *node_ = NodeTopology::discover(view_, ranksPerNode);
    // The latest clock of all ranks names this life of the communicator. It differs from that of an earlier one, of
    // which MPI may have kept the number and late messages (Revocation::connect).
    const auto now = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    const std::uint64_t identity = view_.allReduce(now, MPI_MAX);
    view_.guarded([&] { revocation_->connect(view_, *node_, identity); });
}

void CommunicatorContext::addDuplicate() {
    // The duplicate refers back to this context, so that `of` works with either communicator.
    std::vector<Communicator> &owners = channelOwners();
    owners.push_back(Communicator::duplicate(view_));
    checkMpi(MPI_Comm_set_attr(owners.back().view().handle(), keys().duplicate, this), "MPI_Comm_set_attr");
}

/// Memory that MPI still used when its owner was destroyed, and the question whether it still does.
struct CommunicatorContext::Parked {
    std::shared_ptr<void> kept;
    std::function<bool()> finished;
};

CommunicatorContext::CommunicatorContext(CommunicatorView user)
    : servesThreads_(mpiServesAllThreads()), revocation_(std::make_unique<Revocation>()), view_(user),
      node_(std::make_unique<NodeTopology>()) {
    // Room for the first duplicate: a rank that ran out of memory after MPI_Comm_dup would fail alone.
    owned_.reserve(1);
}

CommunicatorContext::~CommunicatorContext() = default;

void CommunicatorContext::requireValid(SourceLocation where) { revocation_->requireValid(where); }

bool CommunicatorContext::revoked() const noexcept { return revocation_->revoked(); }

const CommunicatorView &CommunicatorContext::comm(SourceLocation where) const {
    if (!alive()) [[unlikely]]
        throw StateError("the communicator of this mapping was freed, or MPI is finalized", where);
    return view_;
}

// A mutex alone would order the threads of each rank, but differently on each. `alone_` records that another thread
// was inside, and `requireAlone` makes it an error at the next agreement of the ranks.
CommunicatorContext::SetUp::SetUp(CommunicatorContext &context, SourceLocation where)
    : lock_(context.settingUp_, std::try_to_lock), alone_(lock_.owns_lock()) {
    if (!context.servesThreads_)
        use_.emplace(
            ThreadUse::ofProcess(), [] { return std::string("an array or exchange is set up"); }, where);
    if (!alone_)
        lock_.lock();
}

void CommunicatorContext::SetUp::requireAlone(SourceLocation where) const {
    if (!alone_) [[unlikely]]
        throw StateError("two threads are in collective set-up calls of one communicator at the same time: make such "
                         "calls one after another, in the same order on all ranks, or give each thread a communicator "
                         "of its own (Communicator::duplicate)",
                         where);
}

// O(1) and without messages, except for one MPI_Comm_dup whenever half of MPI's tags are used up. No pair of
// communicator and tag is used twice, so a late message of a destroyed object matches no receive of a newer one.
Channel CommunicatorContext::nextChannel() {
    const SetUp setUp(*this);
    const CommunicatorView base = comm();
    base.beforeCollective(); // or ranks that have failed would count differently
    freeFinished();
    // All ranks count alike, so all reach this together.
    if (nextTag_ > lastTag_) {
        base.guarded([&] { channelOwners().reserve(channelOwners().size() + 1); });
        addDuplicate();
        nextTag_ = 1;
    }
    return {channelOwners().back().view().handle(), nextTag_++, channelOwners().size() - 1};
}

Channel CommunicatorContext::programChannel(int tag) const {
    // The upper half of MPI's tags on the first duplicate: no channel of `nextChannel` has them.
    DNDS_CHECK(tag >= 0 && tag < lastTag_, ArgumentError, "the tag {} is not one of those from 0 to {}", tag,
               lastTag_ - 1);
    static_cast<void>(comm()); // throws where it was freed
    return {channelOwners().front().view().handle(), lastTag_ + 1 + tag, 0};
}

// Numbers of mappings and patterns: equal on all ranks, so that ranks can compare objects by them.
std::uint64_t CommunicatorContext::nextSerial() {
    const SetUp setUp(*this);
    comm().beforeCollective(); // as above
    return serial_++;
}

// The one place for memory that MPI may still use when its owner is destroyed. `finished` is asked by later set-up
// calls and waits, on threads that may call MPI.
void CommunicatorContext::park(std::shared_ptr<void> kept, std::function<bool()> finished,
                               std::thread::id maker) noexcept {
    if (!mpiActive())
        return;
    // Often the operation is complete by now, and nothing is kept.
    const bool mayAsk = mayCallMpi(maker);
    if (mayAsk && finished())
        return;
    const std::exception_ptr noMemory = attempt([&] {
        (void)forEver(); // made now, so that giving up allocates nothing
        const std::lock_guard lock(parking_);
        parked_.push_back({kept, std::move(finished)});
        parkedCount_.fetch_add(1, std::memory_order_relaxed);
    });
    if (noMemory) // it stays for ever
        static_cast<void>(new (std::nothrow) std::shared_ptr<void>(std::move(kept)));
    else if (!alive())
        keepForEver();
    else if (mayAsk)
        freeFinished(); // of others, too
}

// O(log(kept objects)). The first recovery that finds this rank's part and all others kept frees them (`freeKept`).
void CommunicatorContext::keep(std::uint64_t object, std::shared_ptr<void> kept, std::function<void()> end) {
    const std::lock_guard lock(parking_);
    kept_.insert_or_assign(object, Kept{std::move(kept), std::move(end)});
}

void CommunicatorContext::keepUntilRecovery(std::shared_ptr<void> kept) {
    const std::lock_guard lock(parking_);
    keptUntilRecovery_.push_back(std::move(kept));
}

CommunicatorContext::ParkedList &CommunicatorContext::forEver() {
    static auto *kept = new ParkedList;
    return *kept;
}

/// Asks each parked object once: O(parked). Of two threads the first takes the whole list and the second finds it
/// empty; `parkedCount_` still includes the objects in hand, so the second does not report that all are finished.
bool CommunicatorContext::freeFinished() {
    ParkedList asked; // without the lock: what goes may run much code
    {
        const std::lock_guard lock(parking_);
        asked.swap(parked_);
    }
    const std::size_t ended = std::erase_if(asked, [](const Parked &parked) { return parked.finished(); });
    const std::lock_guard lock(parking_);
    parked_.splice(parked_.end(), asked);
    return parkedCount_.fetch_sub(ended, std::memory_order_relaxed) == ended;
}

// Ownership moves to a list that is never destroyed: memory that MPI or peers may still write stays allocated.
void CommunicatorContext::keepForEver() noexcept {
    static std::mutex keeping;
    const std::scoped_lock lock(parking_, keeping);
    forEver().splice(forEver().end(), parked_);
    // Never freed, and `end` is not called: that takes an agreement of all ranks, in a recovery.
    for (auto &[object, kept] : kept_)
        forEver().push_back({std::make_shared<Kept>(std::move(kept)), {}});
    kept_.clear();
    for (std::shared_ptr<void> &kept : keptUntilRecovery_)
        forEver().push_back({std::move(kept), {}});
    keptUntilRecovery_.clear();
}

// Takes at most a second, since a peer may never answer: unfinished operations are then kept for ever. Ranks that
// know of a failure meet in a barrier first, and drop messages until it is complete; without it the duplicate is
// kept, too.
void CommunicatorContext::release() noexcept {
    // Called twice for a communicator that lives until MPI_Finalize and is freed there: by the action at the end of
    // MPI, and by its attribute.
    const bool freed = !alive_.exchange(false);
    if (inForkedChild())
        return;
    static_cast<void>(attempt([&] { // after an error of MPI, it may still use the memory
        // Peers free the communicator at the same time, and so progress the messages in flight.
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        // After a failure there are messages that no rank receives. MPI gives the number of the communicator to the
        // next one, which would get them.
        MPI_Request here = MPI_REQUEST_NULL;
        const bool failed = !freed && revocation_->revoked();
        if (failed)
            checkMpi(MPI_Ibarrier(view_.handle(), &here), "MPI_Ibarrier");
        for (int met = 0; here != MPI_REQUEST_NULL && std::chrono::steady_clock::now() < end;) {
            discardArrived();
            checkMpi(MPI_Test(&here, &met, MPI_STATUS_IGNORE), "MPI_Test");
        }
        if (failed)
            discardArrived();
        if (here != MPI_REQUEST_NULL) // another rank does not free it: then it is never freed here
            forEver().push_back({std::make_shared<std::vector<Communicator>>(std::move(owned_)), {}});
        while (!freeFinished() && std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
    }));
    keepForEver();
    channels_.clear();
    owned_.clear();
}

} // namespace DNDS
