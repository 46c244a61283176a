#include "DNDS/Transport/ProgressEngine.hpp"

#include "DNDS/Mpi/Check.hpp"
#include "DNDS/Transport/TransportDescriptor.hpp"

namespace DNDS {

std::shared_ptr<ProgressEngine::List> &ProgressEngine::list() noexcept {
    static thread_local std::shared_ptr<List> made;
    return made;
}

void ProgressEngine::begin(std::span<const std::unique_ptr<Transport>> transports) {
    end();
    failure_ = nullptr;
    transports_.clear();
    for (const auto &transport : transports)
        if (transport->descriptor().needsProgress)
            transports_.push_back(transport.get());
    if (!transports_.empty())
        enlist();
}

void ProgressEngine::begin(std::function<void()> step) {
    end();
    failure_ = nullptr;
    step_ = std::move(step);
    enlist();
}

void ProgressEngine::moveHere() {
    if (!list_ || list_ == list())
        return;
    end();
    enlist();
}

void ProgressEngine::enlist() {
    if (!list())
        list() = std::make_shared<List>();
    const std::lock_guard lock(list()->mutex);
    list()->items.push_back(this);
    list()->count.store(list()->items.size(), std::memory_order_relaxed);
    list_ = list();
}

void ProgressEngine::end() noexcept {
    if (list_ && !inForkedChild()) { // where the lock may be another thread's of the parent
        const std::lock_guard lock(list_->mutex);
        std::erase(list_->items, this);
        list_->count.store(list_->items.size(), std::memory_order_relaxed);
    }
    list_.reset();
}

void ProgressEngine::progressAll() noexcept {
    if (!busy())
        return;
    const std::lock_guard lock(list()->mutex);
    for (ProgressEngine *engine : list()->items) {
        const auto attempt = [engine](const auto &progress) {
            try {
                progress();
            } catch (...) {
                if (!engine->failure_)
                    engine->failure_ = std::current_exception();
            }
        };
        if (engine->step_)
            attempt(engine->step_);
        for (Transport *transport : engine->transports_)
            attempt([transport] { transport->progress(); });
    }
}

bool ProgressEngine::busy() noexcept { return list() != nullptr && list()->count.load(std::memory_order_relaxed) > 0; }

} // namespace DNDS
