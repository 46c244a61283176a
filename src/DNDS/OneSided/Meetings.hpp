/// @file Meetings.hpp
/// @brief Collective calls of heaps and windows: which one each rank is in, and what it brings.
#pragma once

#include "DNDS/Mpi/PendingBarrier.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS {

class NodeArena;
class PeerWaits;

/// A collective call of a heap or window.
enum class CollectiveCall : std::uint8_t {
    MakeHeap,
    MakeWindow,
    MakeGhostWindow,
    Barrier,
    Allocate,
    Free,
    MakeWindowOver, ///< an allocation of a heap
    End
};

/// "is in a barrier". Local.
const char *verbOf(CollectiveCall call) noexcept;

/// What the ranks of a communicator say of the collective calls that they wait in: two that wait in different ones
/// would do so for ever, and throw instead. Those of a node look at each other's. Between nodes, a rank that has waited
/// for a while looks for what the rank before it has sent of other calls: where ranks wait in different ones, so do two
/// that follow each other. One object a communicator.
class Meetings {
  public:
    using Extremes = PendingBarrier::Extremes;

    /// Collective at the first call for a communicator, Local afterwards.
    static Meetings &of(CommunicatorContext &context);
    explicit Meetings(CommunicatorContext &context);
    Meetings(const Meetings &) = delete;
    Meetings &operator=(const Meetings &) = delete;

    /// Waits until all ranks make what `call` says, and returns what they bring. `name` is for messages. Collective.
    /// Throws ArgumentError on all ranks where they make different things, and where a rank of this node waits in
    /// another collective call; PeerError where the process of a rank of this node has ended.
    std::array<Extremes, 2> toMake(const std::shared_ptr<CommunicatorContext> &context, CollectiveCall call,
                                   const std::array<std::uint64_t, 2> &mine, std::string_view name);

    /// A heap or window in whose calls ranks may wait for this one, on `channel`; `waits` outlives what is returned.
    /// Local.
    std::shared_ptr<void> know(PeerWaits &waits, const Channel &channel);

    /// From now on this rank does not come to the calls of a heap or window, and messages tell the others so: they are
    /// not in different calls. Local.
    void noteLeft(std::uint32_t object) noexcept;

  private:
    friend class Meeting;

    /// Which call, of what, and how many of these before: 0 is none.
    using Token = std::uint64_t;
    /// In memory that the ranks of the node map.
    struct alignas(128) Post {
        std::atomic<Token> now{0};                    ///< this rank waits in it
        std::atomic<Token> last{0};                   ///< the one that it came out of last, with all others
        std::atomic<Token> gaveUp{0};                 ///< the last making that it left alone
        std::array<std::atomic<Token>, 4> collided{}; ///< what others were in when this rank found that they never meet
        std::array<std::atomic<std::uint32_t>, 16> left{}; ///< the last objects that this rank comes to no more
        std::atomic<std::uint32_t> leaves{0};

        bool hasLeft(std::uint32_t object) const noexcept;
    };

    /// A heap or window, or those to be made, that ranks may be in while this one is in another.
    struct Place {
        Channel channel;
        PeerWaits *waits; ///< null for those to be made
    };
    using Suspect = std::optional<std::uint32_t>;
    /// What `lookAround` finds.
    struct Collisions {
        Token mine;
        std::string text; ///< of the first one
        std::size_t noted = 0;
        std::uint32_t unmade = 0; ///< the number of what will not be made
    };

    Token arrive(std::uint32_t object, CollectiveCall call);
    void leave(Token token, bool together) noexcept;
    bool collides(const Post &post, Token mine, Token theirs);
    bool hasCome(std::uint32_t object, std::uint32_t turn);
    void note(Collisions &found, int rank, Token theirs, bool foundByThem);
    void requireAll(Token mine, std::string_view name);
    void lookAround(CommunicatorContext &context, Token mine, std::string_view name, Suspect *suspect);
    PeerWaits *lookBack(const CommunicatorView &comm, Collisions &found, Suspect &suspect);
    void tellUnmade(CommunicatorContext &context, std::uint32_t turn) const;
    std::uint32_t hearUnmade() noexcept;

    Channel making_;
    Channel unmade_;       ///< of numbers of what will not be made
    std::vector<int> far_; ///< ranks of other nodes
    bool farBefore_;       ///< the rank before this one is one of them
    std::mutex knowing_;   ///< of places_, and that their waits live
    std::map<std::uint32_t, Place> places_;
    std::uint32_t lastUnmade_ = 0; ///< that others have told
    std::shared_ptr<Post> own_;
    std::vector<std::pair<int, const Post *>> others_; ///< of this node, with their ranks
    std::mutex mutex_;                                 ///< of turns_: heaps may be used by several threads
    std::map<std::uint32_t, std::uint32_t> turns_;     ///< that this rank has come to, by object
    std::shared_ptr<NodeArena> arena_;                 ///< keeps mappings
};

/// One collective call: started, and polled while this rank serves others. A rank that destroys it before all have come
/// has given up, and ranks of its node that come later, or wait, throw. Local.
class Meeting {
  public:
    /// On `channel`, which is that of `object`: one heap or window (a number below 2^24 that no other one has), or
    /// those to be made. `name` outlives it.
    Meeting(const std::shared_ptr<CommunicatorContext> &context, const Channel &channel, std::uint32_t object,
            CollectiveCall call, const std::array<std::uint64_t, 2> &mine, std::string_view name);
    Meeting(const Meeting &) = delete;
    Meeting &operator=(const Meeting &) = delete;
    ~Meeting();

    /// Whether all have come. Now and then looks where the others of this node are. Throws ArgumentError where one
    /// waits in a call that this rank has not come to.
    bool reached();
    /// What ranks brought, when all have come. Throws ArgumentError on all ranks where they are in different calls.
    std::array<PendingBarrier::Extremes, 2> seen() const;

  private:
    Meetings &meetings_;
    std::string_view name_;
    Meetings::Token token_;
    PendingBarrier barrier_;
    std::shared_ptr<CommunicatorContext> context_;
    Meetings::Suspect suspect_; ///< what the rank before this one was in when this rank looked last
    bool reached_ = false;
    std::chrono::steady_clock::time_point look_; ///< when next
};

} // namespace DNDS
