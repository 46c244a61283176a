#include "DNDS/Transport/Serving.hpp"

#include "DNDS/Mpi/Check.hpp"

namespace DNDS {

std::shared_ptr<Serving::List> &Serving::list() noexcept {
    static thread_local std::shared_ptr<List> served;
    return served;
}

void Serving::begin(std::span<const std::unique_ptr<Transport>> transports) {
    end();
    failure_ = nullptr;
    transports_.clear();
    for (const auto &transport : transports)
        if (transport->kind() == TransportKind::NodeShared || isDeviceTransport(transport->kind()))
            transports_.push_back(transport.get());
    if (transports_.empty())
        return;
    if (!list())
        list() = std::make_shared<List>();
    const std::lock_guard lock(list()->mutex);
    list()->items.push_back(this);
    list()->count.store(list()->items.size(), std::memory_order_relaxed);
    servedBy_ = list();
}

void Serving::end() noexcept {
    if (servedBy_ && !inForkedChild()) { // where the lock may be another thread's of the parent
        const std::lock_guard lock(servedBy_->mutex);
        std::erase(servedBy_->items, this);
        servedBy_->count.store(servedBy_->items.size(), std::memory_order_relaxed);
    }
    servedBy_.reset();
}

void Serving::all() noexcept {
    if (!any())
        return;
    const std::lock_guard lock(list()->mutex);
    for (Serving *serving : list()->items)
        for (Transport *transport : serving->transports_)
            try {
                transport->progress();
            } catch (...) {
                if (!serving->failure_)
                    serving->failure_ = std::current_exception();
            }
}

bool Serving::any() noexcept { return list() != nullptr && list()->count.load(std::memory_order_relaxed) > 0; }

} // namespace DNDS
