/// @file MessageAccess.hpp
/// @brief Memory of ranks on other nodes: puts and gets by MPI or by the owner, atomic operations by the owner.
#pragma once

#include "DNDS/Mpi/ProgressEngine.hpp"
#include "DNDS/Mpi/RmaWindow.hpp"
#include "DNDS/OneSided/RemoteAccess.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace DNDS {

/// Requests of ranks to the owners of memory, and their answers: one service for all heaps and windows of a
/// communicator. Active messages, as GASNet's: a request takes two messages, and the owner carries out the requests of
/// one rank in its order, so that `fence` is free. Words are not changed by MPI's own atomics, which need not be atomic
/// together with the processor's, and in some implementations progress only while the owner is in MPI.
///
/// The owner serves requests in all waits of DNDS on the threads that made memory, and on a thread of its own if MPI
/// runs with MPI_THREAD_MULTIPLE. Without that, a rank that computes, or waits in a collective of MPI, serves no
/// requests. An error while serving revokes the communicator; then requests are served again only after a recovery.
class MessageService final : public Recoverable {
  public:
    /// Carries out an operation on this rank's memory with `data`, which receives its results.
    using Serve = std::function<void(const RemoteOperation &operation, std::byte *data)>;
    /// A served memory; `name` is for messages.
    struct Memory {
        std::string name;
        Serve serve;
    };

    /// The service of a communicator, which has to outlive it. Collective at the first call.
    static MessageService &of(CommunicatorContext &context);
    explicit MessageService(CommunicatorContext &context);
    ~MessageService() override;

    /// Serves requests for a memory, which has the same number on all ranks, until `remove`. Local. Throws StateError
    /// if the thread cannot be started; `remove` it then, too.
    void add(std::uint64_t memory, Memory served);
    void remove(std::uint64_t memory) noexcept;
    /// Requests an operation of at most 256 KiB with the bytes at `from` (null: zeros); results are stored at `to`.
    /// Returns the request's number.
    std::uint64_t send(std::uint64_t memory, const RemoteOperation &operation, const std::byte *from, std::byte *to);
    /// Waits until at most `most` requests for a memory, of those with numbers from `first` to `last`, are
    /// unanswered; serves others meanwhile. `name` is for messages.
    void wait(std::uint64_t memory, std::size_t most, const std::string &name, std::uint64_t first = 0,
              std::uint64_t last = UINT64_MAX);
    /// Writes no results to these bytes from now on.
    void forget(const std::byte *to, std::size_t bytes) noexcept;
    /// Whether MPI has sent everything for a memory.
    bool allSent(std::uint64_t memory);
    bool progress() noexcept;
    bool settle() noexcept override;
    void renew() override;

  private:
    struct Header;
    struct Sending;
    /// A request of this rank that waits for its answer; results go to `to`, if not null.
    struct Pending {
        std::uint64_t memory;
        RemoteOperation operation;
        std::byte *to;
    };

    /// Sends a message, whose header is filled in here. Under the lock.
    void post(int rank, std::uint64_t memory, const Header &header, std::vector<std::byte> message);
    /// Serves a request, or stores the results of an answer. Under the lock.
    void receive(MPI_Message message, const MPI_Status &status);
    static bool isSent(Sending &sending) noexcept;
    /// Receives all messages that have arrived; true if there were any. Under the lock.
    bool receiveAll();
    /// The thread's loop, until `stop` is requested.
    void run(const std::stop_token &stop) noexcept;

    /// Owns this object, by `attach`.
    CommunicatorContext &context_;
    /// One channel for all memories and both directions: headers distinguish requests and answers.
    Channel channel_;
    std::mutex mutex_; ///< guards all below: the serving thread uses it, too
    /// Served memory of this rank, keyed by its number, which is the same on all ranks.
    std::map<std::uint64_t, Memory> memories_;
    std::string_view serving_; ///< the name of the memory of the last message
    /// Moved freely, as MPI knows the messages' own memory, and requests are handles.
    std::vector<Sending> sending_;
    std::map<std::uint64_t, Pending> pending_; ///< unanswered requests, keyed by number: ascending is oldest first
    /// The next request's number.
    std::uint64_t next_ = 1;
    std::jthread thread_; ///< runs where MPI allows it, while there is memory
};

/// Puts and gets of host memory go through an MPI window over it. Words are changed by the processor of the owning
/// rank, to which others send requests: one executor a word for all callers. Device memory is read and written by such
/// requests, too.
class MessageAccess final : public RemoteAccess {
  public:
    /// Memory from `base` on this rank, with a window over it for puts and gets; without one, only words are changed.
    /// `name` is for messages. Collective. Throws on all ranks: StateError if the thread cannot be started.
    MessageAccess(std::shared_ptr<CommunicatorContext> context, std::string name, std::byte *base, RmaWindow window);
    /// The same for device memory, which `owner` operates on at this rank.
    MessageAccess(std::shared_ptr<CommunicatorContext> context, std::string name, RemoteAccess &owner);
    ~MessageAccess() override { stop(); }

    void operate(const RemoteOperation &operation, const void *from, void *to, Completion completion) override;
    void fence() override;
    void quiet() override;
    void sync() override;
    bool progress() noexcept override { return service_->progress(); }
    void renew() override { flushUsed(); } // all ranks are in MPI now
    void stop() noexcept override {
        engine_.end();
        service_->remove(number_);
    }
    void close() override;

  private:
    MessageAccess(std::shared_ptr<CommunicatorContext> context, std::string name, MessageService::Serve serve,
                  RmaWindow window);
    /// Completes the puts and gets through the window, on all ranks that have been reached.
    void flushUsed();

    std::shared_ptr<CommunicatorContext> context_;
    std::string name_;
    /// Of the communicator, which outlives this.
    MessageService *service_;
    /// The memory's number in the service, the same on all ranks.
    std::uint64_t number_;
    RmaWindow window_;    ///< may be empty
    std::mutex flushing_; ///< held while marks are taken and their ranks flushed; before `marking_`
    std::mutex marking_;
    std::set<int> used_; ///< ranks with unflushed puts or gets
    /// Serves other ranks in all waits of the thread that made it.
    ProgressEngine engine_;
};

} // namespace DNDS
