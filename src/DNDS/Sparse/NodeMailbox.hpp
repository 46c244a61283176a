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
/// not more than four times as large, but for buffers of a page.
constexpr std::size_t roomForMessage(std::size_t bytes) noexcept { return bytes + bytes / 4; }
constexpr bool fitsMessage(std::size_t capacity, std::size_t bytes) noexcept {
    constexpr std::size_t page = 4096;
    return bytes <= capacity && (capacity <= page || bytes >= capacity / 4);
}

/// What the two sides share, in the sender's arena; each writes its own cache lines.
struct NodeMailbox {
    static constexpr std::size_t smallBytes = 64;
    static constexpr std::size_t entries = 4; ///< two messages, a note beside them, and a last one

    struct Entry {
        alignas(16) std::array<std::byte, smallBytes> small;
        ArenaLocation large; ///< of what is longer
        std::uint64_t bytes = 0;
    };
    alignas(64) std::atomic<std::uint64_t> sent{0}; ///< messages, which are then complete in memory
    std::array<Entry, entries> ring;
    alignas(64) std::atomic<std::uint64_t> taken{0}; ///< messages that the reader is done with
    std::atomic<std::uint32_t> readerClosed{0};      ///< it will not touch the sender's memory any more
};

/// The sender's side: messages of any size, in order. Longer ones than 64 bytes are written into two buffers in turn.
/// Destroying it keeps what the other side has not taken. Local. For one thread at a time.
class NodeOutbox {
  public:
    /// Throws std::bad_alloc where there is no room in the arena.
    explicit NodeOutbox(std::shared_ptr<NodeArena> arena);
    NodeOutbox(const NodeOutbox &) = delete;
    NodeOutbox &operator=(const NodeOutbox &) = delete;
    ~NodeOutbox();

    /// Where the reader finds it.
    ArenaLocation location() const;
    /// Whether the message before the last was taken, so that `prepare` has memory. Ask it before.
    bool isReady() const noexcept { return hasEntry() && wasTaken(turns_[turn_].number); }
    /// Room for the next message, at an address divisible by 16. Throws std::bad_alloc, but for up to 64 bytes.
    std::byte *prepare(std::size_t bytes);
    /// Sends the first bytes of what was prepared.
    void send(std::size_t bytes) noexcept;
    /// Sends up to 64 bytes beside. False where there are too many that were not taken.
    bool sendNote(std::span<const std::byte> bytes) noexcept;
    /// Whether the reader has taken everything, or is gone.
    bool isEmpty() const noexcept { return wasTaken(sent_); }
    /// Of both buffers.
    std::size_t bytes() const noexcept { return turns_[0].capacity + turns_[1].capacity; }

  private:
    struct Turn {
        std::byte *memory = nullptr;
        std::size_t capacity = 0;
        std::uint64_t number = 0; ///< of the message that it held last, from 1
    };
    /// Whether message `number` and those before it were taken.
    bool wasTaken(std::uint64_t number) const noexcept {
        return box_->taken.load(std::memory_order_acquire) >= number ||
               box_->readerClosed.load(std::memory_order_acquire) != 0;
    }
    bool hasEntry() const noexcept {
        return sent_ < NodeMailbox::entries || wasTaken(sent_ + 1 - NodeMailbox::entries);
    }
    NodeMailbox::Entry &next() noexcept { return box_->ring[sent_ % NodeMailbox::entries]; }
    void publish(std::size_t bytes) noexcept;

    std::shared_ptr<NodeArena> arena_;
    NodeMailbox *box_;
    std::uint64_t sent_ = 0;
    std::array<Turn, 2> turns_;
    std::size_t turn_ = 0;
    std::byte *prepared_ = nullptr;
};

/// The reader's side. Local. For one thread at a time.
class NodeInbox {
  public:
    /// `writer` is a rank of the node. Throws MemoryError where its process has ended.
    NodeInbox(std::shared_ptr<NodeArena> arena, int writer, const ArenaLocation &box);
    NodeInbox(const NodeInbox &) = delete;
    NodeInbox &operator=(const NodeInbox &) = delete;
    ~NodeInbox() { close(); }

    /// Whether a message is there. Does not wait.
    bool isThere() const noexcept { return box_->sent.load(std::memory_order_acquire) > taken_; }
    /// The message that is there, in the sender's memory: valid until it is taken. Throws as the constructor.
    std::span<const std::byte> message() const;
    void take() noexcept { box_->taken.store(++taken_, std::memory_order_release); }
    /// Touches the sender's memory no more.
    void close() noexcept {
        if (box_ != nullptr)
            box_->readerClosed.store(1, std::memory_order_release);
        box_ = nullptr;
    }

  private:
    std::shared_ptr<NodeArena> arena_;
    int writer_;
    NodeMailbox *box_;
    std::uint64_t taken_ = 0;
};

} // namespace DNDS
