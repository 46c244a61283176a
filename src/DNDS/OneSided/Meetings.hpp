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
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS {

class NodeArena;

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

/// What the ranks of a communicator say of the collective calls that they wait in. Those of a node look at each
/// other's: two that wait in different ones would do so for ever, and throw instead. One object a communicator.
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

    Token arrive(std::uint32_t object, CollectiveCall call);
    void leave(Token token, bool together) noexcept;
    bool collides(const Post &post, Token mine, Token theirs);
    void requireAll(Token mine, std::string_view name) const;
    void lookAround(Token mine, std::string_view name);

    Channel making_;
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
    bool reached_ = false;
    std::chrono::steady_clock::time_point look_; ///< when next
};

} // namespace DNDS
