/// @file ScatteredCase.hpp
/// @brief Exchanges planned by hand, whose destinations are rows in runs, over any transport.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Mpi/Wait.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"
#include "DNDS/Transport/TransportTable.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace DNDS::test {

/// Every rank sends rows to every other one, or to itself only. Three parts: rows of one width, of which those from one
/// peer are runs of one and two rows in no order; rows of their own widths, likewise; and rows that arrive in one run.
class ScatteredCase {
  public:
    static constexpr index sent = 12; ///< rows that go to each peer
    static constexpr index rows = 40; ///< the source's

    /// Collective.
    ScatteredCase(TransportKind kind, MemorySpace space, bool destinationsInArena)
        : space_(space), owner_(Communicator::duplicate(MPI_COMM_WORLD)),
          context_(CommunicatorContext::of(owner_.view())) {
        prepareTransports(*context_, space);
        const bool own = transportOf(kind).withinRank;
        const Channel channel = context_->nextChannel();
        if (space == MemorySpace::Device)
            stream_ = std::make_shared<ExchangeStream>();
        const HostMemoryResource memory =
            destinationsInArena ? HostMemoryResource(context_->node().arena) : HostMemoryResource();
        for (std::size_t p = 0; p < 3; ++p) {
            sources_.emplace_back(bytesOf(p, rows));
            destinations_.emplace_back(bytesOf(p, destinationRows()), memory);
            others_.emplace_back(bytesOf(p, destinationRows()), memory);
        }
        for (int peer = 0; peer < worldSize(); ++peer)
            if ((peer == worldRank()) == own)
                addPeer(peer);
        plan_.channel = channel;
        if (plan_.outgoing.empty())
            return;
        transport_ = std::move(makeTransports({{kind, plan_}}, {*context_, stream_}).front());
    }

    void connect() {
        owner_.view().barrier();
        if (transport_)
            transport_->connect();
        owner_.view().barrier();
        bind();
    }

    /// One epoch; `late` ranks come after the others.
    void run(int version, bool late = false) {
        if (!transport_) // alone
            return;
        fill(version);
        if (late)
            std::this_thread::sleep_for(std::chrono::milliseconds(3));
        transport_->start();
        waitUntil(
            *context_, [&] { return transport_->progress(); }, "rows");
        transport_->finish();
        if (stream_)
            stream_->stream.synchronize();
    }

    /// Arrays of the same shape elsewhere.
    void swapDestinations() {
        destinations_.swap(others_);
        bind();
    }
    /// The same plan again, new.
    void replacePlan() {
        if (transport_)
            transport_->replacePlan(plan_);
        bind();
    }

    /// Fails the test unless destinations hold that version from all peers, and nothing else was written.
    void expect(int version) {
        for (std::size_t p = 0; p < 3; ++p) {
            std::vector<double> wanted(bytesOf(p, destinationRows()) / sizeof(double), untouched);
            for (const Incoming &incoming : plan_.incoming) {
                const int from = incoming.peer;
                const std::vector<index> to = targets(p, from);
                const std::vector<index> what = taken(p, from, worldRank());
                for (std::size_t k = 0; k < to.size(); ++k)
                    for (index c = 0; c < width(p); ++c)
                        wanted[static_cast<std::size_t>(to[k] * width(p) + c)] = value(from, what[k], c, version);
            }
            destinations_[p].toHost();
            const std::byte *got = std::as_const(destinations_[p]).read(MemorySpace::Host, "destination");
            EXPECT_EQ(std::memcmp(got, wanted.data(), destinations_[p].bytes()), 0) << "part " << p;
            if (space_ == MemorySpace::Device) {
                destinations_[p].toDevice();
                (void)destinations_[p].write(MemorySpace::Device, "destination");
            }
        }
    }

  private:
    static constexpr double untouched = -7.5;

    index destinationRows() const { return sent * worldSize() + 3; }
    /// Of the rows of a part; the second has offsets of its own, but equal widths, so that sides agree simply.
    static index width(std::size_t part) { return part == 0 ? 3 : part == 1 ? 2 : 1; }
    static std::size_t bytesOf(std::size_t part, index rowCount) {
        return static_cast<std::size_t>(rowCount * width(part)) * sizeof(double);
    }
    static double value(int from, index row, index component, int version) {
        return version * 1e7 + from * 1e4 + static_cast<double>(row * 10 + component);
    }
    /// The source rows that `from` sends to `to`: in no order, each once.
    static std::vector<index> taken(std::size_t part, int from, int to) {
        std::vector<index> list;
        for (index k = 0; k < sent; ++k)
            list.push_back((k * 7 + 3 * to + from + static_cast<index>(part)) % rows);
        return list;
    }
    /// The rows of this rank that those from `from` go to: pairs of rows between those from others, the last ones
    /// first, one pair the other way round; in the last part one range.
    static std::vector<index> targets(std::size_t part, int from) {
        std::vector<index> list;
        if (part == 2) {
            for (index k = 0; k < sent; ++k)
                list.push_back(1 + from * sent + k);
            return list;
        }
        for (index k = sent / 2; k-- > 0;) {
            const index pair = 1 + 2 * (k * worldSize() + from);
            list.push_back(k == 2 ? pair + 1 : pair);
            list.push_back(k == 2 ? pair : pair + 1);
        }
        return list;
    }

    RowPart partOf(std::size_t part) {
        RowPart rowPart;
        rowPart.stride = static_cast<std::size_t>(width(part)) * sizeof(double);
        if (part != 1)
            return rowPart;
        if (offsets_.empty())
            for (index row = 0; row <= std::max(rows, destinationRows()); ++row)
                offsets_.push_back(row * width(1));
        rowPart.offsets = offsets_.data();
        rowPart.elementBytes = sizeof(double);
        return rowPart;
    }
    void addPeer(int peer) {
        Outgoing &outgoing = plan_.outgoing.emplace_back();
        Incoming &incoming = plan_.incoming.emplace_back();
        outgoing.peer = incoming.peer = peer;
        for (std::size_t p = 0; p < 3; ++p) {
            outgoing.parts.emplace_back(taken(p, worldRank(), peer), partOf(p));
            incoming.parts.emplace_back(targets(p, peer), partOf(p));
            outgoing.bytes += outgoing.parts.back().bytes();
            incoming.bytes += incoming.parts.back().bytes();
            EXPECT_EQ(incoming.parts.back().contiguous(), p == 2);
        }
    }
    std::byte *write(HostDeviceBuffer &buffer) { return buffer.write(space_, "rows"); }
    void fill(int version) {
        for (std::size_t p = 0; p < 3; ++p) {
            sources_[p].toHost();
            auto *to = reinterpret_cast<double *>(sources_[p].write(MemorySpace::Host, "source"));
            for (index row = 0; row < rows; ++row)
                for (index c = 0; c < width(p); ++c)
                    *to++ = value(worldRank(), row, c, version);
            if (space_ == MemorySpace::Device)
                sources_[p].toDevice();
        }
    }
    void bind() {
        Endpoints endpoints;
        fill(0);
        for (std::size_t p = 0; p < 3; ++p) {
            destinations_[p].toHost();
            auto *to = reinterpret_cast<double *>(destinations_[p].write(MemorySpace::Host, "destination"));
            std::fill_n(to, destinations_[p].bytes() / sizeof(double), untouched);
            if (space_ == MemorySpace::Device)
                destinations_[p].toDevice();
            endpoints.sources.push_back(std::as_const(sources_[p]).read(space_, "source"));
            endpoints.destinations.push_back(write(destinations_[p]));
        }
        if (transport_)
            transport_->bind(endpoints);
        owner_.view().barrier();
    }

    MemorySpace space_;
    Communicator owner_;
    std::shared_ptr<CommunicatorContext> context_;
    std::shared_ptr<ExchangeStream> stream_;
    TransportPlan plan_;
    std::vector<index> offsets_;
    std::vector<HostDeviceBuffer> sources_;
    std::vector<HostDeviceBuffer> destinations_;
    std::vector<HostDeviceBuffer> others_;
    std::unique_ptr<Transport> transport_;
};

/// Fails the test unless rows arrive in all runs: at once, late, in other memory, and after a new plan. Collective.
inline void expectScattered(TransportKind kind, MemorySpace space, bool destinationsInArena = false) {
    SCOPED_TRACE(testing::Message() << transportName(kind) << (destinationsInArena ? ", in the arena" : ""));
    ScatteredCase scattered(kind, space, destinationsInArena);
    scattered.connect();
    for (int version = 1; version <= 3; ++version) {
        scattered.run(version, version == 2 && worldRank() % 2 == 1);
        scattered.expect(version);
    }
    scattered.swapDestinations();
    scattered.run(4, worldRank() % 2 == 0);
    scattered.expect(4);
    scattered.replacePlan();
    scattered.run(5);
    scattered.expect(5);
}

} // namespace DNDS::test
