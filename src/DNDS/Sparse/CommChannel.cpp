#include "DNDS/Sparse/CommChannel.hpp"

#include "DNDS/Link/MatchedMessage.hpp"
#include "DNDS/Link/Parked.hpp"
#include "DNDS/Mpi/FindContext.hpp"
#include "DNDS/Mpi/Wait.hpp"
#include "DNDS/Sparse/PollTimer.hpp"

#include <mpi.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS {

namespace {

std::shared_ptr<CommunicatorContext> contextOf(const CommunicatorView &comm) {
    if (auto context = findContext(comm))
        return context;
    DNDS_CHECK(comm.size() == 1, StateError,
               "DNDS has no context for this communicator, and to make it is collective: call "
               "CommunicatorContext::of(comm) on all ranks before they make channels");
    return CommunicatorContext::of(comm);
}

/// A message on its way, and the memory that MPI reads or writes.
struct Transfer final : Parkable {
    Channel channel;
    MPI_Request request = MPI_REQUEST_NULL;
    MatchedMessage matched; ///< where there was no room for it yet
    std::shared_ptr<const void> kept;
    bool mayCancel = false; ///< a receive that was posted ahead

    /// For destructors and recoveries: a receive is given up, what was sent arrives.
    bool finished() noexcept override {
        try {
            if (matched.isFound()) { // its sender may wait
                auto unread = std::make_shared<std::vector<std::byte>>(matched.bytes());
                matched.receive(unread->data(), request);
                kept = std::move(unread);
            }
        } catch (const std::exception &) { // no memory for it now
            return false;
        }
        if (std::exchange(mayCancel, false) && request != MPI_REQUEST_NULL)
            MPI_Cancel(&request);
        int done = 0;
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (request != MPI_REQUEST_NULL)
            return false;
        kept.reset();
        return true;
    }
};

} // namespace

struct CommChannel::End final : Recoverable {
    End(int messageTag, int from, int to, const CommunicatorView &comm, ReceiveWay receiveWay, std::size_t bytes,
        bool isSender)
        : context(contextOf(comm)), title(fmt::format("channel {} from rank {} to rank {}", messageTag, from, to)),
          sender(from), receiver(to), way(receiveWay), mostBytes(bytes), sends(isSender) {
        transfer->channel = context->programChannel(messageTag);
        context->enlist(*this);
    }
    ~End() override {
        context->delist(*this);
        park(*context, transfer);
    }

    bool settle() noexcept override { return transfer->finished(); }
    void renew() override {
        transfer->channel = context->renewed(transfer->channel);
        state = ChannelState::Stale;
        receiving = false;
    }

    void require(bool asSender) const {
        DNDS_CHECK(sends == asSender, StateError, "only rank {} {} {}", asSender ? sender : receiver,
                   asSender ? "sends on" : "receives from", title);
    }
    /// Whether the message under way has been moved.
    bool complete() {
        int done = 0;
        MPI_Status status;
        const int code = MPI_Test(&transfer->request, &done, &status);
        int kind = MPI_SUCCESS;
        MPI_Error_class(code, &kind);
        DNDS_CHECK(kind != MPI_ERR_TRUNCATE, LayoutError,
                   "more has come than the {} bytes that {} has here: make it of equal numbers of elements on both "
                   "ranks",
                   mostBytes, title);
        checkMpi(code, "MPI_Test");
        if (done == 0)
            return false;
        MPI_Count count = 0;
        if (!sends)
            checkMpi(MPI_Get_elements_x(&status, MPI_BYTE, &count), "MPI_Get_elements_x");
        received = static_cast<std::size_t>(count);
        transfer->kept.reset();
        polling.reset();
        return true;
    }
    /// Looks after peers now and then, where nothing has come.
    void poll(std::string_view what) {
        if (const auto seconds = polling.due())
            requireAlive(*context, fmt::format("rank {} to {} {}", sends ? receiver : sender, what, title), *seconds,
                         context->patience());
    }
    ChannelState now() {
        if (sends && isSending(state)) {
            if (complete())
                advance(state, ChannelEvent::Release, title); // the data may be overwritten
            else
                poll("read from");
        }
        return state;
    }
    void send(std::span<const std::byte> bytes, std::shared_ptr<const void> kept, ChannelEvent event) {
        require(true);
        static_cast<void>(now());
        DNDS_CHECK(way != ReceiveWay::Ahead || bytes.size() <= mostBytes, ArgumentError,
                   "{} bytes are sent on {}, which was made for {}: make it larger, or SizesFirst", bytes.size(), title,
                   mostBytes);
        advance(state, event, title);
        const ByteCount size(bytes.size());
        transfer->kept = std::move(kept);
        checkMpi(MPI_Isend(bytes.data(), size.count(), size.type(), receiver, transfer->channel.tag,
                           transfer->channel.comm, &transfer->request),
                 "MPI_Isend");
    }
    bool startReceive(const MakeRoom &makeRoom) {
        require(false);
        DNDS_CHECK(!isReceived(state), StateError,
                   "the next receive of {} would overwrite what has come: call stale when it was used", title);
        const bool ahead = way == ReceiveWay::Ahead;
        if (receiving || (!ahead && !transfer->matched.find(sender, transfer->channel)))
            return receiving;
        const std::size_t bytes = ahead ? mostBytes : transfer->matched.bytes();
        const Room room = bytes > 0 ? makeRoom(bytes) : Room();
        transfer->kept = room.kept;
        transfer->mayCancel = ahead;
        const ByteCount size(bytes);
        if (ahead)
            checkMpi(MPI_Irecv(room.bytes.data(), size.count(), size.type(), sender, transfer->channel.tag,
                               transfer->channel.comm, &transfer->request),
                     "MPI_Irecv");
        else
            transfer->matched.receive(room.bytes.data(), transfer->request);
        return receiving = true;
    }
    bool receive(const MakeRoom &makeRoom) {
        require(false);
        if (isReceived(state))
            return true;
        if (!startReceive(makeRoom) || !complete()) {
            poll("send on");
            return false;
        }
        receiving = false;
        advance(state, received > 0 ? ChannelEvent::Send : ChannelEvent::SendNull, title); // as at the other end
        advance(state, ChannelEvent::Receive, title);
        return true;
    }

    std::shared_ptr<CommunicatorContext> context;
    std::string title;
    int sender;
    int receiver;
    ReceiveWay way;
    std::size_t mostBytes;
    bool sends;
    bool receiving = false; ///< a receive was started and has not ended
    ChannelState state = ChannelState::Stale;
    std::size_t received = 0;
    PollTimer polling;
    std::shared_ptr<Transfer> transfer = std::make_shared<Transfer>();
};

CommChannel::CommChannel(int tag, int sender, int receiver, CommunicatorView comm, ReceiveWay way, std::size_t bytes,
                         bool sends) {
    DNDS_CHECK(comm.rank() == (sends ? sender : receiver), ArgumentError,
               "a channel from rank {} to rank {} is made on rank {}: make it on these two", sender, receiver,
               comm.rank());
    DNDS_CHECK(sender >= 0 && sender < comm.size() && receiver >= 0 && receiver < comm.size(), ArgumentError,
               "a channel from rank {} to rank {}, of {} ranks", sender, receiver, comm.size());
    end_ = std::make_shared<End>(tag, sender, receiver, comm, way, bytes, sends);
}

std::size_t CommChannel::receivedBytes() const noexcept { return end_->received; }

ChannelState CommChannel::state() const {
    if (!end_->sends || !isSending(end_->state))
        return end_->state;
    return end_->context->running("state of", end_->title, [&] { return end_->now(); });
}

void CommChannel::requireAtRest() const {
    const ChannelState now = state();
    DNDS_CHECK(now == ChannelState::Stale || isReceived(now), StateError, "the buffer of {} is in use: it is {}",
               end_->title, channelStateName(now));
    DNDS_CHECK(!end_->receiving, StateError, "the buffer of {} is in use: a receive was started", end_->title);
}

void CommChannel::send(std::span<const std::byte> bytes, std::shared_ptr<const void> kept) {
    end_->context->running("send on", end_->title, [&] {
        DNDS_CHECK(!bytes.empty(), ArgumentError, "nothing is sent on {}: that is what sendNull is for", end_->title);
        end_->send(bytes, std::move(kept), ChannelEvent::Send);
    });
}

void CommChannel::sendNull() {
    end_->context->running("sendNull on", end_->title, [&] { end_->send({}, nullptr, ChannelEvent::SendNull); });
}

bool CommChannel::tryStartReceive(const MakeRoom &makeRoom) {
    return end_->context->running("tryStartReceive on", end_->title, [&] { return end_->startReceive(makeRoom); });
}

bool CommChannel::tryReceive(const MakeRoom &makeRoom) {
    return end_->context->running("tryReceive on", end_->title, [&] { return end_->receive(makeRoom); });
}

void CommChannel::discard() {
    end_->context->running("stale of", end_->title, [&] {
        end_->require(false);
        advance(end_->state, ChannelEvent::Discard, end_->title);
    });
}

} // namespace DNDS
