#include "DNDS/Sparse/CommBuffer.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Link/MatchedMessage.hpp"
#include "DNDS/Mpi/Wait.hpp"
#include "DNDS/Sparse/PollTimer.hpp"

#include <mpi.h>

#include <string_view>
#include <thread>
#include <utility>

namespace DNDS::Detail {

namespace {

/// Only finds a context, as to make one is collective and channels are made by two ranks; alone it may be made.
std::shared_ptr<CommunicatorContext> contextOf(const CommunicatorView &comm) {
    if (auto context = CommunicatorContext::find(comm))
        return context;
    DNDS_CHECK(comm.size() == 1, StateError,
               "DNDS has no context for this communicator, and to make it is collective: call "
               "CommunicatorContext::of(comm) on all ranks before they make channels");
    return CommunicatorContext::of(comm);
}

} // namespace

/// The message in flight, and the memory that MPI reads or writes: parked with the communicator if the channel is
/// destroyed before MPI has finished.
struct CommChannel::Transfer {
    Channel channel;
    MPI_Request request = MPI_REQUEST_NULL;
    MatchedMessage matched; ///< a message that had no room yet
    std::shared_ptr<const void> kept;
    bool mayCancel = false; ///< a receive that was posted ahead
    PollTimer polling;      ///< since the first poll without result
    std::thread::id maker = std::this_thread::get_id();

    /// For destructors and recoveries, called until it is true: MPI has finished with the memory. A message that was
    /// matched is received and dropped, a posted receive cancelled; sends complete by their receivers, or by the
    /// recovery that discards messages.
    /// Does not wait, so that no destructor hangs on a peer.
    bool finished() noexcept {
        const std::exception_ptr noRoom = attempt([&] {
            if (matched.isFound()) { // its sender may wait
                auto unread = std::make_shared<std::vector<std::byte>>(matched.bytes());
                matched.receive(unread->data(), request);
                kept = std::move(unread);
            }
        });
        if (noRoom)
            return false;
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

/// Local: the tag is the program's, so that the two ranks need no agreement.
/// MPI keeps the order of messages with one tag between two ranks, and `advance` refuses a second Send before Release:
/// the messages of a channel match in order and need no number.
CommChannel::CommChannel(int tag, int sender, int receiver, CommunicatorView comm, ReceiveMode mode, std::size_t bytes,
                         bool sends)
    : title_(fmt::format("channel {} from rank {} to rank {}", tag, sender, receiver)), sender_(sender),
      receiver_(receiver), mode_(mode), maxBytes_(bytes), sends_(sends), transfer_(std::make_shared<Transfer>()) {
    DNDS_CHECK(comm.rank() == (sends ? sender : receiver), ArgumentError, "{} is made on rank {}: make it on these two",
               title_, comm.rank());
    DNDS_CHECK(sender >= 0 && sender < comm.size() && receiver >= 0 && receiver < comm.size(), ArgumentError,
               "{}, of {} ranks", title_, comm.size());
    context_ = contextOf(comm);
    transfer_->channel = context_->programChannel(tag);
    context_->enlist(*this);
}

CommChannel::~CommChannel() {
    context_->delist(*this);
    // Destructors do not wait: the transfer lives on until MPI has finished.
    context_->park(
        transfer_, [transfer = transfer_.get()] { return transfer->finished(); }, transfer_->maker);
}

bool CommChannel::settle() noexcept { return transfer_->finished(); }

/// Both ends are stale again; messages of the old channel match nothing.
void CommChannel::renew() {
    transfer_->channel = context_->renewed(transfer_->channel);
    transfer_->polling.reset();
    state_ = ChannelState::Stale;
    receiving_ = false;
}

void CommChannel::require(bool asSender) const {
    DNDS_CHECK(sends_ == asSender, StateError, "only rank {} {} {}", asSender ? sender_ : receiver_,
               asSender ? "sends on" : "receives from", title_);
}

/// Whether the transfer is complete; if so, notes its size and releases the memory. A message longer than the posted
/// receive becomes a LayoutError instead of an error of MPI.
/// O(1) and one MPI_Test; memory that the transfer kept is released here, so neither end frees a buffer that MPI uses.
bool CommChannel::complete() {
    int done = 0;
    MPI_Status status;
    const int code = MPI_Test(&transfer_->request, &done, &status);
    int kind = MPI_SUCCESS;
    MPI_Error_class(code, &kind);
    DNDS_CHECK(kind != MPI_ERR_TRUNCATE, LayoutError,
               "more has come than the {} bytes that {} has here: make it of equal numbers of elements on both ranks",
               maxBytes_, title_);
    checkMpi(code, "MPI_Test");
    if (done == 0)
        return false;
    MPI_Count count = 0;
    if (!sends_)
        checkMpi(MPI_Get_elements_x(&status, MPI_BYTE, &count), "MPI_Get_elements_x");
    received_ = static_cast<std::size_t>(count);
    transfer_->kept.reset();
    transfer_->polling.reset();
    return true;
}

/// Checks at intervals whether the peer's process lives, while nothing arrives.
void CommChannel::poll(std::string_view what) {
    if (const auto seconds = transfer_->polling.due())
        requireAlive(*context_, fmt::format("rank {} to {} {}", sends_ ? receiver_ : sender_, what, title_), *seconds,
                     context_->waitTimeout());
}

ChannelState CommChannel::now() {
    if (sends_ && isSending(state_)) {
        if (complete())
            advance(state_, ChannelEvent::Release, title_); // the data may be overwritten
        else
            poll("read from");
    }
    return state_;
}

ChannelState CommChannel::state() {
    if (!sends_ || !isSending(state_))
        return state_;
    return context_->running("state of", title_, [&] { return now(); });
}

void CommChannel::requireAtRest() {
    const ChannelState now = state();
    DNDS_CHECK(now == ChannelState::Stale || isReceived(now), StateError, "the buffer of {} is in use: it is {}",
               title_, channelStateName(now));
    DNDS_CHECK(!receiving_, StateError, "the buffer of {} is in use: a receive was started", title_);
}

void CommChannel::send(ChannelEvent event, std::span<const std::byte> bytes, std::shared_ptr<const void> kept) {
    context_->running(event == ChannelEvent::Send ? "send on" : "sendNull on", title_, [&] {
        require(true);
        DNDS_CHECK(event != ChannelEvent::Send || !bytes.empty(), ArgumentError,
                   "nothing is sent on {}: that is what sendNull is for", title_);
        // Makes the channel stale if MPI has read the last message: programs need not ask `state`.
        static_cast<void>(now());
        DNDS_CHECK(mode_ != ReceiveMode::Preposted || bytes.size() <= maxBytes_, ArgumentError,
                   "{} bytes are sent on {}, which was made for {}: make it larger, or SizesFirst", bytes.size(),
                   title_, maxBytes_);
        advance(state_, event, title_);
        const ByteCount size(bytes.size());
        transfer_->kept = std::move(kept);
        checkMpi(MPI_Isend(bytes.data(), size.count(), size.type(), receiver_, transfer_->channel.tag,
                           transfer_->channel.comm, &transfer_->request),
                 "MPI_Isend");
    });
}

/// Posted ahead, the receive has room for the largest message. With sizes first, a message must have been found; it
/// stays matched if there is no memory for it, and a later call tries again.
/// Posting ahead saves MPI a copy of unexpected data and costs `maxBytes_` for every channel; finding the message first
/// costs memory for arrived data only, and a probe at each call.
bool CommChannel::startReceive(const MakeRoom &makeRoom) {
    DNDS_CHECK(!isReceived(state_), StateError,
               "the next receive of {} would overwrite what has come: call stale when it was used", title_);
    const bool ahead = mode_ == ReceiveMode::Preposted;
    if (receiving_ || (!ahead && !transfer_->matched.find(sender_, transfer_->channel)))
        return receiving_;
    const std::size_t bytes = ahead ? maxBytes_ : transfer_->matched.bytes();
    const Room room = bytes > 0 ? makeRoom(bytes) : Room();
    transfer_->kept = room.kept;
    transfer_->mayCancel = ahead;
    const ByteCount size(bytes);
    if (ahead)
        checkMpi(MPI_Irecv(room.bytes.data(), size.count(), size.type(), sender_, transfer_->channel.tag,
                           transfer_->channel.comm, &transfer_->request),
                 "MPI_Irecv");
    else
        transfer_->matched.receive(room.bytes.data(), transfer_->request);
    return receiving_ = true;
}

bool CommChannel::tryStartReceive(const MakeRoom &makeRoom) {
    return context_->running("tryStartReceive on", title_, [&] {
        require(false);
        return startReceive(makeRoom);
    });
}

bool CommChannel::tryReceive(const MakeRoom &makeRoom) {
    return context_->running("tryReceive on", title_, [&] {
        require(false);
        if (isReceived(state_))
            return true;
        if (!startReceive(makeRoom) || !complete()) {
            poll("send on");
            return false;
        }
        // An empty message is the note that the sender has no data.
        receiving_ = false;
        advance(state_, received_ > 0 ? ChannelEvent::Send : ChannelEvent::SendNull, title_); // as at the other end
        advance(state_, ChannelEvent::Receive, title_);
        return true;
    });
}

void CommChannel::discard() {
    context_->running("stale of", title_, [&] {
        require(false);
        advance(state_, ChannelEvent::Discard, title_);
    });
}

} // namespace DNDS::Detail
