#include "DNDS/Sparse/CommChannel.hpp"

#include <mpi.h>

#include <list>
#include <mutex>
#include <optional>
#include <utility>

namespace DNDS {

namespace {

/// Sends whose channel is gone. Their memory is kept until MPI has read it.
class OrphanedSends {
  public:
    static void add(MPI_Request request, std::shared_ptr<const void> kept) {
        const std::lock_guard lock(mutex());
        list().push_back({request, std::move(kept)});
    }
    static void freeFinished() {
        const std::lock_guard lock(mutex());
        if (list().empty() || !mpiActive())
            return;
        std::erase_if(list(), [](Send &send) {
            int done = 0;
            return MPI_Test(&send.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
        });
    }

  private:
    struct Send {
        MPI_Request request;
        std::shared_ptr<const void> kept;
    };
    static std::mutex &mutex() {
        static std::mutex only;
        return only;
    }
    static std::list<Send> &list() {
        static auto *only = new std::list<Send>; // MPI may read what is in it until the process ends
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
        if (request == MPI_REQUEST_NULL || !mpiActive() || inForkedChild())
            return;
        if (comm.rank() == sender) {
            try {
                OrphanedSends::add(request, std::move(kept));
                OrphanedSends::freeFinished();
            } catch (...) { // no memory to remember it: then it has to end here
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
        } else {
            MPI_Cancel(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    bool within() const noexcept { return sender == receiver; }
    /// Whether MPI is done with the message under way. Then there is none.
    bool complete() {
        if (request == MPI_REQUEST_NULL)
            return true;
        int done = 0;
        MPI_Status status;
        checkMpi(MPI_Test(&request, &done, &status), "MPI_Test");
        if (done == 0)
            return false;
        if (comm.rank() == receiver)
            count(status);
        kept.reset();
        size.reset();
        return true;
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
    MPI_Message matched = MPI_MESSAGE_NULL; ///< found, but there was no room for it
    std::optional<ByteCount> size;          ///< of the message under way
    std::shared_ptr<const void> kept;
    std::size_t received = 0;
    bool receiving = false; ///< a receive was started and not used yet
};

CommChannel::CommChannel(int tag, int sender, int receiver, CommunicatorView comm, ReceiveWay way, std::size_t bytes)
    : shared_(std::make_shared<Shared>(tag, sender, receiver, comm, way, bytes)) {
    DNDS_CHECK(comm.rank() == sender || comm.rank() == receiver, ArgumentError,
               "a channel from rank {} to rank {} is made on rank {}: make it on these two", sender, receiver,
               comm.rank());
    DNDS_CHECK(sender >= 0 && sender < comm.size() && receiver >= 0 && receiver < comm.size(), ArgumentError,
               "a channel from rank {} to rank {}, of {} ranks", sender, receiver, comm.size());
    OrphanedSends::freeFinished();
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
    shared.size.emplace(bytes.size());
    shared.kept = std::move(kept);
    checkMpi(MPI_Isend(bytes.data(), shared.size->count(), shared.size->type(), shared.receiver, shared.tag,
                       shared.comm.handle(), &shared.request),
             "MPI_Isend");
}

bool CommChannel::tryStartReceive(const MakeRoom &makeRoom) {
    requireReceiver();
    Shared &shared = *shared_;
    if (shared.within() || shared.receiving)
        return true;
    const bool ahead = shared.way == ReceiveWay::Ahead;
    std::size_t bytes = shared.mostBytes;
    if (!ahead) {
        if (shared.matched == MPI_MESSAGE_NULL) {
            int found = 0;
            MPI_Status status;
            checkMpi(MPI_Improbe(shared.sender, shared.tag, shared.comm.handle(), &found, &shared.matched, &status),
                     "MPI_Improbe");
            if (found == 0)
                return false;
            shared.count(status);
        }
        bytes = shared.received;
    }
    const std::span<std::byte> room = bytes > 0 ? makeRoom(bytes) : std::span<std::byte>();
    shared.size.emplace(bytes);
    if (ahead)
        checkMpi(MPI_Irecv(room.data(), shared.size->count(), shared.size->type(), shared.sender, shared.tag,
                           shared.comm.handle(), &shared.request),
                 "MPI_Irecv");
    else
        checkMpi(MPI_Imrecv(room.data(), shared.size->count(), shared.size->type(), &shared.matched, &shared.request),
                 "MPI_Imrecv");
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
