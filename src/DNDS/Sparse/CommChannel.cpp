#include "DNDS/Sparse/CommChannel.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Mpi/FindContext.hpp"
#include "DNDS/Sparse/MatchedMessage.hpp"
#include "DNDS/Sparse/PollTimer.hpp"
#include "DNDS/Transport/PeerFailure.hpp"

#include <mpi.h>

#include <algorithm>
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
    Shared(int messageTag, int from, int to, CommunicatorView communicator, ReceiveWay receiveWay, std::size_t bytes,
           bool isSender, std::shared_ptr<ChannelMail> own)
        : tag(messageTag), sender(from), receiver(to), comm(communicator), way(receiveWay), mostBytes(bytes),
          sends(isSender), mail(std::move(own)) {}
    Shared(const Shared &) = delete;
    Shared &operator=(const Shared &) = delete;
    ~Shared() {
        if (!mpiActive() || inForkedChild())
            return;
        if (matched.isFound())
            takeUnread();
        if (request == MPI_REQUEST_NULL)
            return;
        if (sends) {
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
    /// Whether the message under way has been moved. Then there is none.
    bool complete() {
        if (mail != nullptr)
            return sends || takeMail();
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
        if (!sends)
            count(status);
        kept.reset();
        return true;
    }
    bool takeMail() {
        if (mail->empty())
            return false;
        std::ranges::copy(mail->front(), room.begin());
        received = mail->front().size();
        mail->pop_front();
        return true;
    }
    /// Whether the next message is there, and its size is known.
    bool find() { return mail != nullptr ? !mail->empty() : matched.find(sender, {comm.handle(), tag}); }
    std::size_t foundBytes() const noexcept { return mail != nullptr ? mail->front().size() : matched.bytes(); }
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
    bool sends;
    double patience = readEnvironment().waitTimeout;
    std::shared_ptr<ChannelMail> mail; ///< within a rank
    std::span<std::byte> room;         ///< for what comes from it
    PollTimer polling;
    ChannelState state = ChannelState::Stale;
    MPI_Request request = MPI_REQUEST_NULL;
    MatchedMessage matched; ///< where there was no room for it yet
    std::shared_ptr<const void> kept;
    std::size_t received = 0;
    bool receiving = false; ///< a receive was started and not used yet
    std::exception_ptr failure;
};

CommChannel::CommChannel(int tag, int sender, int receiver, CommunicatorView comm, ReceiveWay way, std::size_t bytes,
                         bool sends, std::shared_ptr<ChannelMail> mail)
    : shared_(std::make_shared<Shared>(tag, sender, receiver, comm, way, bytes, sends, std::move(mail))) {
    DNDS_CHECK(comm.rank() == (sends ? sender : receiver), ArgumentError,
               "a channel from rank {} to rank {} is made on rank {}: make it on these two", sender, receiver,
               comm.rank());
    DNDS_CHECK(sender >= 0 && sender < comm.size() && receiver >= 0 && receiver < comm.size(), ArgumentError,
               "a channel from rank {} to rank {}, of {} ranks", sender, receiver, comm.size());
    OrphanedMessages::freeFinished();
}

std::size_t CommChannel::receivedBytes() const noexcept { return shared_->received; }

ChannelState CommChannel::state() const {
    Shared &shared = *shared_;
    if (shared.sends && isSending(shared.state) && shared.complete())
        shared.state = ChannelState::Stale; // the data may be overwritten
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
    DNDS_CHECK(shared_->sends, StateError, "only rank {} sends on channel {}", shared_->sender, shared_->tag);
}

void CommChannel::requireReceiver() const {
    DNDS_CHECK(!shared_->sends, StateError, "only rank {} receives from channel {}", shared_->receiver, shared_->tag);
}

void CommChannel::requireAtRest() const {
    const ChannelState now = state();
    DNDS_CHECK(now == ChannelState::Stale || isReceived(now), StateError,
               "the buffer of channel {} is in use: the channel is {}", shared_->tag, channelStateName(now));
    DNDS_CHECK(!shared_->receiving, StateError, "the buffer of channel {} is in use: a receive was started",
               shared_->tag);
}

void CommChannel::send(std::span<const std::byte> bytes, std::shared_ptr<const void> kept) {
    requireSender();
    (void)state();
    DNDS_CHECK(!bytes.empty(), ArgumentError, "nothing is sent on channel {}: that is what sendNull is for",
               shared_->tag);
    DNDS_CHECK(shared_->way != ReceiveWay::Ahead || bytes.size() <= shared_->mostBytes, ArgumentError,
               "{} bytes are sent on channel {}, which was made for {}: make it larger, or SizesFirst", bytes.size(),
               shared_->tag, shared_->mostBytes);
    apply(ChannelEvent::Send);
    startSend(bytes, std::move(kept));
}

void CommChannel::sendNull() {
    requireSender();
    (void)state();
    apply(ChannelEvent::SendNull);
    startSend({}, nullptr);
}

void CommChannel::startSend(std::span<const std::byte> bytes, std::shared_ptr<const void> kept) {
    Shared &shared = *shared_;
    if (shared.mail != nullptr) {
        shared.mail->emplace_back(bytes.begin(), bytes.end());
        return;
    }
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
    if (shared.receiving)
        return true;
    const bool ahead = shared.way == ReceiveWay::Ahead;
    if (!ahead && !shared.find())
        return false;
    const std::size_t bytes = ahead ? shared.mostBytes : shared.foundBytes();
    shared.room = bytes > 0 ? makeRoom(bytes) : std::span<std::byte>();
    if (shared.mail != nullptr) {
        // taken by `complete`
    } else if (ahead) {
        const ByteCount size(bytes);
        checkMpi(MPI_Irecv(shared.room.data(), size.count(), size.type(), shared.sender, shared.tag,
                           shared.comm.handle(), &shared.request),
                 "MPI_Irecv");
    } else {
        shared.matched.receive(shared.room.data(), shared.request);
    }
    shared.receiving = true;
    return true;
}

bool CommChannel::receiveNow(const MakeRoom &makeRoom) {
    Shared &shared = *shared_;
    if (!tryStartReceive(makeRoom) || !shared.complete())
        return false;
    shared.receiving = false;
    shared.polling.reset();
    apply(shared.received > 0 ? ChannelEvent::Send : ChannelEvent::SendNull); // as at the other end
    apply(ChannelEvent::Receive);
    return true;
}

bool CommChannel::tryReceive(const MakeRoom &makeRoom) {
    requireReceiver();
    Shared &shared = *shared_;
    if (isReceived(shared.state) || receiveNow(makeRoom))
        return true;
    const auto seconds = shared.polling.due();
    if (!seconds)
        return false;
    const auto context = findContext(shared.comm); // to make it would be collective
    NodeArena *const arena = context == nullptr ? nullptr : context->node().arena.get();
    const int nodeRank = arena == nullptr ? -1 : context->node().nodeRank(shared.sender);
    const bool alive = nodeRank < 0 || arena->alive(nodeRank);
    if (receiveNow(makeRoom)) // what it sent before it ended
        return true;
    checkPeer(alive, shared.sender, fmt::format("send on channel {}", shared.tag), *seconds, shared.patience, arena);
    return false;
}

void CommChannel::discard() {
    requireReceiver();
    apply(ChannelEvent::Discard);
}

} // namespace DNDS
