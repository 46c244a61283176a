/// @file MessageAccess.hpp
/// @brief Memory of ranks on other nodes: puts and gets by MPI, atomic operations by the owner.
#pragma once

#include "DNDS/Mpi/RmaWindow.hpp"
#include "DNDS/OneSided/FarAccess.hpp"
#include "DNDS/OneSided/PeerWaits.hpp"
#include "DNDS/Transport/ProgressEngine.hpp"

#include <atomic>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace DNDS {

/// Puts and gets go through an MPI window over the memory. Words are changed by the processor of the rank that owns
/// them, which others send a request: one executor a word, whoever asks.
///
/// The owner serves requests in all waits of DNDS on the thread that made this object, and on a thread of its own where
/// MPI runs with MPI_THREAD_MULTIPLE. Without that, a rank that computes, or waits in a collective of MPI, serves
/// nobody. What fails while serving breaks `waits` down: the owner's next call throws it, and whoever asks is told.
class MessageAccess final : public FarAccess {
  public:
    /// Collective. `base` and `bytes` are this rank's memory; `waits` outlives this object. Throws on all ranks:
    /// StateError where the thread cannot be started.
    MessageAccess(std::shared_ptr<CommunicatorContext> context, PeerWaits &waits, std::byte *base, std::size_t bytes);
    ~MessageAccess() override;

    void put(int rank, std::size_t offset, const void *from, std::size_t bytes, Completion completion) override;
    void get(int rank, std::size_t offset, void *to, std::size_t bytes, Completion completion) override;
    std::uint64_t atomic(int rank, std::size_t offset, const AtomicRequest &request, Completion completion) override;
    void fence() override { quiet(); }
    void quiet() override;
    void sync() override { window_.sync(); }
    bool progress() override;
    void stop() noexcept override;
    void close() override;

  private:
    struct Ask {
        std::uint64_t number;
        std::uint64_t offset;
        AtomicRequest request;
    };
    struct Answer {
        std::uint64_t number;
        std::uint64_t bits;
    };
    struct Sending {
        MPI_Request request = MPI_REQUEST_NULL;
        Ask ask{};
        Answer answer{};
    };
    struct Pending {
        int rank;
        bool wanted; ///< a caller waits for the bits and takes them
        bool done = false;
        std::uint64_t bits = 0;
    };

    /// Throws StateError in a forked child, after MPI_Finalize, and where the communicator was freed.
    void requireUsable() const;
    void startThread();
    void markUsed(int rank);
    std::uint64_t send(int rank, std::size_t offset, const AtomicRequest &request, bool wanted);
    void serveOne(MPI_Message message, const MPI_Status &status);
    void receiveAnswer(MPI_Message message);
    bool answered(std::uint64_t number, std::uint64_t &bits);
    int rankOutstanding();
    template <class Done>
    void waitForRank(int rank, const char *what, Done &&done);
    void waitForAnswers(std::size_t most);
    bool serve() noexcept;
    bool serveAll();
    void runThread();

    std::shared_ptr<CommunicatorContext> context_;
    PeerWaits &waits_;
    std::byte *base_;
    Channel asks_;
    Channel answers_;
    RmaWindow window_;

    std::mutex flushing_;   ///< held while marks are taken and their ranks flushed; before `mutex_`
    std::mutex mutex_;      ///< of all below: the thread serves, too
    std::vector<int> used_; ///< ranks with puts or gets that are not flushed
    std::vector<bool> isUsed_;
    std::list<Sending> sending_;
    std::map<std::uint64_t, Pending> pending_;
    std::uint64_t next_ = 1;

    ProgressEngine engine_;
    std::atomic<bool> stop_{false};
    std::thread thread_; ///< where MPI allows it
};

} // namespace DNDS
