/// @file ObjectPool.hpp
/// @brief Resources that are used again instead of made anew: memory of blocks that come and go.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/Event.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS {

/// What a pool has handed out and keeps, in bytes unless it says otherwise.
struct PoolUse {
    std::size_t liveObjects = 0;
    std::size_t pooledObjects = 0; ///< that wait to be used again
    std::size_t live = 0;
    std::size_t pooled = 0;
    std::size_t peakLive = 0;
    std::size_t peak = 0; ///< of live and pooled together
};

/// The size class of so many bytes, for resources of many sizes that differ by little: eight classes between two powers
/// of two, so that at most an eighth is more than was asked for.
constexpr std::size_t roundedSize(std::size_t bytes) noexcept {
    const std::size_t step = std::max<std::size_t>(std::bit_floor(bytes) / 8, 1);
    return (bytes + step - 1) / step * step;
}

/// Makes resources by a function and hands them out; what comes back is handed out again. Resources of one size class
/// are interchangeable; by default the class is the size in bytes.
///
///     ObjectPool<HostDeviceBuffer> pool("blocks", [](std::size_t bytes) { return HostDeviceBuffer(bytes); });
///     auto block = pool.get(4096);                   // an Owner: counted, as a shared_ptr
///     auto look = block.weak();                      // not counted
///     block->write(MemorySpace::Host, "u");
///     block.reset();                                 // back to the pool; look.isValid() is false from now on
///
/// The contents of recycled resources are those of their last use. Handles may outlive the pool; what they own goes
/// with the last of them. `get`, the end of owners and all questions may come from several threads; one handle is for
/// one thread at a time. All is Local.
template <class T>
class ObjectPool {
    struct Slot {
        std::optional<T> value;
        std::size_t sizeClass = 0;
        std::atomic<std::size_t> owners{0};
        std::atomic<std::uint64_t> generation{0}; ///< odd: handed out
        std::vector<Device::StreamHandle> streams;
        std::vector<Device::Event> pending; ///< what the next user has to wait for
    };

    struct State {
        std::string name;
        std::function<T(std::size_t)> create;
        std::mutex mutex; ///< of all below
        std::deque<Slot> slots;
        std::vector<Slot *> empty; ///< slots without a resource
        struct Class {
            std::vector<Slot *> idle;
            std::size_t resources = 0;
        };
        std::map<std::size_t, Class> classes;
        PoolUse use;
        std::size_t limit = std::numeric_limits<std::size_t>::max();

        Slot *take(std::size_t sizeClass);
        void giveBack(Slot *slot) noexcept;
        void makeRoom(std::size_t bytes);
        bool discardOne();
        Slot *add(std::size_t sizeClass);
    };

  public:
    class Weak;

    /// Keeps the resource in use as long as it or a copy of it lives.
    class Owner {
      public:
        Owner() = default;
        Owner(const Owner &other) noexcept : state_(other.state_), slot_(other.slot_) {
            if (slot_ != nullptr)
                slot_->owners.fetch_add(1, std::memory_order_relaxed);
        }
        Owner(Owner &&other) noexcept : state_(std::move(other.state_)), slot_(std::exchange(other.slot_, nullptr)) {}
        Owner &operator=(Owner other) noexcept {
            std::swap(state_, other.state_);
            std::swap(slot_, other.slot_);
            return *this;
        }
        ~Owner() { reset(); }

        /// Whether it owns a resource; false after `reset` or a move.
        bool isValid() const noexcept { return slot_ != nullptr; }
        explicit operator bool() const noexcept { return isValid(); }
        /// Throws StateError where it owns nothing.
        T &get() const {
            DNDS_CHECK(isValid(), StateError, "this handle owns nothing: it was reset, moved from or never given any");
            return *slot_->value;
        }
        T &operator*() const { return get(); }
        T *operator->() const { return &get(); }
        operator T &() const { return get(); } // NOLINT: it stands for the resource
        std::size_t useCount() const noexcept { return slot_ == nullptr ? 0 : slot_->owners.load(); }

        /// `stream` uses the resource: whoever gets it next waits for what the stream holds when the last owner ends.
        /// The stream must exist until then. Throws as `get`.
        void usedOn(Device::StreamHandle stream) const {
            (void)get();
            const std::lock_guard lock(state_->mutex);
            if (std::find(slot_->streams.begin(), slot_->streams.end(), stream) == slot_->streams.end())
                slot_->streams.push_back(stream);
        }
        /// Ends owning.
        void reset() noexcept {
            if (slot_ != nullptr && slot_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1)
                state_->giveBack(slot_);
            slot_ = nullptr;
            state_.reset();
        }
        Weak weak() const noexcept { return slot_ == nullptr ? Weak() : Weak(state_, slot_); }

      private:
        friend class ObjectPool;
        Owner(std::shared_ptr<State> state, Slot *slot) noexcept : state_(std::move(state)), slot_(slot) {}

        std::shared_ptr<State> state_;
        Slot *slot_ = nullptr;
    };

    /// Refers to a resource that others own. Once it has gone back this is invalid for ever, also when the resource is
    /// handed out again.
    class Weak {
      public:
        Weak() = default;
        /// Whether the resource has not gone back to the pool since.
        bool isValid() const noexcept {
            return slot_ != nullptr && slot_->generation.load(std::memory_order_acquire) == generation_;
        }
        /// Throws StateError where the resource has gone back to the pool.
        T &get() const {
            DNDS_CHECK(isValid(), StateError, "what this handle refers to has gone back to its pool");
            return *slot_->value;
        }
        T &operator*() const { return get(); }
        T *operator->() const { return &get(); }
        operator T &() const { return get(); } // NOLINT: it stands for the resource

      private:
        friend class Owner;
        Weak(std::shared_ptr<State> state, Slot *slot) noexcept
            : state_(std::move(state)), slot_(slot), generation_(slot->generation.load()) {}

        std::shared_ptr<State> state_; ///< keeps the slot's memory, not the resource
        Slot *slot_ = nullptr;
        std::uint64_t generation_ = 0;
    };

    /// `create(sizeClass)` makes a resource. `name` is for messages.
    explicit ObjectPool(std::string_view name, std::function<T(std::size_t)> create)
        : state_(std::make_shared<State>()) {
        state_->name = name;
        state_->create = std::move(create);
    }

    /// A resource, recycled where one of its class waits. Throws MemoryError where the limit leaves no room, also
    /// without what is pooled; what `create` throws.
    Owner get(std::size_t sizeClass = 1) {
        Slot *const slot = state_->take(sizeClass);
        for (const Device::Event &event : slot->pending)
            event.synchronize();
        slot->pending.clear();
        slot->owners.store(1, std::memory_order_relaxed);
        slot->generation.fetch_add(1, std::memory_order_release);
        return Owner(state_, slot);
    }

    /// What is handed out and kept at the moment. O(1).
    PoolUse use() const {
        const std::lock_guard lock(state_->mutex);
        return state_->use;
    }
    /// The most that live and pooled resources together may take. What is more already stays.
    void setLimit(std::size_t bytes) {
        const std::lock_guard lock(state_->mutex);
        state_->limit = bytes;
    }
    /// The limit in bytes; the largest std::size_t where none was set.
    std::size_t limit() const {
        const std::lock_guard lock(state_->mutex);
        return state_->limit;
    }
    /// Destroys pooled resources until at most `bytes` are pooled.
    void trim(std::size_t bytes = 0) {
        const std::lock_guard lock(state_->mutex);
        while (state_->use.pooled > bytes && state_->discardOne()) {
        }
    }

  private:
    std::shared_ptr<State> state_;
};

template <class T>
auto ObjectPool<T>::State::take(std::size_t sizeClass) -> Slot * {
    const std::lock_guard lock(mutex);
    Class &ofSize = classes[sizeClass];
    Slot *slot = nullptr;
    if (!ofSize.idle.empty()) {
        // Those that no stream uses first: no wait.
        const auto ready = std::find_if(ofSize.idle.rbegin(), ofSize.idle.rend(),
                                        [](const Slot *idle) { return idle->pending.empty(); });
        const auto chosen = ready == ofSize.idle.rend() ? ofSize.idle.begin() : std::prev(ready.base());
        slot = *chosen;
        ofSize.idle.erase(chosen);
        --use.pooledObjects;
        use.pooled -= sizeClass;
    } else {
        makeRoom(sizeClass);
        slot = add(sizeClass);
    }
    ++use.liveObjects;
    use.live += sizeClass;
    use.peakLive = std::max(use.peakLive, use.live);
    use.peak = std::max(use.peak, use.live + use.pooled);
    return slot;
}

template <class T>
auto ObjectPool<T>::State::add(std::size_t sizeClass) -> Slot * {
    Class &ofSize = classes[sizeClass];
    ofSize.idle.reserve(ofSize.resources + 1); // giving back allocates nothing
    empty.reserve(slots.size() + 1);
    if (empty.empty()) {
        slots.emplace_back();
        empty.push_back(&slots.back());
    }
    Slot *const slot = empty.back();
    slot->value.emplace(create(sizeClass));
    empty.pop_back();
    slot->sizeClass = sizeClass;
    ++ofSize.resources;
    return slot;
}

template <class T>
void ObjectPool<T>::State::makeRoom(std::size_t bytes) {
    const auto fits = [&] { return bytes <= limit && use.live + use.pooled <= limit - bytes; };
    while (!fits() && discardOne()) {
    }
    DNDS_CHECK(fits(), MemoryError,
               "the pool '{}' has a limit of {} bytes, of which {} are in use by {} resources: there is no room for {} "
               "more. Raise the limit, or free some",
               name, limit, use.live, use.liveObjects, bytes);
}

template <class T>
bool ObjectPool<T>::State::discardOne() {
    for (auto &[sizeClass, ofSize] : classes)
        if (!ofSize.idle.empty()) {
            Slot *const slot = ofSize.idle.back();
            for (const Device::Event &event : slot->pending)
                event.synchronize();
            slot->pending.clear();
            slot->value.reset();
            ofSize.idle.pop_back();
            empty.push_back(slot);
            --ofSize.resources;
            --use.pooledObjects;
            use.pooled -= sizeClass;
            return true;
        }
    return false;
}

template <class T>
void ObjectPool<T>::State::giveBack(Slot *slot) noexcept {
    const std::lock_guard lock(mutex);
    slot->generation.fetch_add(1, std::memory_order_release);
    try {
        for (Device::StreamHandle stream : slot->streams) {
            slot->pending.emplace_back();
            slot->pending.back().record(stream);
        }
    } catch (...) { // no event to be had: wait now
        slot->pending.clear();
        try {
            Device::synchronizeAll();
        } catch (...) { // a kernel's own error, which its stream reports
        }
    }
    slot->streams.clear();
    classes[slot->sizeClass].idle.push_back(slot);
    --use.liveObjects;
    ++use.pooledObjects;
    use.live -= slot->sizeClass;
    use.pooled += slot->sizeClass;
}

} // namespace DNDS
