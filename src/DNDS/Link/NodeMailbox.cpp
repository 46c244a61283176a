#include "DNDS/Link/NodeMailbox.hpp"

#include "DNDS/Mpi/Communicator.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace DNDS {

NodeOutbox::NodeOutbox(std::shared_ptr<NodeArena> arena)
    : arena_(std::move(arena)), box_(new (arena_->allocate(sizeof(NodeMailbox), alignof(NodeMailbox))) NodeMailbox) {}

// Retired, not freed: the reader may poll the mailbox until it has set `readerClosed`. Buffers are freed at once, but
// only if no message in them is left to read.
NodeOutbox::~NodeOutbox() {
    if (isEmpty()) // else it goes with the arena
        for (std::span<std::byte> &buffer : buffers_)
            free(buffer);
    if (!inForkedChild())
        box_->sent.store(0, std::memory_order_release); // a reader that starts over finds nothing
    arena_->retire(box_, sizeof(NodeMailbox), &box_->readerClosed);
}

ArenaLocation NodeOutbox::location() const { return *arena_->locate(box_); }

void NodeOutbox::free(std::span<std::byte> &buffer) noexcept {
    if (!buffer.empty())
        arena_->deallocate(buffer.data(), buffer.size(), alignof(NodeMailbox));
    buffer = {};
}

// O(1) unless the buffer is replaced. Invariant: message n uses entry n mod 2 and buffer n mod 2, so both sides know
// the place of each message without another word between them.
std::byte *NodeOutbox::prepare(std::size_t bytes) {
    // The buffer of the message before the last, which `isReady` has found taken: replacing it touches nothing that
    // is read.
    std::span<std::byte> &buffer = buffers_[sent_ % NodeMailbox::entries];
    const std::size_t large = bytes > NodeMailbox::smallBytes ? bytes : 0;
    if (!fitsMessage(buffer.size(), large)) {
        free(buffer);
        if (large > 0)
            buffer = {static_cast<std::byte *>(arena_->allocate(roomForMessage(large), alignof(NodeMailbox))),
                      roomForMessage(large)};
    }
    return prepared_ = large > 0 ? buffer.data() : box_->ring[sent_ % NodeMailbox::entries].small.data();
}

// O(1). The release store of `sent` comes last: a reader that finds the new count finds the whole message.
void NodeOutbox::send(std::size_t bytes) noexcept {
    // The reader decides by the size where a message lies: one that turned out small goes into the entry even if a
    // large buffer was prepared.
    NodeMailbox::Entry &entry = box_->ring[sent_ % NodeMailbox::entries];
    if (prepared_ != entry.small.data() && bytes <= NodeMailbox::smallBytes)
        std::copy_n(prepared_, bytes, entry.small.data());
    else if (prepared_ != entry.small.data())
        entry.large = *arena_->locate(prepared_);
    entry.bytes = bytes;
    box_->sent.store(++sent_, std::memory_order_release);
}

void NodeOutbox::renew() noexcept {
    sent_ = 0;
    box_->taken.store(0, std::memory_order_relaxed);
    box_->sent.store(0, std::memory_order_release);
}

NodeInbox::NodeInbox(std::shared_ptr<NodeArena> arena, int writer, const ArenaLocation &box)
    : arena_(std::move(arena)), writer_(writer), box_(reinterpret_cast<NodeMailbox *>(arena_->translate(writer, box))) {
}

NodeInbox::~NodeInbox() {
    if (!inForkedChild())
        box_->readerClosed.store(1, std::memory_order_release);
}

// O(1): the reader uses the message in the sender's memory, without a copy. `isThere` has loaded `sent` with acquire.
std::span<const std::byte> NodeInbox::message() const {
    const NodeMailbox::Entry &entry = box_->ring[taken_ % NodeMailbox::entries];
    const std::byte *const memory =
        entry.bytes <= NodeMailbox::smallBytes ? entry.small.data() : arena_->translate(writer_, entry.large);
    return {memory, entry.bytes};
}

} // namespace DNDS
