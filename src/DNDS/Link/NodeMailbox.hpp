/// @file NodeMailbox.hpp
/// @brief Messages between two ranks of a node: read where they were written.
#pragma once

#include "DNDS/Mpi/NodeArena.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace DNDS {

/// The capacity to allocate for a message, and whether a buffer of some capacity serves one: it is large enough, and
/// not more than four times as large, except for buffers of a page.
constexpr std::size_t roomForMessage(std::size_t bytes) noexcept { return bytes + bytes / 4; }
constexpr bool fitsMessage(std::size_t capacity, std::size_t bytes) noexcept {
    constexpr std::size_t page = 4096;
    return bytes <= capacity && (capacity <= page || bytes >= capacity / 4);
}

/// The ring that the two sides share, in the sender's arena: a bounded queue of one writer and one reader, without
/// locks (Lamport: Specifying concurrent program modules, ACM TOPLAS 5(2), 1983). Two counters that only rise: the
/// writer fills an entry, then stores `sent` (release); the reader loads it (acquire), reads, then stores `taken`
/// (release), which the writer loads (acquire) before it writes that entry again. Each side writes its own cache
/// lines.
struct NodeMailbox {
    static constexpr std::size_t smallBytes = 64;
    static constexpr std::size_t entries = 2;

    /// A message: its bytes if there are at most `smallBytes`, else their place. The writer's until it is counted
    /// in `sent`, the reader's until it is counted in `taken`.
    struct Entry {
        alignas(16) std::array<std::byte, smallBytes> small;
        ArenaLocation large; ///< place of longer messages
        std::uint64_t bytes = 0;
    };
    alignas(64) std::atomic<std::uint64_t> sent{0}; ///< messages, which are then complete in memory
    std::array<Entry, entries> ring;
    alignas(64) std::atomic<std::uint64_t> taken{0}; ///< messages that the reader has used
    std::atomic<std::uint32_t> readerOpen{0};        ///< it has memory open that messages name: see `NodeInbox::hold`
    std::atomic<std::uint32_t> readerClosed{0};      ///< it will not touch the sender's memory any more
};

/// The sender's side: messages of any size, in order. Longer ones than 64 bytes are written into two buffers in turn.
/// Local. For one thread at a time.
class NodeOutbox {
  public:
    /// Throws std::bad_alloc where there is no room in the arena.
    explicit NodeOutbox(std::shared_ptr<NodeArena> arena);
    NodeOutbox(const NodeOutbox &) = delete;
    NodeOutbox &operator=(const NodeOutbox &) = delete;
    /// Only when `isEmpty()`: the other side reads this memory.
    ~NodeOutbox();

    /// Location of the mailbox for its reader.
    ArenaLocation location() const;
    /// Whether the message before the last was taken, so that `prepare` has memory. Ask it before.
    bool isReady() const noexcept { return sent_ < NodeMailbox::entries || wasTaken(sent_ + 1 - NodeMailbox::entries); }
    /// Room for the next message, at an address divisible by 16. Throws std::bad_alloc.
    std::byte *prepare(std::size_t bytes);
    /// Sends the first bytes of what was prepared.
    void send(std::size_t bytes) noexcept;
    /// Whether the reader has taken everything and holds nothing, or has ended.
    bool isEmpty() const noexcept { return wasTaken(sent_) && box_->readerOpen.load(std::memory_order_acquire) == 0; }
    /// Starts over, while the reader is not reading, and before the reader starts over itself.
    void renew() noexcept;
    /// The size of both buffers.
    std::size_t bytes() const noexcept { return buffers_[0].size() + buffers_[1].size(); }

  private:
    /// Whether message `number`, counted from 1, and those before it were taken.
    bool wasTaken(std::uint64_t number) const noexcept {
        return box_->taken.load(std::memory_order_acquire) >= number ||
               box_->readerClosed.load(std::memory_order_acquire) != 0;
    }
    void free(std::span<std::byte> &buffer) noexcept;

    /// This rank's, with the mailbox and buffers.
    std::shared_ptr<NodeArena> arena_;
    /// In this rank's arena; retired, not freed, when the outbox is destroyed.
    NodeMailbox *box_;
    /// Messages sent, as in the mailbox: this side needs no load for it.
    std::uint64_t sent_ = 0;
    /// Memory of longer messages, from the arena.
    std::array<std::span<std::byte>, NodeMailbox::entries> buffers_;
    /// The address that `prepare` returned last.
    std::byte *prepared_ = nullptr;
};

/// The reader's side. Local. For one thread at a time.
class NodeInbox {
  public:
    /// `writer` is a rank of the node. Throws MemoryError where its memory cannot be mapped.
    NodeInbox(std::shared_ptr<NodeArena> arena, int writer, const ArenaLocation &box);
    NodeInbox(const NodeInbox &) = delete;
    NodeInbox &operator=(const NodeInbox &) = delete;
    ~NodeInbox();

    /// Whether a message is there. Does not wait.
    bool isThere() const noexcept { return box_->sent.load(std::memory_order_acquire) > taken_; }
    /// The message that is there, in the sender's memory: valid until it is taken. Throws as the constructor.
    std::span<const std::byte> message() const;
    void take() noexcept { box_->taken.store(++taken_, std::memory_order_release); }
    /// Whether this side has memory open that messages name, which the sender keeps as long.
    void hold(bool open) noexcept { box_->readerOpen.store(open ? 1 : 0, std::memory_order_release); }
    /// Takes all messages that are there, unread.
    void takeAll() noexcept {
        while (isThere())
            take();
    }
    /// Starts over, as the writer has or will before it sends.
    void renew() noexcept { taken_ = 0; }

  private:
    /// Maps the writer's memory.
    std::shared_ptr<NodeArena> arena_;
    /// Node rank of the sender, in whose memory the mailbox and longer messages lie.
    int writer_;
    NodeMailbox *box_;
    /// Messages taken, as in the mailbox.
    std::uint64_t taken_ = 0;
};

} // namespace DNDS
