#include "DNDS/Exchange/Serving.hpp"

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
    list()->push_back(this);
    servedBy_ = list();
}

void Serving::end() noexcept {
    if (servedBy_)
        std::erase(*servedBy_, this);
    servedBy_.reset();
}

void Serving::all() noexcept {
    if (!any())
        return;
    for (Serving *serving : *list())
        for (Transport *transport : serving->transports_)
            try {
                transport->progress();
            } catch (...) {
                if (!serving->failure_)
                    serving->failure_ = std::current_exception();
            }
}

bool Serving::any() noexcept { return list() && !list()->empty(); }

} // namespace DNDS
