/// @file ObjectPool.hpp
/// @brief Recycled resources: memory of blocks that come and go.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Device/Stream.hpp"

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
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {

/// Use of a pool, in bytes unless noted otherwise.
struct PoolUse {
    std::size_t liveObjects = 0;
    std::size_t pooledObjects = 0; ///< objects ready to be used again
    std::size_t live = 0;
    std::size_t pooled = 0;
    std::size_t peakLive = 0;
    std::size_t peak = 0; ///< largest sum of live and pooled
};

/// The size class of `bytes` bytes, for resources of many sizes that differ by little: 16 classes between two powers of
/// two, so that at most a sixteenth is more than was asked for.
constexpr std::size_t roundedSize(std::size_t bytes) noexcept {
    const std::size_t step = std::max<std::size_t>(std::bit_floor(bytes) / 16, 1);
    return (bytes + step - 1) / step * step;
}

namespace Detail {

/// Whether handles derive from the resource type; false while it is incomplete, as in a class that holds handles of
/// itself.
template <class T>
constexpr bool isPoolView() {
    if constexpr (requires { sizeof(T); })
        return std::is_class_v<T> && !std::is_final_v<T> && std::is_trivially_copyable_v<T> &&
               std::is_default_constructible_v<T> && std::is_copy_assignable_v<T>;
    else
        return false;
}

} // namespace Detail

/// Makes resources by a function and hands them out; released ones are handed out again. Resources of one size class
/// are interchangeable; by default the class is the size in bytes.
///
///     ObjectPool<HostDeviceBuffer> pool("blocks", [](std::size_t bytes) { return HostDeviceBuffer(bytes); });
///     auto block = pool.get(4096);                   // an Owner: counted, as a shared_ptr
///     auto look = block.weak();                      // not counted
///     block->write(MemorySpace::Host, "u");
///     block.reset();                                 // back to the pool; look.isValid() is false from now on
///
/// The contents of recycled resources are those of their last use. Handles may outlive the pool; resources released
/// after it are destroyed. `get`, the end of owners and all queries may come from several threads; one handle is for
/// one thread at a time. All is Local. Beside a resource the pool keeps a slot, and at most 32 bytes in its lists,
/// which double: their cost is O(1) a resource on the average.
///
/// A resource that is a view, that is a trivially copyable class, is a base of its handles: they have its members and
/// may be passed where a view is expected, also in device code, where they are not counted and have no other function.
/// The base is the resource as it was when `get` handed it out. Other resources convert by `operator T &`.
template <class T>
class ObjectPool {
    struct Nothing {};
    static constexpr bool isView = Detail::isPoolView<T>();
    using View = std::conditional_t<isView, T, Nothing>;
    using Converted = std::conditional_t<isView, Nothing, T>;

    /// The place of a resource, which it keeps when recycled. Never freed or moved before the pool's state, so that
    /// weak handles may look at it at any time.
    struct Slot {
        std::optional<T> value;
        std::size_t sizeClass = 0;
        std::atomic<std::size_t> owners{0};        ///< the last one to end returns the resource
        std::atomic<std::uint64_t> generation{0};  ///< odd: handed out; raised by `get` and on return
        std::vector<Device::StreamHandle> streams; ///< streams that use the resource: `Owner::usedOn`
        std::vector<Device::Event> pending;        ///< the next user has to wait for them

        View view() const {
            if constexpr (isView)
                return *value;
            else
                return {};
        }
    };

    /// Slots and counters. Shared by pools and handles; the last of them deletes it.
    struct State {
        std::string name;
        std::function<T(std::size_t)> create; ///< the program's
        std::atomic<std::size_t> users{0};    ///< number of handles and pools: the last one deletes this
        std::mutex mutex; ///< guards all below; `create` and destructors of the program run without it
        std::deque<Slot> slots;
        std::vector<Slot *> empty; ///< slots without a resource
        /// Resources of one size, idle and in use.
        struct Class {
            std::vector<Slot *> idle;
            std::size_t resources = 0; ///< includes those being made
        };
        std::map<std::size_t, Class> classes;
        PoolUse use;
        std::size_t limit = std::numeric_limits<std::size_t>::max();
        bool closed = false; ///< the pool has ended: released resources are destroyed

        /// A slot with a resource, for one owner.
        Slot *take(std::size_t sizeClass);
        void giveBack(Slot *slot) noexcept;
        void trim(std::size_t bytes) noexcept;
        void close() noexcept;

      private:
        Slot *takeIdle(std::size_t sizeClass);
        Slot *reserve(std::size_t sizeClass);
        void cancel(Slot *slot) noexcept;
        Slot *detachIdle() noexcept;
        void destroy(Slot *slot) noexcept;
        bool fits(std::size_t bytes) const noexcept { return bytes <= limit && use.live + use.pooled <= limit - bytes; }
        void noteLive(std::size_t sizeClass) noexcept;
    };

    /// A counted reference to the state; not counted in device code, where copies of handles have no other function.
    class Reference {
      public:
        Reference() = default;
        DNDS_HOST_DEVICE explicit Reference(State *state) noexcept : state_(state) { count(); }
        DNDS_HOST_DEVICE Reference(const Reference &other) noexcept : state_(other.state_) { count(); }
        DNDS_HOST_DEVICE Reference &operator=(Reference other) noexcept {
            State *const mine = state_;
            state_ = other.state_;
            other.state_ = mine;
            return *this;
        }
        DNDS_HOST_DEVICE ~Reference() {
#if !defined(__CUDA_ARCH__)
            if (state_ != nullptr && state_->users.fetch_sub(1, std::memory_order_acq_rel) == 1)
                delete state_; // NOLINT(clang-analyzer-cplusplus.NewDelete): it does not follow the count
#endif
        }
        State *operator->() const noexcept { return state_; } // NOLINT(clang-analyzer-cplusplus.NewDelete): likewise

      private:
        DNDS_HOST_DEVICE void count() const noexcept {
#if !defined(__CUDA_ARCH__)
            if (state_ != nullptr)
                state_->users.fetch_add(1, std::memory_order_relaxed);
#endif
        }

        State *state_ = nullptr;
    };

  public:
    class Weak;

    /// Keeps the resource in use as long as the handle or a copy of it lives.
    class Owner : public View {
      public:
        Owner() = default;
        DNDS_HOST_DEVICE Owner(const Owner &other) noexcept : View(other), state_(other.state_), slot_(other.slot_) {
#if !defined(__CUDA_ARCH__)
            if (slot_ != nullptr)
                slot_->owners.fetch_add(1, std::memory_order_relaxed);
#endif
        }
        DNDS_HOST_DEVICE Owner(Owner &&other) noexcept : View(other), state_(other.state_), slot_(other.slot_) {
            other.slot_ = nullptr;
        }
        /// Shares ownership with the present owners. Throws StateError if the resource has returned to the pool; see
        /// `Weak::lock`.
        explicit Owner(const Weak &weak) : Owner(weak.lock()) {
            DNDS_CHECK(isValid(), StateError, "what this handle refers to has gone back to its pool");
        }
        DNDS_HOST_DEVICE Owner &operator=(Owner other) noexcept {
            const View view = *this;
            static_cast<View &>(*this) = other;
            static_cast<View &>(other) = view;
            const Reference state = state_;
            state_ = other.state_;
            other.state_ = state;
            Slot *const slot = slot_;
            slot_ = other.slot_;
            other.slot_ = slot;
            return *this;
        }
        DNDS_HOST_DEVICE ~Owner() {
#if !defined(__CUDA_ARCH__)
            reset();
#endif
        }

        /// Whether it owns a resource; false after `reset` or a move.
        bool isValid() const noexcept { return slot_ != nullptr; }
        explicit operator bool() const noexcept { return isValid(); }
        /// Throws StateError if it owns nothing.
        T &get() const {
            DNDS_CHECK(isValid(), StateError, "this handle owns nothing: it was reset, moved from or never given any");
            return *slot_->value;
        }
        T &operator*() const { return get(); }
        T *operator->() const { return &get(); }
        operator Converted &() const // NOLINT: it stands for the resource
            requires(!isView) {
            return get();
        }
        std::size_t useCount() const noexcept { return slot_ == nullptr ? 0 : slot_->owners.load(); }

        /// `stream` uses the resource: its next user waits for the work queued on the stream when the last owner ends.
        /// The stream must exist until then. Throws as `get`.
        void usedOn(Device::StreamHandle stream) const {
            (void)get();
            const std::lock_guard lock(state_->mutex);
            if (std::find(slot_->streams.begin(), slot_->streams.end(), stream) == slot_->streams.end())
                slot_->streams.push_back(stream);
        }
        /// Ends owning.
        void reset() noexcept {
            Slot *const slot = std::exchange(slot_, nullptr);
            if (slot != nullptr && slot->owners.fetch_sub(1, std::memory_order_acq_rel) == 1)
                state_->giveBack(slot);
            state_ = {};
        }
        Weak weak() const noexcept { return slot_ == nullptr ? Weak() : Weak(*this, state_, slot_); }

      private:
        friend class ObjectPool;
        friend class Weak;
        Owner(const View &view, Reference state, Slot *slot) noexcept
            : View(view), state_(std::move(state)), slot_(slot) {}

        Reference state_;
        Slot *slot_ = nullptr;
    };

    /// Refers to a resource that others own. Once the resource has returned to the pool this is invalid for ever, even
    /// if the resource is handed out again.
    class Weak : public View {
      public:
        Weak() = default;
        /// Whether the resource has never returned to the pool since.
        bool isValid() const noexcept {
            return slot_ != nullptr && slot_->generation.load(std::memory_order_acquire) == generation_;
        }
        /// Throws StateError if the resource has returned to the pool.
        T &get() const {
            DNDS_CHECK(isValid(), StateError, "what this handle refers to has gone back to its pool");
            return *slot_->value;
        }
        T &operator*() const { return get(); }
        T *operator->() const { return &get(); }
        operator Converted &() const // NOLINT: it stands for the resource
            requires(!isView) {
            return get();
        }
        /// One more owner; an empty one if the resource has returned. Owners on other threads may end
        /// meanwhile.
        /// Lock-free. `owners` is raised only from a positive number, so a resource that has returned is never revived;
        /// the generation tells recycled slots from the original use (the ABA problem).
        Owner lock() const noexcept {
            std::size_t owners = slot_ == nullptr ? 0 : slot_->owners.load();
            while (owners > 0 && !slot_->owners.compare_exchange_weak(owners, owners + 1)) {
            }
            if (owners == 0)
                return {};
            // The slot may have been handed out again between the two looks: then the owner is of another resource, and
            // ends here.
            Owner owner(*this, state_, slot_); // of the slot's present resource
            return isValid() ? std::move(owner) : Owner();
        }

      private:
        friend class Owner;
        Weak(const View &view, Reference state, Slot *slot) noexcept
            : View(view), state_(std::move(state)), slot_(slot), generation_(slot->generation.load()) {}

        Reference state_; ///< keeps the slot's memory, not the resource
        Slot *slot_ = nullptr;
        std::uint64_t generation_ = 0;
    };

    /// `create(sizeClass)` makes a resource; it may ask this pool for others, and several threads may be in it at a
    /// time. `name` is for messages.
    explicit ObjectPool(std::string_view name, std::function<T(std::size_t)> create)
        : state_(new State), open_(nullptr, [state = state_](std::nullptr_t) { state->close(); }) {
        state_->name = name;
        state_->create = std::move(create);
    }

    /// A resource, recycled if one of its class is free. Throws MemoryError if the limit leaves no room, even
    /// without the pooled ones; exceptions of `create`.
    Owner get(std::size_t sizeClass = 1) {
        Slot *const slot = state_->take(sizeClass);
        slot->owners.store(1, std::memory_order_release);
        slot->generation.fetch_add(1, std::memory_order_release);
        Owner owner(slot->view(), state_, slot); // returns it if a kernel's own error is thrown
        for (const Device::Event &event : slot->pending)
            event.synchronize();
        slot->pending.clear();
        return owner;
    }

    /// Live and pooled resources at the moment. O(1).
    PoolUse use() const {
        const std::lock_guard lock(state_->mutex);
        return state_->use;
    }
    /// Limits live and pooled resources together. Present resources beyond it stay.
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
    void trim(std::size_t bytes = 0) { state_->trim(bytes); }

  private:
    Reference state_;
    /// Shared by copies of a pool: the last one closes the state.
    std::shared_ptr<void> open_;
};

/// Recycles or makes a resource. Under a limit, idle resources of other classes are destroyed until the new one fits.
/// The lock is released for destructors and `create`, which may use this pool: then everything is looked at again.
/// O(log classes) for a recycled resource. Each turn of the loop destroys one idle resource or throws, so it ends.
template <class T>
auto ObjectPool<T>::State::take(std::size_t sizeClass) -> Slot * {
    std::unique_lock lock(mutex);
    Slot *slot = takeIdle(sizeClass);
    while (slot == nullptr && !fits(sizeClass)) {
        Slot *const idle = detachIdle();
        DNDS_CHECK(idle != nullptr, MemoryError,
                   "the pool '{}' has a limit of {} bytes, of which {} are in use by {} resources: there is no room "
                   "for {} more. Raise the limit, or free some",
                   name, limit, use.live, use.liveObjects, sizeClass);
        lock.unlock();
        destroy(idle);
        lock.lock();
        empty.push_back(idle);
        slot = takeIdle(sizeClass); // the destroyed resource may have owned one
    }
    if (slot != nullptr)
        return slot;
    slot = reserve(sizeClass);
    lock.unlock();
    {
        const OnFailure undo([&] {
            lock.lock();
            cancel(slot);
        });
        slot->value.emplace(create(sizeClass));
    }
    lock.lock();
    // Peaks count resources that exist: noted only when it was made.
    noteLive(0);
    return slot;
}

/// Takes an idle resource of the class, or returns null. Last in, first out, which finds memory in the caches;
/// resources whose streams may still use them are taken last, the oldest first. O(1) while the newest is ready.
template <class T>
auto ObjectPool<T>::State::takeIdle(std::size_t sizeClass) -> Slot * {
    std::vector<Slot *> &idle = classes[sizeClass].idle;
    if (idle.empty())
        return nullptr;
    // Resources without pending stream work first: no wait.
    const auto ready = std::find_if(idle.rbegin(), idle.rend(), [](const Slot *one) { return one->pending.empty(); });
    const auto chosen = ready == idle.rend() ? idle.begin() : std::prev(ready.base());
    Slot *const slot = *chosen;
    idle.erase(chosen);
    --use.pooledObjects;
    use.pooled -= sizeClass;
    ++use.liveObjects;
    noteLive(sizeClass);
    return slot;
}

/// A slot for a resource about to be made, which counts towards the limit from now on, so that threads that make
/// resources at the same time cannot exceed it together.
template <class T>
auto ObjectPool<T>::State::reserve(std::size_t sizeClass) -> Slot * {
    // Room to return every resource without an allocation.
    const auto makeRoom = [](std::vector<Slot *> &list, std::size_t count) {
        if (list.capacity() < count)
            list.reserve(std::max(count, 2 * list.capacity()));
    };
    Class &ofSize = classes[sizeClass];
    makeRoom(ofSize.idle, ofSize.resources + 1);
    makeRoom(empty, slots.size() + 1);
    if (empty.empty()) {
        slots.emplace_back();
        empty.push_back(&slots.back());
    }
    Slot *const slot = empty.back();
    empty.pop_back();
    slot->sizeClass = sizeClass;
    ++ofSize.resources;
    ++use.liveObjects;
    use.live += sizeClass;
    return slot;
}

/// Undoes `reserve` when `create` has thrown.
template <class T>
void ObjectPool<T>::State::cancel(Slot *slot) noexcept {
    --classes[slot->sizeClass].resources;
    --use.liveObjects;
    use.live -= slot->sizeClass;
    empty.push_back(slot);
}

template <class T>
void ObjectPool<T>::State::noteLive(std::size_t sizeClass) noexcept {
    use.live += sizeClass;
    use.peakLive = std::max(use.peakLive, use.live);
    use.peak = std::max(use.peak, use.live + use.pooled);
}

/// Detaches an idle resource for `destroy`, smallest class first; null if all are in use.
template <class T>
auto ObjectPool<T>::State::detachIdle() noexcept -> Slot * {
    for (auto &[sizeClass, ofSize] : classes)
        if (!ofSize.idle.empty()) {
            Slot *const slot = ofSize.idle.back();
            ofSize.idle.pop_back();
            --ofSize.resources;
            --use.pooledObjects;
            use.pooled -= sizeClass;
            return slot;
        }
    return nullptr;
}

/// Destroys a detached resource. Without the lock: it may own others of this pool.
template <class T>
void ObjectPool<T>::State::destroy(Slot *slot) noexcept {
    static_cast<void>(attempt([&] { // a kernel's own error, which its stream reports
        for (const Device::Event &event : slot->pending)
            event.synchronize();
    }));
    slot->pending.clear();
    slot->value.reset();
}

template <class T>
void ObjectPool<T>::State::trim(std::size_t bytes) noexcept {
    std::unique_lock lock(mutex);
    while (use.pooled > bytes || (bytes == 0 && use.pooledObjects > 0)) {
        Slot *const slot = detachIdle();
        lock.unlock();
        destroy(slot);
        lock.lock();
        empty.push_back(slot);
    }
}

/// Pooled resources that own each other would keep this alive: they are destroyed when the pool ends.
template <class T>
void ObjectPool<T>::State::close() noexcept {
    {
        const std::lock_guard lock(mutex);
        closed = true;
    }
    trim(0);
}

/// Takes a resource from its last owner. Weak handles become invalid first. Events mark the work of its streams, for
/// which the next user waits; if none can be made, this call waits. Lists of slots do not grow: `reserve` has made
/// room.
/// Stream-ordered reuse: the host does not wait here, the events are waited for by the next `get` of this slot.
template <class T>
void ObjectPool<T>::State::giveBack(Slot *slot) noexcept {
    std::unique_lock lock(mutex);
    slot->generation.fetch_add(1, std::memory_order_release);
    const std::exception_ptr noEvent = attempt([&] {
        for (Device::StreamHandle stream : slot->streams) {
            slot->pending.emplace_back();
            slot->pending.back().record(stream);
        }
    });
    if (noEvent) { // wait now; a kernel's own error is reported by its stream
        slot->pending.clear();
        static_cast<void>(attempt(Device::synchronizeAll));
    }
    slot->streams.clear();
    classes[slot->sizeClass].idle.push_back(slot);
    --use.liveObjects;
    ++use.pooledObjects;
    use.live -= slot->sizeClass;
    use.pooled += slot->sizeClass;
    const bool last = closed;
    lock.unlock();
    if (last)
        trim(0);
}

} // namespace DNDS
