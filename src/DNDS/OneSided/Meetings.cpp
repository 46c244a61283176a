#include "DNDS/OneSided/Meetings.hpp"

#include "DNDS/OneSided/PeerWaits.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <span>

namespace DNDS {

namespace {

constexpr std::array<const char *, 8> verbs{
    "makes a heap", "makes a window", "makes a window over rows",          "is in a barrier",
    "allocates",    "frees",          "makes a window over an allocation", "destroys it"};

constexpr std::chrono::milliseconds betweenLooks(50);

std::uint64_t tokenOf(std::uint32_t object, std::uint32_t turn, CollectiveCall call) {
    return (static_cast<std::uint64_t>(object) << 40U) | (static_cast<std::uint64_t>(turn) << 8U) |
           (static_cast<std::uint64_t>(call) + 1);
}
std::uint32_t objectOf(std::uint64_t token) { return static_cast<std::uint32_t>(token >> 40U); }
std::uint32_t turnOf(std::uint64_t token) { return static_cast<std::uint32_t>(token >> 8U); }
const char *verbOf(std::uint64_t token) { return verbs[(token & 0xffU) - 1]; }
bool sameMeeting(std::uint64_t one, std::uint64_t other) { return one >> 8U == other >> 8U; }

constexpr std::uint32_t toBeMade = 0; ///< the object of calls that make one

constexpr const char *advice = "make all ranks call the same in the same order";

} // namespace

const char *verbOf(CollectiveCall call) noexcept { return verbs[static_cast<std::size_t>(call)]; }

Meetings &Meetings::of(CommunicatorContext &context) {
    return context.attach<Meetings>([&] { return std::make_shared<Meetings>(context); });
}

Meetings::Meetings(CommunicatorContext &context)
    : making_(context.nextChannel()), unmade_(context.nextChannel()), arena_(context.node().arena) {
    const CommunicatorView &comm = context.comm();
    const NodeTopology &node = context.node();
    const auto isFar = [&](int rank) { return rank != comm.rank() && !(arena_ && node.sameNode(rank)); };
    farBefore_ = isFar(PendingBarrier::before(comm));
    std::optional<ArenaLocation> mine;
    comm.guarded([&] {
        turns_.emplace(toBeMade, 0);
        places_.emplace(toBeMade, Place{making_, nullptr});
        for (int rank = 0; rank < comm.size(); ++rank)
            if (isFar(rank))
                far_.push_back(rank);
        if (!arena_) {
            own_ = std::make_shared<Post>();
            return;
        }
        void *place = arena_->allocate(sizeof(Post), alignof(Post));
        own_ = {new (place) Post,
                [arena = arena_](Post *post) { arena->deallocate(post, sizeof(Post), alignof(Post)); }};
        mine = arena_->locate(place);
    });
    const std::array<std::uint64_t, 2> place{mine ? mine->segment : 0, mine ? mine->offset : 0};
    const std::vector<std::array<std::uint64_t, 2>> all =
        comm.allGatherV(std::span<const std::array<std::uint64_t, 2>>(&place, 1));
    comm.guarded([&] {
        for (int rank = 0; arena_ && rank < comm.size(); ++rank) {
            const auto &[segment, offset] = all[static_cast<std::size_t>(rank)];
            if (rank != comm.rank() && node.sameNode(rank))
                others_.emplace_back(rank, reinterpret_cast<const Post *>(arena_->translate(
                                               node.nodeRank(rank), {static_cast<std::uint32_t>(segment), offset})));
        }
    });
}

std::shared_ptr<void> Meetings::know(PeerWaits &waits, const Channel &channel) {
    const std::lock_guard lock(knowing_);
    places_[waits.object()] = {channel, &waits};
    return {this, [object = waits.object()](Meetings *meetings) {
                const std::lock_guard forgetting(meetings->knowing_);
                meetings->places_.erase(object);
            }};
}

Meetings::Token Meetings::arrive(std::uint32_t object, CollectiveCall call) {
    const std::lock_guard lock(mutex_);
    const Token token = tokenOf(object, ++turns_[object], call);
    own_->now.store(token, std::memory_order_release);
    return token;
}

void Meetings::leave(Token token, bool together) noexcept {
    if (together)
        own_->last.store(token, std::memory_order_release);
    else if (objectOf(token) == toBeMade) // heaps and windows tell the others themselves
        own_->gaveUp.store(token, std::memory_order_release);
    own_->now.store(0, std::memory_order_release);
}

bool Meetings::Post::hasLeft(std::uint32_t object) const noexcept {
    return object != toBeMade &&
           std::ranges::any_of(left, [&](const auto &item) { return item.load(std::memory_order_acquire) == object; });
}

void Meetings::noteLeft(std::uint32_t object) noexcept {
    const std::uint32_t unmade = hearUnmade(); // the reason may be what will not be made now
    const std::lock_guard lock(mutex_);
    std::uint32_t &turn = turns_.at(toBeMade);
    turn = std::max(turn, unmade);
    if (own_->hasLeft(object))
        return;
    const std::uint32_t place = own_->leaves.fetch_add(1, std::memory_order_relaxed);
    own_->left[place % own_->left.size()].store(object, std::memory_order_release);
    const auto passOver = [&](const std::atomic<Token> &token) {
        if (const Token seen = token.load(std::memory_order_acquire); seen != 0 && objectOf(seen) == toBeMade)
            turn = std::max(turn, turnOf(seen));
    };
    for (const auto &[rank, post] : others_) {
        std::ranges::for_each(post->collided, passOver);
        passOver(post->gaveUp);
    }
}

bool Meetings::hasCome(std::uint32_t object, std::uint32_t turn) {
    const std::lock_guard lock(mutex_);
    const auto come = turns_.find(object);
    return come != turns_.end() && come->second >= turn;
}

/// Whether a rank that waits in `theirs` and this one, in `mine`, do so for ever. Neither ends before both have come to
/// it; where one of them has come to both, the other call is over, and somebody has not noticed yet.
bool Meetings::collides(const Post &post, Token mine, Token theirs) {
    if (theirs == 0 || objectOf(theirs) == objectOf(mine) ||
        sameMeeting(post.last.load(std::memory_order_acquire), mine))
        return false;
    if (post.hasLeft(objectOf(mine)) || own_->hasLeft(objectOf(theirs)))
        return false; // a message says so
    return !hasCome(objectOf(theirs), turnOf(theirs));
}

/// Throws where another rank has given up what this one makes.
void Meetings::requireAll(Token mine, std::string_view name) {
    const auto require = [&](bool given, const std::string &who) {
        DNDS_CHECK(!given, PeerError, "{}: this rank {}, but {} has given that up: see that rank's own error", name,
                   verbOf(mine), who);
    };
    for (const auto &[rank, post] : others_)
        require(sameMeeting(post->gaveUp.load(std::memory_order_acquire), mine), fmt::format("rank {}", rank));
    if (objectOf(mine) == toBeMade)
        require(hearUnmade() >= turnOf(mine), "a rank of another node");
}

/// A rank is in `theirs`, and neither ends.
void Meetings::note(Collisions &found, int rank, Token theirs, bool foundByThem) {
    if (found.text.empty())
        found.text = fmt::format("rank {} {} another heap or window of the communicator", rank,
                                 foundByThem ? "was in a call of" : fmt::format("{}:", verbOf(theirs)));
    if (objectOf(found.mine) == toBeMade) { // first: others pass over it when they know
        own_->gaveUp.store(found.mine, std::memory_order_release);
        found.unmade = turnOf(found.mine);
    }
    if (foundByThem || found.noted == own_->collided.size())
        return;
    own_->collided[found.noted++].store(theirs, std::memory_order_release); // they may look when this rank is gone
    if (objectOf(theirs) == toBeMade) {                                     // which will not be made
        found.unmade = turnOf(theirs);
        const std::lock_guard lock(mutex_);
        turns_.at(toBeMade) = std::max(turns_.at(toBeMade), turnOf(theirs));
    }
}

/// What the rank before this one waits in, on another node; returns the waits that it breaks. What is found once may be
/// older than a message that is under way: it has to be found twice.
PeerWaits *Meetings::lookBack(const CommunicatorView &comm, Collisions &found, Suspect &suspect) {
    const auto hasLeft = [](const Place &place) { return place.waits != nullptr && place.waits->hasBroken(); };
    if (const auto mine = places_.find(objectOf(found.mine)); mine == places_.end() || hasLeft(mine->second))
        return nullptr; // a message says so
    Suspect seen;
    for (const auto &[object, place] : places_) {
        if (object == objectOf(found.mine) || hasLeft(place) || !PendingBarrier::waiting(comm, place.channel))
            continue;
        seen = object;
        const auto started = suspect == object ? PendingBarrier::take(comm, place.channel) : std::nullopt;
        if (!started)
            continue;
        const auto turn = static_cast<std::uint32_t>(started->number);
        if (hasCome(object, turn)) // what is left of one that was given up
            continue;
        note(found, PendingBarrier::before(comm), tokenOf(object, turn, static_cast<CollectiveCall>(started->words[0])),
             false);
        return place.waits;
    }
    suspect = seen;
    return nullptr;
}

/// Tells the ranks of other nodes that something will not be made. Local.
void Meetings::tellUnmade(CommunicatorContext &context, std::uint32_t turn) const {
    struct Sent {
        std::uint32_t turn;
        std::vector<MPI_Request> requests;
    };
    const auto sent = std::make_shared<Sent>(Sent{turn, {}});
    for (const int rank : far_)
        checkMpi(MPI_Isend(&sent->turn, 1, MPI_UINT32_T, rank, unmade_.tag, unmade_.comm,
                           &sent->requests.emplace_back(MPI_REQUEST_NULL)),
                 "MPI_Isend");
    context.leave(sent, [sent] {
        int done = 0;
        return !mpiActive() ||
               MPI_Testall(static_cast<int>(sent->requests.size()), sent->requests.data(), &done,
                           MPI_STATUSES_IGNORE) != MPI_SUCCESS ||
               done != 0;
    });
}

/// The last number that ranks of other nodes have told. On threads that may call MPI.
std::uint32_t Meetings::hearUnmade() noexcept {
    const std::lock_guard lock(mutex_);
    for (int found = 1; found != 0 && !far_.empty();) {
        MPI_Message message = MPI_MESSAGE_NULL;
        if (MPI_Improbe(MPI_ANY_SOURCE, unmade_.tag, unmade_.comm, &found, &message, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            break;
        std::uint32_t turn = 0;
        if (found != 0 && MPI_Mrecv(&turn, 1, MPI_UINT32_T, &message, MPI_STATUS_IGNORE) == MPI_SUCCESS)
            lastUnmade_ = std::max(lastUnmade_, turn);
    }
    return lastUnmade_;
}

void Meetings::lookAround(CommunicatorContext &context, Token mine, std::string_view name, Suspect *suspect) {
    Collisions found{mine, {}};
    for (const auto &[rank, post] : others_) {
        const Token theirs = post->now.load(std::memory_order_acquire);
        const bool foundByThem = std::ranges::any_of(post->collided, [&](const auto &token) {
            return sameMeeting(token.load(std::memory_order_acquire), mine);
        });
        if (foundByThem || collides(*post, mine, theirs))
            note(found, rank, theirs, foundByThem);
    }
    const std::lock_guard lock(knowing_); // the waits live
    PeerWaits *broken = farBefore_ && suspect != nullptr ? lookBack(context.comm(), found, *suspect) : nullptr;
    if (found.unmade > 0)
        tellUnmade(context, found.unmade); // before others are told that this rank left the other one
    try {
        DNDS_CHECK(found.text.empty(), ArgumentError,
                   "{}: this rank {} here, while {}, and each waits for the other: {}", name, verbOf(mine), found.text,
                   advice);
    } catch (const ArgumentError &) {
        if (broken != nullptr)
            broken->breakDown(std::current_exception());
        throw;
    }
    requireAll(mine, name);
}

std::array<Meetings::Extremes, 2> Meetings::toMake(const std::shared_ptr<CommunicatorContext> &context,
                                                   CollectiveCall call, const std::array<std::uint64_t, 2> &mine,
                                                   std::string_view name) {
    const Doing doing(verbOf(call), name);
    Meeting meeting(context, making_, toBeMade, call, mine, name);
    Backoff backoff(context->comm().handle(), context->node().crowded);
    while (!meeting.reached()) {
        ProgressEngine::progressAll();
        context->progressParked();
        backoff.pause();
        if (backoff.longWait())
            PeerWaits::checkAlive(*context, PeerWaits::anyone, name, "make it, too", backoff.seconds(),
                                  0.0); // set-up calls wait without a limit
    }
    return meeting.seen();
}

Meeting::Meeting(const std::shared_ptr<CommunicatorContext> &context, const Channel &channel, std::uint32_t object,
                 CollectiveCall call, const std::array<std::uint64_t, 2> &mine, std::string_view name)
    : meetings_(Meetings::of(*context)), name_(name), token_(meetings_.arrive(object, call)),
      barrier_(context, channel, turnOf(token_), {static_cast<std::uint64_t>(call), mine[0], mine[1]}),
      context_(context), look_(std::chrono::steady_clock::now() + betweenLooks) {}

Meeting::~Meeting() { meetings_.leave(token_, reached_); }

bool Meeting::reached() {
    if (reached_ || barrier_.reached())
        return reached_ = true;
    if (const auto now = std::chrono::steady_clock::now(); now > look_) {
        look_ = now + betweenLooks;
        meetings_.lookAround(*context_, token_, name_, barrier_.heardOne() ? nullptr : &suspect_);
    }
    return false;
}

std::array<PendingBarrier::Extremes, 2> Meeting::seen() const {
    const auto &[call, first, second] = barrier_.seen();
    DNDS_CHECK(!call.differ(), ArgumentError, "{}: rank {} {}, but rank {} {}: {}", name_, call.leastRank,
               verbs[call.least], call.mostRank, verbs[call.most], advice);
    return {first, second};
}

} // namespace DNDS
