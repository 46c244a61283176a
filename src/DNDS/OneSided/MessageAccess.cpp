#include "DNDS/OneSided/MessageAccess.hpp"

#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Mpi/Wait.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

namespace DNDS {

namespace {

/// Requests without a result that a rank has under way at most: more would fill its owners' queues.
constexpr std::size_t mostPending = 256;

/// Bytes of device memory in a request or answer at most.
constexpr std::size_t pieceBytes = std::size_t{256} << 10U;

/// The thread polls so often without a pause after it served; then it sleeps, up to so many short pauses at a time.
constexpr int idlePolls = 200;
constexpr int longestPause = 25;
constexpr std::chrono::microseconds shortPause(20);

} // namespace

MessageAccess::MessageAccess(std::shared_ptr<CommunicatorContext> context, std::string name, std::byte *base,
                             std::size_t bytes)
    : MessageAccess(std::move(context), std::move(name), base, nullptr,
                    [&](const CommunicatorView &comm) { return RmaWindow(comm, base, bytes); }) {}

MessageAccess::MessageAccess(std::shared_ptr<CommunicatorContext> context, std::string name, FarAccess &owner)
    : MessageAccess(std::move(context), std::move(name), nullptr, &owner,
                    [](const CommunicatorView &) { return RmaWindow(); }) {}

MessageAccess::MessageAccess(std::shared_ptr<CommunicatorContext> context, std::string name, std::byte *base,
                             FarAccess *owner, const std::function<RmaWindow(const CommunicatorView &)> &makeWindow)
    : context_(std::move(context)), name_(std::move(name)), base_(base), owner_(owner), asks_(context_->nextChannel()),
      answers_(context_->nextChannel()), window_(makeWindow(context_->comm())) {
    try {
        context_->comm().guarded([&] {
            isUsed_.resize(static_cast<std::size_t>(context_->comm().size()));
            engine_.begin([this] { progress(); });
            if (mpiServesAllThreads())
                startThread();
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

MessageAccess::~MessageAccess() { stop(); }

void MessageAccess::startThread() {
    try {
        thread_ = std::thread([this] { runThread(); });
    } catch (const std::system_error &error) {
        throw StateError(fmt::format("the thread that serves other ranks cannot be started ({}): with fewer threads in "
                                     "each process, or without MPI_THREAD_MULTIPLE, it can do without",
                                     error.what()));
    }
}

void MessageAccess::stop() noexcept {
    stop_ = true;
    if (thread_.joinable())
        thread_.join();
    engine_.end();
}

void MessageAccess::runThread() noexcept {
    try {
        if (owner_ != nullptr)
            Device::requireDevice("serve ranks of other nodes"); // each thread chooses it
    } catch (const std::exception &) {
        context_->revoke("requests for", name_, std::current_exception());
        return;
    }
    int idle = 0;
    while (!stop_) {
        idle = progress() ? 0 : idle + 1;
        if (idle < idlePolls) // whoever asked once may ask again
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(shortPause * std::min(idle - idlePolls + 1, longestPause));
    }
}

void MessageAccess::markUsed(int rank) {
    const std::lock_guard lock(mutex_);
    if (isUsed_[static_cast<std::size_t>(rank)])
        return;
    used_.push_back(rank);
    isUsed_[static_cast<std::size_t>(rank)] = true;
}

void MessageAccess::requireUsable() const {
    requireMpiActive("reach memory of another node");
    DNDS_CHECK(context_->alive(), StateError, "the communicator of this memory was freed: it can only be destroyed");
}

void MessageAccess::put(int rank, std::size_t offset, const void *from, std::size_t bytes, Completion completion) {
    requireUsable();
    if (owner_ != nullptr) {
        for (std::size_t at = 0; at < bytes; at += pieceBytes) {
            const std::size_t piece = std::min(pieceBytes, bytes - at);
            send(rank, {.offset = offset + at, .kind = Kind::Put, .bytes = piece, .request = {}}, {rank, false},
                 static_cast<const std::byte *>(from) + at);
            waitForAnswers(mostPending);
        }
        return;
    }
    window_.put(from, bytes, rank, offset);
    markUsed(rank); // only now: a thread that takes the mark completes this put
    if (completion == Completion::Now)
        window_.flushLocal(rank);
}

void MessageAccess::get(int rank, std::size_t offset, void *to, std::size_t bytes, Completion completion) {
    requireUsable();
    if (owner_ != nullptr) {
        std::uint64_t first = 0;
        for (std::size_t at = 0; at < bytes; at += pieceBytes) {
            const std::size_t piece = std::min(pieceBytes, bytes - at);
            const std::uint64_t number =
                send(rank, {.offset = offset + at, .kind = Kind::Get, .bytes = piece, .request = {}},
                     {rank, false, static_cast<std::byte *>(to) + at, piece});
            first = at == 0 ? number : first;
            waitForAnswers(mostPending);
        }
        if (completion == Completion::Now)
            waitForGets(rank, first);
        return;
    }
    window_.get(to, bytes, rank, offset);
    markUsed(rank);
    if (completion == Completion::Now)
        window_.flush(rank);
}

/// With so many bytes of data, which are in the message already.
template <class Header>
void MessageAccess::post(Sending &sending, const Header &header, std::size_t data, int rank, const Channel &channel) {
    const void *from = &header;
    if (data > 0) {
        std::memcpy(sending.message.data(), &header, sizeof(Header));
        from = sending.message.data();
    }
    checkMpi(MPI_Isend(from, static_cast<int>(sizeof(Header) + data), MPI_BYTE, rank, channel.tag, channel.comm,
                       &sending.request),
             "MPI_Isend");
}

std::uint64_t MessageAccess::send(int rank, Ask ask, Pending pending, const void *data) {
    requireUsable();
    const std::lock_guard lock(mutex_);
    const std::size_t bytes = data != nullptr ? ask.bytes : 0;
    Sending sending;
    if (bytes > 0) {
        sending.message.resize(sizeof(Ask) + bytes);
        std::memcpy(sending.message.data() + sizeof(Ask), data, bytes);
    }
    ask.number = next_++;
    sending.ask = ask;
    pending_.emplace(ask.number, pending);
    Sending &kept = sending_.emplace_back(std::move(sending));
    post(kept, kept.ask, bytes, rank, asks_);
    return ask.number;
}

/// Serves others until `done()`.
template <class Done>
void MessageAccess::waitForRank(int rank, const char *what, Done &&done) {
    waitUntil(
        *context_,
        [&] {
            progress();
            return done();
        },
        [&] { return fmt::format("rank {} to {} of '{}'", rank, what, name_); });
}

std::uint64_t MessageAccess::atomic(int rank, std::size_t offset, const AtomicRequest &request, Completion completion) {
    const bool wanted = completion == Completion::Now;
    const std::uint64_t number = send(rank, {.offset = offset, .request = request}, {rank, wanted});
    std::uint64_t bits = 0;
    if (wanted)
        waitForRank(rank, "carry out an atomic operation on words", [&] { return answered(number, bits); });
    else
        waitForAnswers(mostPending);
    return bits;
}

bool MessageAccess::answered(std::uint64_t number, std::uint64_t &bits) {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(number);
    if (found == pending_.end() || !found->second.done)
        return false;
    bits = found->second.bits;
    pending_.erase(found);
    return true;
}

void MessageAccess::waitForAnswers(std::size_t most) {
    int rank = 0;
    const auto few = [&] {
        const std::lock_guard lock(mutex_);
        if (pending_.size() <= most)
            return true;
        rank = pending_.begin()->second.rank;
        return false;
    };
    if (!few())
        waitForRank(rank, "answer requests for words", few);
}

/// This rank's gets from the first one on.
void MessageAccess::waitForGets(int rank, std::uint64_t first) {
    const auto all = [&] {
        const std::lock_guard lock(mutex_);
        return std::none_of(pending_.lower_bound(first), pending_.end(),
                            [](const auto &pending) { return pending.second.to != nullptr; });
    };
    waitForRank(rank, "send bytes", all);
}

void MessageAccess::fence() {
    if (owner_ == nullptr) // else owners carry out a rank's requests in order
        quiet();
}

void MessageAccess::sync() {
    if (window_)
        window_.sync();
}

void MessageAccess::quiet() {
    requireUsable();
    waitForAnswers(0);
    flushUsed();
}

/// Completes puts and gets of the window.
void MessageAccess::flushUsed() {
    if (!window_)
        return;
    const std::lock_guard flushing(flushing_); // who comes after another thread took the marks waits for its flushes
    std::vector<int> used;
    {
        const std::lock_guard lock(mutex_);
        used.swap(used_);
        for (const int rank : used)
            isUsed_[static_cast<std::size_t>(rank)] = false;
    }
    for (const int rank : used)
        window_.flush(rank);
    window_.sync();
}

void MessageAccess::serveOne(MPI_Message message, const MPI_Status &status) {
    const int from = status.MPI_SOURCE;
    int bytes = 0;
    checkMpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    const auto size = static_cast<std::size_t>(bytes);
    const auto require = [&](std::size_t expected) {
        DNDS_CHECK(size == expected, StateError,
                   "a request of rank {} has {} bytes instead of {}: do all ranks run the same "
                   "program?",
                   from, size, expected);
    };
    if (owner_ == nullptr || size < sizeof(Ask))
        require(sizeof(Ask));
    received_.resize(size);
    checkMpi(MPI_Mrecv(received_.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    Sending sending;
    Ask &ask = sending.ask;
    std::memcpy(&ask, received_.data(), sizeof(Ask));
    require(sizeof(Ask) + (ask.kind == Kind::Put ? ask.bytes : 0));
    const std::size_t back = ask.kind == Kind::Get ? ask.bytes : 0;
    if (back > 0)
        sending.message.resize(sizeof(Answer) + back);
    std::vector<std::byte> &data = back > 0 ? sending.message : received_;
    const std::size_t header = back > 0 ? sizeof(Answer) : sizeof(Ask);
    sending.answer = {ask.number, carryOut(ask, data.data() + header)};
    Sending &kept = sending_.emplace_back(std::move(sending));
    post(kept, kept.answer, back, from, answers_);
}

std::uint64_t MessageAccess::carryOut(const Ask &ask, std::byte *data) {
    const int mine = context_->comm().rank();
    switch (ask.kind) {
    case Kind::Put:
        owner_->put(mine, ask.offset, data, ask.bytes, Completion::Now);
        return 0;
    case Kind::Get:
        owner_->get(mine, ask.offset, data, ask.bytes, Completion::Now);
        return 0;
    case Kind::Atomic:
        break;
    }
    if (owner_ != nullptr)
        return owner_->atomic(mine, ask.offset, ask.request, Completion::Now);
    window_.sync();
    const std::uint64_t bits = Atomics::apply(base_ + ask.offset, ask.request);
    window_.sync();
    return bits;
}

void MessageAccess::receiveAnswer(MPI_Message message, const MPI_Status &status) {
    int bytes = 0;
    checkMpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    received_.resize(static_cast<std::size_t>(bytes));
    checkMpi(MPI_Mrecv(received_.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    Answer answer{};
    std::memcpy(&answer, received_.data(), sizeof(Answer));
    const auto found = pending_.find(answer.number);
    if (found == pending_.end()) // whoever asked has given up
        return;
    if (found->second.to != nullptr)
        std::memcpy(found->second.to, received_.data() + sizeof(Answer), found->second.bytes);
    if (!found->second.wanted) {
        pending_.erase(found);
        return;
    }
    found->second.bits = answer.bits;
    found->second.done = true;
}

bool MessageAccess::progress() noexcept {
    if (!context_->alive() || inForkedChild())
        return false;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || context_->revocation().revoked())
        return false; // another thread is at it, or nobody waits
    try {
        return serveAll();
    } catch (const std::exception &) {
        context_->revoke("requests for", name_, std::current_exception());
        return false;
    }
}

bool MessageAccess::serveAll() {
    bool any = false;
    for (int found = 1; found != 0;) {
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        checkMpi(MPI_Improbe(MPI_ANY_SOURCE, asks_.tag, asks_.comm, &found, &message, &status), "MPI_Improbe");
        if (found != 0)
            serveOne(message, status);
        any = any || found != 0;
    }
    for (int found = pending_.empty() ? 0 : 1; found != 0;) {
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        checkMpi(MPI_Improbe(MPI_ANY_SOURCE, answers_.tag, answers_.comm, &found, &message, &status), "MPI_Improbe");
        if (found != 0)
            receiveAnswer(message, status);
        any = any || found != 0;
    }
    std::erase_if(sending_, isSent);
    return any;
}

bool MessageAccess::isSent(Sending &sending) noexcept {
    int done = 0;
    return MPI_Test(&sending.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
}

bool MessageAccess::settle() noexcept {
    const std::lock_guard lock(mutex_);
    pending_.clear();
    std::erase_if(sending_, isSent);
    return sending_.empty();
}

void MessageAccess::renew() {
    flushUsed(); // all ranks are in MPI now
    const std::lock_guard lock(mutex_);
    asks_ = context_->renewed(asks_);
    answers_ = context_->renewed(answers_);
}

void MessageAccess::close() {
    const auto allSent = [&] {
        progress();
        const std::lock_guard lock(mutex_);
        return sending_.empty();
    };
    waitUntil(*context_, allSent, "other ranks to receive answers");
    stop();
    if (window_)
        window_.free();
}

} // namespace DNDS
