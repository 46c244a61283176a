#include "DNDS/Sparse/CommChannel.hpp"

#include "DNDS/Sparse/MatchedMessage.hpp"

#include <mpi.h>

#include <exception>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

namespace DNDS {

namespace {

/// Messages whose channel is gone. Their memory is kept until MPI is done with it. Not parked with a communicator's
/// context, as PeerMessages are: to make that is collective, and a channel is made on two ranks.
class OrphanedMessages {
  public:
    static void add(MPI_Request request, std::shared_ptr<const void> kept) {
        const std::lock_guard lock(mutex());
        list().push_back({request, std::move(kept)});
    }
    static void freeFinished() {
        const std::lock_guard lock(mutex());
        if (list().empty() || !mpiActive())
            return;
        std::erase_if(list(), [](Message &message) {
            int done = 0;
            return MPI_Test(&message.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
        });
    }

  private:
    struct Message {
        MPI_Request request;
        std::shared_ptr<const void> kept;
    };
    static std::mutex &mutex() {
        static std::mutex only;
        return only;
    }
    static std::list<Message> &list() {
        static auto *only = new std::list<Message>; // MPI may use what is in it until the process ends
        return *only;
    }
};

} // namespace

struct CommChannel::Shared {
    Shared(int messageTag, int from, int to, CommunicatorView communicator, ReceiveWay receiveWay, std::size_t bytes)
        : tag(messageTag), sender(from), receiver(to), comm(communicator), way(receiveWay), mostBytes(bytes) {}
    Shared(const Shared &) = delete;
    Shared &operator=(const Shared &) = delete;
    ~Shared() {
        if (!mpiActive() || inForkedChild())
            return;
        if (matched.isFound())
            takeUnread();
        if (request == MPI_REQUEST_NULL)
            return;
        if (comm.rank() == sender) {
            try {
                OrphanedMessages::add(request, std::move(kept));
                OrphanedMessages::freeFinished();
            } catch (...) { // no memory to remember it: then it has to end here
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
        } else {
            MPI_Cancel(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    /// Receives what was found but had no room yet: its sender may wait for that.
    void takeUnread() noexcept {
        try {
            const auto unread = std::make_shared<std::vector<std::byte>>(matched.bytes());
            kept = unread;
            matched.receive(unread->data(), request);
            OrphanedMessages::add(request, kept);
            request = MPI_REQUEST_NULL;
            OrphanedMessages::freeFinished();
        } catch (...) { // no memory: then none of it is stored
            if (matched.isFound())
                matched.refuse(request);
        }
    }
    bool within() const noexcept { return sender == receiver; }
    /// Whether MPI is done with the message under way. Then there is none.
    bool complete() {
        if (request == MPI_REQUEST_NULL)
            return true;
        int done = 0;
        MPI_Status status;
        const int code = MPI_Test(&request, &done, &status);
        if (code != MPI_SUCCESS) {
            noteFailure(code);
            std::rethrow_exception(failure);
        }
        if (done == 0)
            return false;
        if (comm.rank() == receiver)
            count(status);
        kept.reset();
        return true;
    }
    /// Remembers why nothing can be received any more: the message is lost, and with it the order of those after it.
    void noteFailure(int code) noexcept {
        try {
            int kind = MPI_SUCCESS;
            MPI_Error_class(code, &kind);
            DNDS_CHECK(kind != MPI_ERR_TRUNCATE, LayoutError,
                       "rank {} has sent more than the {} bytes that channel {} has here: make it of equal numbers of "
                       "elements on both ranks. It cannot be used any more",
                       sender, mostBytes, tag);
            checkMpi(code, "MPI_Test");
        } catch (...) {
            failure = std::current_exception();
        }
    }
    void count(const MPI_Status &status) {
        MPI_Count bytes = 0;
        checkMpi(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
        received = static_cast<std::size_t>(bytes);
    }

    int tag;
    int sender;
    int receiver;
    CommunicatorView comm;
    ReceiveWay way;
    std::size_t mostBytes;
    ChannelState state = ChannelState::Stale;
    MPI_Request request = MPI_REQUEST_NULL;
    MatchedMessage matched; ///< where there was no room for it yet
    std::shared_ptr<const void> kept;
    std::size_t received = 0;
    bool receiving = false; ///< a receive was started and not used yet
    std::exception_ptr failure;
};

CommChannel::CommChannel(int tag, int sender, int receiver, CommunicatorView comm, ReceiveWay way, std::size_t bytes)
    : shared_(std::make_shared<Shared>(tag, sender, receiver, comm, way, bytes)) {
    DNDS_CHECK(comm.rank() == sender || comm.rank() == receiver, ArgumentError,
               "a channel from rank {} to rank {} is made on rank {}: make it on these two", sender, receiver,
               comm.rank());
    DNDS_CHECK(sender >= 0 && sender < comm.size() && receiver >= 0 && receiver < comm.size(), ArgumentError,
               "a channel from rank {} to rank {}, of {} ranks", sender, receiver, comm.size());
    OrphanedMessages::freeFinished();
}

bool CommChannel::sends() const noexcept { return shared_->comm.rank() == shared_->sender; }
bool CommChannel::receives() const noexcept { return shared_->comm.rank() == shared_->receiver; }
std::size_t CommChannel::receivedBytes() const noexcept { return shared_->received; }

ChannelState CommChannel::state() const {
    Shared &shared = *shared_;
    if (!shared.within() && sends() && isSending(shared.state) && shared.complete())
        shared.state = ChannelState::Stale; // this replica's data may be overwritten
    return shared.state;
}

void CommChannel::apply(ChannelEvent event) const {
    constexpr std::string_view names[] = {"send", "sendNull", "tryReceive", "stale"};
    const auto next = stateAfter(shared_->state, event);
    DNDS_CHECK(next.has_value(), StateError, "{} on the channel {} from rank {} to rank {}, which is {}",
               names[static_cast<std::size_t>(event)], shared_->tag, shared_->sender, shared_->receiver,
               channelStateName(shared_->state));
    shared_->state = *next;
}

void CommChannel::requireSender() const {
    DNDS_CHECK(sends(), StateError, "only rank {} sends on channel {}", shared_->sender, shared_->tag);
}

void CommChannel::requireReceiver() const {
    DNDS_CHECK(receives(), StateError, "only rank {} receives from channel {}", shared_->receiver, shared_->tag);
}

void CommChannel::requireAtRest() const {
    const ChannelState now = state();
    DNDS_CHECK(now == ChannelState::Stale || (receives() && isReceived(now)), StateError,
               "the buffer of channel {} is in use: the channel is {}", shared_->tag, channelStateName(now));
    DNDS_CHECK(shared_->within() || !receives() || !shared_->receiving || isReceived(now), StateError,
               "the buffer of channel {} is in use: a receive was started", shared_->tag);
}

void CommChannel::send(std::span<const std::byte> bytes, std::shared_ptr<const void> kept) {
    requireSender();
    (void)state();
    DNDS_CHECK(!bytes.empty(), ArgumentError, "nothing is sent on channel {}: that is what sendNull is for",
               shared_->tag);
    DNDS_CHECK(shared_->within() || shared_->way != ReceiveWay::Ahead || bytes.size() <= shared_->mostBytes,
               ArgumentError, "{} bytes are sent on channel {}, which was made for {}: make it larger, or SizesFirst",
               bytes.size(), shared_->tag, shared_->mostBytes);
    apply(ChannelEvent::Send);
    shared_->received = bytes.size();
    if (!shared_->within())
        startSend(bytes, std::move(kept));
}

void CommChannel::sendNull() {
    requireSender();
    (void)state();
    apply(ChannelEvent::SendNull);
    shared_->received = 0;
    if (!shared_->within())
        startSend({}, nullptr);
}

void CommChannel::startSend(std::span<const std::byte> bytes, std::shared_ptr<const void> kept) {
    Shared &shared = *shared_;
    const ByteCount size(bytes.size());
    shared.kept = std::move(kept);
    checkMpi(MPI_Isend(bytes.data(), size.count(), size.type(), shared.receiver, shared.tag, shared.comm.handle(),
                       &shared.request),
             "MPI_Isend");
}

bool CommChannel::tryStartReceive(const MakeRoom &makeRoom) {
    requireReceiver();
    Shared &shared = *shared_;
    DNDS_CHECK(!isReceived(shared.state), StateError,
               "the next receive of channel {} would overwrite what has come: call stale when it was used", shared.tag);
    if (shared.failure)
        std::rethrow_exception(shared.failure);
    if (shared.within() || shared.receiving)
        return true;
    const bool ahead = shared.way == ReceiveWay::Ahead;
    if (!ahead && !shared.matched.find(shared.sender, {shared.comm.handle(), shared.tag}))
        return false;
    const std::size_t bytes = ahead ? shared.mostBytes : shared.matched.bytes();
    const std::span<std::byte> room = bytes > 0 ? makeRoom(bytes) : std::span<std::byte>();
    if (ahead) {
        const ByteCount size(bytes);
        checkMpi(MPI_Irecv(room.data(), size.count(), size.type(), shared.sender, shared.tag, shared.comm.handle(),
                           &shared.request),
                 "MPI_Irecv");
    } else {
        shared.matched.receive(room.data(), shared.request);
    }
    shared.receiving = true;
    return true;
}

bool CommChannel::tryReceive(const MakeRoom &makeRoom) {
    requireReceiver();
    Shared &shared = *shared_;
    if (isReceived(shared.state))
        return true;
    if (!shared.within()) {
        if (!tryStartReceive(makeRoom) || !shared.complete())
            return false;
        shared.receiving = false;
        apply(shared.received > 0 ? ChannelEvent::Send : ChannelEvent::SendNull); // as the other replica did
    }
    apply(ChannelEvent::Receive);
    return isReceived(shared.state);
}

void CommChannel::discard() {
    requireReceiver();
    apply(ChannelEvent::Discard);
}

} // namespace DNDS
