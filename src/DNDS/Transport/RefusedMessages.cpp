#include "DNDS/Transport/RefusedMessages.hpp"

#include "DNDS/Mpi/Backoff.hpp"
#include "DNDS/Mpi/Datatype.hpp"
#include "DNDS/Mpi/ProgressEngine.hpp"

#include <new>

namespace DNDS {

RefusedMessages::RefusedMessages(const TransportPlan &plan, std::vector<std::size_t> bytes) : channel_(plan.channel) {
    for (const Outgoing &outgoing : plan.outgoing)
        readers_.push_back(outgoing.peer);
    for (std::size_t k = 0; k < plan.incoming.size(); ++k)
        messages_.emplace_back(plan.incoming[k].peer, bytes[k]);
    spare_ = makeEpoch();
    underWay_.reserve(1);
}

RefusedMessages::Epoch RefusedMessages::makeEpoch() const {
    std::size_t total = 0;
    for (const auto &[sender, bytes] : messages_)
        total += bytes;
    Epoch epoch;
    if (total > 0)
        epoch.unread = std::make_unique_for_overwrite<std::byte[]>(total);
    std::byte *to = epoch.unread.get();
    for (const auto &[sender, bytes] : messages_) {
        const ByteCount size(bytes);
        checkMpi(
            MPI_Recv_init(to, size.count(), size.type(), sender, channel_.tag, channel_.comm, epoch.receives.add()),
            "MPI_Recv_init");
        to += bytes;
    }
    return epoch;
}

bool RefusedMessages::isRefusal(const MPI_Status &status, int count, MPI_Datatype type) {
    int arrived = 0;
    checkMpi(MPI_Get_count(&status, type, &arrived), "MPI_Get_count");
    return arrived != count;
}

void RefusedMessages::tellPeers() const {
    for (const int reader : readers_) {
        MPI_Request request = MPI_REQUEST_NULL;
        checkMpi(MPI_Isend(nullptr, 0, MPI_BYTE, reader, channel_.tag, channel_.comm, &request), "MPI_Isend");
        checkMpi(MPI_Request_free(&request), "MPI_Request_free"); // there are no bytes to be kept
    }
}

void RefusedMessages::refuse() {
    tellPeers(); // first, and without memory of ours
    complete();  // may leave a spare
    if (!spare_)
        try {
            underWay_.reserve(underWay_.size() + 1);
            spare_ = makeEpoch();
        } catch (const std::bad_alloc &) {
            awaitSpare();
        }
    spare_->receives.startAll();
    underWay_.push_back(std::move(*spare_));
    spare_.reset();
}

void RefusedMessages::awaitSpare() {
    Backoff backoff(channel_.comm, true);
    while (!spare_) {
        complete();
        ProgressEngine::progressAll(); // the peer may wait for rows of another exchange first
        backoff.pause();
    }
}

bool RefusedMessages::complete() {
    for (std::size_t k = 0; k < underWay_.size();) {
        if (!underWay_[k].receives.testAll()) {
            ++k;
            continue;
        }
        if (!spare_)
            spare_ = std::move(underWay_[k]);
        underWay_.erase(underWay_.begin() + static_cast<std::ptrdiff_t>(k));
    }
    return underWay_.empty();
}

} // namespace DNDS
