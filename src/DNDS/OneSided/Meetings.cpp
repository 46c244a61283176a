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

Meetings &Meetings::of(CommunicatorContext &context) {
    return context.attach<Meetings>([&] { return std::make_shared<Meetings>(context); });
}

Meetings::Meetings(CommunicatorContext &context) : making_(context.nextChannel()), arena_(context.node().arena) {
    const CommunicatorView &comm = context.comm();
    const NodeTopology &node = context.node();
    std::optional<ArenaLocation> mine;
    comm.guarded([&] {
        turns_.emplace(toBeMade, 0);
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
                others_.emplace_back(rank, reinterpret_cast<const Post *>(
                                               arena_->translate(node.nodeRank[static_cast<std::size_t>(rank)],
                                                                 {static_cast<std::uint32_t>(segment), offset})));
        }
    });
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
    const std::lock_guard lock(mutex_);
    if (own_->hasLeft(object))
        return;
    const std::uint32_t place = own_->leaves.fetch_add(1, std::memory_order_relaxed);
    own_->left[place % own_->left.size()].store(object, std::memory_order_release);
    std::uint32_t &turn = turns_.at(toBeMade); // the reason may be what will not be made now
    const auto passOver = [&](const std::atomic<Token> &token) {
        if (const Token seen = token.load(std::memory_order_acquire); seen != 0 && objectOf(seen) == toBeMade)
            turn = std::max(turn, turnOf(seen));
    };
    for (const auto &[rank, post] : others_) {
        std::ranges::for_each(post->collided, passOver);
        passOver(post->gaveUp);
    }
}

/// Whether a rank that waits in `theirs` and this one, in `mine`, do so for ever. Neither ends before both have come to
/// it; where one of them has come to both, the other call is over, and somebody has not noticed yet.
bool Meetings::collides(const Post &post, Token mine, Token theirs) {
    if (theirs == 0 || objectOf(theirs) == objectOf(mine) ||
        sameMeeting(post.last.load(std::memory_order_acquire), mine))
        return false;
    if (post.hasLeft(objectOf(mine)) || own_->hasLeft(objectOf(theirs)))
        return false; // a message says so
    const std::lock_guard lock(mutex_);
    const auto come = turns_.find(objectOf(theirs));
    return come == turns_.end() || come->second < turnOf(theirs);
}

/// Throws where another rank has given up what this one makes.
void Meetings::requireAll(Token mine, std::string_view name) const {
    for (const auto &[rank, post] : others_)
        DNDS_CHECK(!sameMeeting(post->gaveUp.load(std::memory_order_acquire), mine), PeerError,
                   "{}: this rank {}, but rank {} has given that up: see that rank's own error", name, verbOf(mine),
                   rank);
}

void Meetings::lookAround(Token mine, std::string_view name) {
    std::string found;
    std::size_t noted = 0;
    for (const auto &[rank, post] : others_) {
        const Token theirs = post->now.load(std::memory_order_acquire);
        const bool foundByThem = std::ranges::any_of(post->collided, [&](const auto &token) {
            return sameMeeting(token.load(std::memory_order_acquire), mine);
        });
        if (!foundByThem && !collides(*post, mine, theirs))
            continue;
        if (found.empty())
            found = fmt::format("rank {} {} another heap or window of the communicator", rank,
                                foundByThem ? "was in a call of" : fmt::format("{}:", verbOf(theirs)));
        if (objectOf(mine) == toBeMade) // first: others pass over it when they know
            own_->gaveUp.store(mine, std::memory_order_release);
        if (foundByThem || noted == own_->collided.size())
            continue;
        own_->collided[noted++].store(theirs, std::memory_order_release); // they may look when this rank is gone
        if (objectOf(theirs) == toBeMade) {                               // which will not be made
            const std::lock_guard lock(mutex_);
            turns_.at(toBeMade) = std::max(turns_.at(toBeMade), turnOf(theirs));
        }
    }
    DNDS_CHECK(found.empty(), ArgumentError, "{}: this rank {} here, while {}, and each waits for the other: {}", name,
               verbOf(mine), found, advice);
    requireAll(mine, name);
}

std::array<Meetings::Extremes, 2> Meetings::toMake(const std::shared_ptr<CommunicatorContext> &context,
                                                   CollectiveCall call, const std::array<std::uint64_t, 2> &mine,
                                                   std::string_view name) {
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
      look_(std::chrono::steady_clock::now() + betweenLooks) {}

Meeting::~Meeting() { meetings_.leave(token_, reached_); }

bool Meeting::reached() {
    if (reached_ || barrier_.reached())
        return reached_ = true;
    if (const auto now = std::chrono::steady_clock::now(); now > look_) {
        look_ = now + betweenLooks;
        meetings_.lookAround(token_, name_);
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
