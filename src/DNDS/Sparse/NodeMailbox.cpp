#include "DNDS/Sparse/NodeMailbox.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace DNDS {

NodeOutbox::NodeOutbox(std::shared_ptr<NodeArena> arena)
    : arena_(std::move(arena)), box_(new (arena_->allocate(sizeof(NodeMailbox), alignof(NodeMailbox))) NodeMailbox) {}

NodeOutbox::~NodeOutbox() {
    const bool empty = isEmpty();
    for (const Turn &turn : turns_)
        if (turn.memory != nullptr && empty) // else the reader may be reading it: it goes with the arena
            arena_->deallocate(turn.memory, turn.capacity, alignof(NodeMailbox));
    arena_->retire(box_, sizeof(NodeMailbox), &box_->readerClosed);
}

ArenaLocation NodeOutbox::location() const { return *arena_->locate(box_); }

std::byte *NodeOutbox::prepare(std::size_t bytes) {
    Turn &turn = turns_[turn_];
    const std::size_t large = bytes > NodeMailbox::smallBytes ? bytes : 0;
    if (!fitsMessage(turn.capacity, large)) {
        if (turn.memory != nullptr)
            arena_->deallocate(turn.memory, turn.capacity, alignof(NodeMailbox));
        turn.memory = nullptr;
        turn.capacity = 0;
        if (large > 0)
            turn.memory = static_cast<std::byte *>(arena_->allocate(roomForMessage(large), alignof(NodeMailbox)));
        turn.capacity = large > 0 ? roomForMessage(large) : 0;
    }
    return prepared_ = large > 0 ? turn.memory : next().small.data();
}

void NodeOutbox::publish(std::size_t bytes) noexcept {
    next().bytes = bytes;
    box_->sent.store(++sent_, std::memory_order_release);
}

void NodeOutbox::send(std::size_t bytes) noexcept {
    NodeMailbox::Entry &entry = next();
    if (prepared_ != entry.small.data() && bytes <= NodeMailbox::smallBytes)
        std::copy_n(prepared_, bytes, entry.small.data());
    else if (prepared_ != entry.small.data())
        entry.large = *arena_->locate(prepared_);
    publish(bytes);
    turns_[turn_].number = sent_;
    turn_ = 1 - turn_;
}

bool NodeOutbox::sendNote(std::span<const std::byte> bytes) noexcept {
    if (!hasEntry())
        return false;
    std::ranges::copy(bytes, next().small.begin());
    publish(bytes.size());
    return true;
}

NodeInbox::NodeInbox(std::shared_ptr<NodeArena> arena, int writer, const ArenaLocation &box)
    : arena_(std::move(arena)), writer_(writer), box_(reinterpret_cast<NodeMailbox *>(arena_->translate(writer, box))) {
}

std::span<const std::byte> NodeInbox::message() const {
    const NodeMailbox::Entry &entry = box_->ring[taken_ % NodeMailbox::entries];
    const std::byte *const memory =
        entry.bytes <= NodeMailbox::smallBytes ? entry.small.data() : arena_->translate(writer_, entry.large);
    return {memory, entry.bytes};
}

} // namespace DNDS
