#include "DNDS/OneSided/MessageAccess.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

namespace DNDS {

namespace {

/// Requests without a result that a rank has under way at most: more would fill its owners' queues.
constexpr std::size_t mostPending = 256;

/// The thread polls so often without a pause after it served; then it sleeps, up to so many short pauses at a time.
constexpr int idlePolls = 200;
constexpr int longestPause = 25;
constexpr std::chrono::microseconds shortPause(20);

} // namespace

MessageAccess::MessageAccess(std::shared_ptr<CommunicatorContext> context, PeerWaits &waits, std::byte *base,
                             std::size_t bytes)
    : context_(std::move(context)), waits_(waits), base_(base), asks_(context_->nextChannel()),
      answers_(context_->nextChannel()), window_(context_->comm(), base, bytes) {
    try {
        context_->comm().guarded([&] {
            isUsed_.resize(static_cast<std::size_t>(context_->comm().size()));
            engine_.begin([this] { serve(); });
            if (mpiServesAllThreads())
                startThread();
        });
    } catch (const MpiError &) { // on this rank alone
        stop();
        throw;
    } catch (...) {
        stop();
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

void MessageAccess::runThread() {
    int idle = 0;
    while (!stop_ && !waits_.broken()) {
        idle = serve() ? 0 : idle + 1;
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
    window_.put(from, bytes, rank, offset);
    markUsed(rank); // only now: a thread that takes the mark completes this put
    if (completion == Completion::Now)
        window_.flushLocal(rank);
}

void MessageAccess::get(int rank, std::size_t offset, void *to, std::size_t bytes, Completion completion) {
    requireUsable();
    window_.get(to, bytes, rank, offset);
    markUsed(rank);
    if (completion == Completion::Now)
        window_.flush(rank);
}

std::uint64_t MessageAccess::send(int rank, std::size_t offset, const AtomicRequest &request, bool wanted) {
    requireUsable();
    const std::lock_guard lock(mutex_);
    const std::uint64_t number = next_++;
    pending_.emplace(number, Pending{rank, wanted});
    Sending &sending = sending_.emplace_back();
    sending.ask = {number, offset, request};
    checkMpi(MPI_Isend(&sending.ask, sizeof(Ask), MPI_BYTE, rank, asks_.tag, asks_.comm, &sending.request),
             "MPI_Isend");
    return number;
}

template <class Done>
void MessageAccess::waitForRank(int rank, const char *what, Done &&done) {
    try {
        waits_.waitFor(rank, what, std::forward<Done>(done), [&] { progress(); });
    } catch (...) { // nobody asks for these answers any more
        const std::lock_guard lock(mutex_);
        pending_.clear();
        throw;
    }
}

std::uint64_t MessageAccess::atomic(int rank, std::size_t offset, const AtomicRequest &request, Completion completion) {
    const bool wanted = completion == Completion::Now;
    const std::uint64_t number = send(rank, offset, request, wanted);
    std::uint64_t bits = 0;
    if (wanted)
        waitForRank(rank, "carry out an atomic operation", [&] { return answered(number, bits); });
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

int MessageAccess::rankOutstanding() {
    const std::lock_guard lock(mutex_);
    return pending_.empty() ? PeerWaits::anyone : pending_.begin()->second.rank;
}

void MessageAccess::waitForAnswers(std::size_t most) {
    const auto few = [&] {
        const std::lock_guard lock(mutex_);
        return pending_.size() <= most;
    };
    if (!few())
        waitForRank(rankOutstanding(), "carry out atomic operations", few);
}

void MessageAccess::quiet() {
    requireUsable();
    waitForAnswers(0);
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
    DNDS_CHECK(bytes == static_cast<int>(sizeof(Ask)), StateError,
               "a request of rank {} for an atomic operation has {} bytes instead of {}: do all ranks run the same "
               "program?",
               from, bytes, sizeof(Ask));
    Sending &sending = sending_.emplace_back();
    checkMpi(MPI_Mrecv(&sending.ask, sizeof(Ask), MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    window_.sync();
    sending.answer = {sending.ask.number, Atomics::apply(base_ + sending.ask.offset, sending.ask.request)};
    window_.sync();
    checkMpi(MPI_Isend(&sending.answer, sizeof(Answer), MPI_BYTE, from, answers_.tag, answers_.comm, &sending.request),
             "MPI_Isend");
}

void MessageAccess::receiveAnswer(MPI_Message message) {
    Answer answer{};
    checkMpi(MPI_Mrecv(&answer, sizeof(Answer), MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    const auto found = pending_.find(answer.number);
    if (found == pending_.end()) // whoever asked has given up
        return;
    if (!found->second.wanted) {
        pending_.erase(found);
        return;
    }
    found->second.bits = answer.bits;
    found->second.done = true;
}

bool MessageAccess::progress() {
    const bool served = serve();
    waits_.requireSound();
    return served;
}

bool MessageAccess::serve() noexcept {
    if (!context_->alive() || inForkedChild() || waits_.broken())
        return false;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock)
        return false; // another thread is at it
    try {
        return serveAll();
    } catch (...) {
        waits_.breakDown(std::current_exception());
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
        checkMpi(MPI_Improbe(MPI_ANY_SOURCE, answers_.tag, answers_.comm, &found, &message, MPI_STATUS_IGNORE),
                 "MPI_Improbe");
        if (found != 0)
            receiveAnswer(message);
        any = any || found != 0;
    }
    std::erase_if(sending_, [](Sending &sending) {
        int done = 0;
        checkMpi(MPI_Test(&sending.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        return done != 0;
    });
    return any;
}

void MessageAccess::close() {
    const auto allSent = [&] {
        const std::lock_guard lock(mutex_);
        return sending_.empty();
    };
    waits_.waitFor(PeerWaits::anyone, "receive answers", allSent, [&] { progress(); });
    stop();
    window_.free();
}

} // namespace DNDS
