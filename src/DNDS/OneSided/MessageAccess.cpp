#include "DNDS/OneSided/MessageAccess.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Mpi/Wait.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

namespace DNDS {

namespace {

/// Limit of unanswered requests of a rank for one memory: more would fill the queues of their owners, which MPI does
/// not bound.
constexpr std::size_t maxPending = 256;

/// Limit of the bytes of a request or answer: bounds the memory of both, and lets other requests in between.
constexpr std::size_t pieceBytes = std::size_t{256} << 10U;

/// Polls of the thread without a pause after it served; then it sleeps, up to this number of short pauses at a time.
constexpr int idlePolls = 200;
constexpr int longestPause = 25;
constexpr std::chrono::microseconds shortPause(20);

/// For "waited for rank 3 to ...".
const char *workOf(RemoteVerb verb) {
    return verb == RemoteVerb::Get           ? "send bytes"
           : verb == RemoteVerb::FetchAtomic ? "carry out an atomic operation on words"
                                             : "answer requests for words";
}

} // namespace

/// Header of a message; operands or results follow.
struct MessageService::Header {
    std::uint64_t number = 0;
    std::uint64_t memory = 0; ///< 0: an answer
    RemoteOperation operation{};
};

/// A message that MPI may still read.
struct MessageService::Sending {
    MPI_Request request = MPI_REQUEST_NULL;
    std::uint64_t memory = 0;
    std::vector<std::byte> message;
};

MessageService &MessageService::of(CommunicatorContext &context) {
    // One service a communicator, made by its first heap or window that needs it; enlisted, so that a recovery
    // settles it.
    return context.attach<MessageService>([&] {
        auto made = std::make_shared<MessageService>(context);
        const OnFailure undo([&] { context.delist(*made); });
        context.comm().guarded([&] { context.enlist(*made); });
        return made;
    });
}

MessageService::MessageService(CommunicatorContext &context) : context_(context), channel_(context.nextChannel()) {}

MessageService::~MessageService() {
    if (!sending_.empty()) // MPI ended before others had received the messages, and may still read them
        static_cast<void>(new (std::nothrow) std::vector<Sending>(std::move(sending_)));
}

void MessageService::add(std::uint64_t memory, Memory served) {
    const std::lock_guard lock(mutex_);
    memories_.emplace(memory, std::move(served));
    if (!mpiServesAllThreads() || thread_.joinable())
        return;
    try {
        thread_ = std::jthread([this](const std::stop_token &stop) { run(stop); });
    } catch (const std::system_error &error) {
        throw StateError(fmt::format("the thread that serves other ranks cannot be started ({}): with fewer threads in "
                                     "each process, or without MPI_THREAD_MULTIPLE, it can do without",
                                     error.what()));
    }
}

void MessageService::remove(std::uint64_t memory) noexcept {
    std::jthread ended; // joined without the lock
    const std::lock_guard lock(mutex_);
    memories_.erase(memory);
    std::erase_if(pending_, [&](const auto &pending) { return pending.second.memory == memory; });
    if (memories_.empty())
        ended = std::move(thread_);
}

void MessageService::run(const std::stop_token &stop) noexcept {
    // Yields while requests follow each other, then sleeps for times that grow to half a millisecond, and so costs
    // an idle rank little of its processor.
    int idle = 0;
    while (!stop.stop_requested()) {
        idle = progress() ? 0 : idle + 1;
        if (idle < idlePolls) // more requests are likely to follow
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(shortPause * std::min(idle - idlePolls + 1, longestPause));
    }
}

void MessageService::post(int rank, std::uint64_t memory, const Header &header, std::vector<std::byte> message) {
    std::memcpy(message.data(), &header, sizeof(Header));
    Sending &sending = sending_.emplace_back();
    sending.memory = memory;
    sending.message = std::move(message);
    checkMpi(MPI_Isend(sending.message.data(), static_cast<int>(sending.message.size()), MPI_BYTE, rank, channel_.tag,
                       channel_.comm, &sending.request),
             "MPI_Isend");
}

std::uint64_t MessageService::send(std::uint64_t memory, const RemoteOperation &operation, const std::byte *from,
                                   std::byte *to) {
    const std::lock_guard lock(mutex_);
    // A copy of the operands: the caller may change them at once.
    std::vector<std::byte> message(sizeof(Header) + operation.bytesThere());
    if (from != nullptr && operation.bytesThere() > 0)
        std::memcpy(message.data() + sizeof(Header), from, operation.bytesThere());
    pending_.emplace(next_, Pending{memory, operation, to});
    post(operation.rank, memory, {next_, memory, operation}, std::move(message));
    return next_++;
}

/// Why no deadlock: a waiting rank carries out requests of others in `progress`, among them those of ranks whose
/// answers it awaits. Bounded memory: at most `maxPending` requests of this rank and memory are in flight.
void MessageService::wait(std::uint64_t memory, std::size_t most, const std::string &name, std::uint64_t first,
                          std::uint64_t last) {
    // The oldest unanswered request, for the message of a wait that lasts.
    RemoteOperation awaited;
    // Requests of one memory with numbers in [first, last] and no answer yet: O(pending requests) under the lock,
    // at most a few hundred.
    const auto few = [&] {
        const std::lock_guard lock(mutex_);
        std::size_t count = 0;
        if (pending_.size() > most)
            for (auto at = pending_.lower_bound(first); at != pending_.end() && at->first <= last; ++at)
                if (at->second.memory == memory && count++ == 0)
                    awaited = at->second.operation;
        return count <= most;
    };
    waitUntil(
        context_, [&] { return few() || (progress(), few()); },
        [&] { return fmt::format("rank {} to {} of '{}'", awaited.rank, workOf(awaited.verb), name); });
    context_.requireValid(); // requests abandoned by a recovery have no results
}

void MessageService::forget(const std::byte *to, std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase_if(pending_,
                  [&](const auto &pending) { return pending.second.to >= to && pending.second.to < to + bytes; });
}

/// The lock makes this thread the only one that changes words for others: requests on one word are serialised at its
/// owner, which makes them atomic without atomics of MPI.
void MessageService::receive(MPI_Message message, const MPI_Status &status) {
    const int from = status.MPI_SOURCE;
    int size = 0;
    checkMpi(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
    // The probe was matched, so that no other thread can receive this message; its size is known.
    std::vector<std::byte> received(std::max(static_cast<std::size_t>(size), sizeof(Header)));
    checkMpi(MPI_Mrecv(received.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    Header header;
    std::memcpy(&header, received.data(), sizeof(Header));
    const RemoteOperation &operation = header.operation;
    // Both directions use one channel and one header: a request names the memory, its answer has 0 there and the
    // request's number.
    const bool asks = header.memory != 0;
    const auto memory = memories_.find(header.memory);
    if (memory != memories_.end())
        serving_ = memory->second.name;
    DNDS_CHECK(static_cast<std::size_t>(size) ==
                   sizeof(Header) + (asks ? operation.bytesThere() : operation.bytesBack()),
               StateError, "a request of rank {} has {} bytes: do all ranks run the same program?", from, size);
    if (!asks) {
        const auto found = pending_.find(header.number); // missing after `forget`
        if (found != pending_.end() && found->second.to != nullptr)
            std::memcpy(found->second.to, received.data() + sizeof(Header), operation.bytesBack());
        if (found != pending_.end())
            pending_.erase(found);
        return;
    }
    DNDS_CHECK(memory != memories_.end(), StateError, "rank {} asks for memory that is gone on this one", from);
    // Carried out in the request's own buffer, which becomes the answer.
    received.resize(sizeof(Header) + operation.bytes);
    memory->second.serve(operation, received.data() + sizeof(Header));
    received.resize(sizeof(Header) + operation.bytesBack());
    header.memory = 0;
    post(from, memory->first, header, std::move(received));
}

/// An error counts as sent: the message cannot be sent again, and waits find the communicator revoked.
bool MessageService::isSent(Sending &sending) noexcept {
    int done = 0;
    return MPI_Test(&sending.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
}

bool MessageService::receiveAll() {
    // Requests of one rank arrive, and are carried out, in the order in which it sent them.
    bool any = false;
    serving_ = "memory of other ranks"; // the last one may have been removed
    for (int found = 1; found != 0;) {
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        checkMpi(MPI_Improbe(MPI_ANY_SOURCE, channel_.tag, channel_.comm, &found, &message, &status), "MPI_Improbe");
        if (found != 0)
            receive(message, status);
        any = any || found != 0;
    }
    std::erase_if(sending_, isSent);
    return any;
}

/// O(messages that have arrived). Errors cannot be thrown here, in waits of unrelated calls: they revoke.
bool MessageService::progress() noexcept {
    // Called from all waits of DNDS. Another thread with the lock is likely making progress: no need to wait for
    // it.
    if (!context_.alive() || inForkedChild())
        return false;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || context_.revoked())
        return false; // another thread makes progress, or requests wait for a recovery
    try {
        return receiveAll();
    } catch (const std::exception &) {
        context_.revoke("requests for", serving_, std::current_exception());
        return false;
    }
}

bool MessageService::allSent(std::uint64_t memory) {
    progress();
    const std::lock_guard lock(mutex_);
    return std::ranges::find(sending_, memory, &Sending::memory) == sending_.end();
}

/// True once MPI has read all messages of this rank; their buffers must live until then.
bool MessageService::settle() noexcept {
    const std::lock_guard lock(mutex_);
    // After a failure answers do not come; callers find the communicator revoked.
    pending_.clear();
    std::erase_if(sending_, isSent);
    return sending_.empty();
}

void MessageService::renew() {
    const std::lock_guard lock(mutex_);
    channel_ = context_.renewed(channel_);
}

MessageAccess::MessageAccess(std::shared_ptr<CommunicatorContext> context, std::string name, std::byte *base,
                             RmaWindow window)
    : MessageAccess(
          std::move(context), std::move(name),
          // The window is synchronised on both sides of the processor's accesses: MPI's puts and these loads and stores
          // may use copies of their own otherwise (MPI-4.1, 12.7).
          [this, base](const RemoteOperation &operation, std::byte *data) {
              sync();
              Atomics::applyEach(base + operation.offset, operation.request, data, data, operation.bytes);
              sync();
          },
          std::move(window)) {}

MessageAccess::MessageAccess(std::shared_ptr<CommunicatorContext> context, std::string name, RemoteAccess &owner)
    : MessageAccess(
          std::move(context), std::move(name),
          [&owner](const RemoteOperation &operation, std::byte *data) {
              Device::requireDevice("serve ranks of other nodes"); // each thread chooses its device
              owner.operate(operation, data, data, Completion::Now);
          },
          RmaWindow()) {}

MessageAccess::MessageAccess(std::shared_ptr<CommunicatorContext> context, std::string name,
                             MessageService::Serve serve, RmaWindow window)
    : context_(std::move(context)), name_(std::move(name)), service_(&MessageService::of(*context_)),
      number_(context_->nextSerial()), window_(std::move(window)) {
    try {
        context_->comm().guarded([&] {
            service_->add(number_, {name_, std::move(serve)});
            engine_.begin([service = service_] { service->progress(); });
        });
    } catch (const MpiError &) { // on this rank alone
        stop();
        throw;
    } catch (const std::exception &) {
        stop();
        if (window_)
            window_.free();
        throw;
    }
}

/// Cost: a put or get of the window is one call of MPI and, with Completion::Now, a flush of that rank; a request is a
/// message there and an answer back for each 256 KiB.
void MessageAccess::operate(const RemoteOperation &operation, const void *from, void *to, Completion completion) {
    requireMpiActive("reach memory of another node");
    DNDS_CHECK(context_->alive(), StateError, "the communicator of this memory was freed: it can only be destroyed");
    // Two ways: puts and gets of host memory by the window, complete by a flush; everything else in requests of at
    // most `pieceBytes`, of which a bounded number is in flight.
    const bool puts = operation.verb == RemoteVerb::Put;
    if (window_ && (puts || operation.verb == RemoteVerb::Get)) {
        if (puts)
            window_.put(from, operation.bytes, operation.rank, operation.offset);
        else
            window_.get(to, operation.bytes, operation.rank, operation.offset);
        {
            const std::lock_guard lock(marking_);
            used_.insert(operation.rank); // only now: a thread that takes the mark completes this put
        }
        if (completion == Completion::Now)
            // A put needs its buffer free, a get its data there.
            puts ? window_.flushLocal(operation.rank) : window_.flush(operation.rank);
        return;
    }
    const auto *source = static_cast<const std::byte *>(from);
    auto *const results = static_cast<std::byte *>(to);
    std::uint64_t first = 0, last = 0;
    try {
        for (std::size_t at = 0; at < operation.bytes; at += pieceBytes) {
            RemoteOperation piece = operation;
            piece.offset += at;
            piece.bytes = std::min(pieceBytes, operation.bytes - at);
            last = service_->send(number_, piece, source == nullptr ? nullptr : source + at,
                                  results == nullptr ? nullptr : results + at);
            first = at == 0 ? last : first;
            // Bounds what the owner has to queue: this rank waits, and serves others, before it sends more.
            service_->wait(number_, maxPending, name_);
        }
        if (results != nullptr && completion == Completion::Now)
            service_->wait(number_, 0, name_, first, last);
    } catch (...) {
        // No answer may write to memory of a caller that has left.
        if (results != nullptr)
            service_->forget(results, operation.bytes);
        throw;
    }
}

void MessageAccess::fence() {
    if (window_) // else owners carry out a rank's requests in order
        quiet();
}

void MessageAccess::quiet() {
    requireMpiActive("reach memory of another node");
    service_->wait(number_, 0, name_);
    flushUsed();
}

void MessageAccess::sync() {
    if (window_)
        window_.sync();
}

/// Completes puts and gets of the window.
void MessageAccess::flushUsed() {
    if (!window_)
        return;
    // Marks are taken before their ranks are flushed: a put of another thread that is marked meanwhile is flushed
    // by the next call.
    const std::lock_guard flushing(flushing_); // wait for flushes of marks taken by other threads
    std::set<int> used;
    {
        const std::lock_guard lock(marking_);
        used.swap(used_);
    }
    for (const int rank : used)
        window_.flush(rank);
    window_.sync();
}

/// Called when all ranks have completed their operations: only the last answers may be in flight.
void MessageAccess::close() {
    // Answers for other ranks may still be on their way from this one.
    waitUntil(
        *context_, [&] { return service_->allSent(number_); }, "other ranks to receive answers");
    stop();
    if (window_)
        window_.free();
}

} // namespace DNDS
