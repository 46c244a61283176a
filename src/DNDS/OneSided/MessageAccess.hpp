/// @file MessageAccess.hpp
/// @brief Memory of ranks on other nodes: puts and gets by MPI or by the owner, atomic operations by the owner.
#pragma once

#include "DNDS/Mpi/ProgressEngine.hpp"
#include "DNDS/Mpi/RmaWindow.hpp"
#include "DNDS/OneSided/FarAccess.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace DNDS {

/// Puts and gets of host memory go through an MPI window over it. Words are changed by the processor of the rank that
/// owns them, which others send a request: one executor a word, whoever asks. Device memory is read and written by such
/// requests, too, of at most 256 KiB.
///
/// The owner serves requests in all waits of DNDS on the thread that made this object, and on a thread of its own where
/// MPI runs with MPI_THREAD_MULTIPLE. Without that, a rank that computes, or waits in a collective of MPI, serves
/// nobody. What fails while serving revokes the communicator; after that nobody is served until it has recovered.
class MessageAccess final : public FarAccess {
  public:
    /// `base` and `bytes` are this rank's memory; `name` is for messages. Collective. Throws on all ranks: StateError
    /// where the thread cannot be started.
    MessageAccess(std::shared_ptr<CommunicatorContext> context, std::string name, std::byte *base, std::size_t bytes);
    /// The same for device memory, which `owner` operates on at this rank.
    MessageAccess(std::shared_ptr<CommunicatorContext> context, std::string name, FarAccess &owner);
    ~MessageAccess() override;

    void put(int rank, std::size_t offset, const void *from, std::size_t bytes, Completion completion) override;
    void get(int rank, std::size_t offset, void *to, std::size_t bytes, Completion completion) override;
    std::uint64_t atomic(int rank, std::size_t offset, const AtomicRequest &request, Completion completion) override;
    void fence() override;
    void quiet() override;
    void sync() override;
    bool progress() noexcept override;
    bool settle() noexcept override;
    void renew() override;
    void stop() noexcept override;
    void close() override;

  private:
    enum class Kind : std::uint64_t { Atomic, Put, Get };
    /// Data of a put follow it.
    struct Ask {
        std::uint64_t number = 0;
        std::uint64_t offset = 0;
        Kind kind = Kind::Atomic;
        std::uint64_t bytes = 0; ///< of a put or get
        AtomicRequest request;
    };
    /// Data of a get follow it.
    struct Answer {
        std::uint64_t number;
        std::uint64_t bits;
    };
    struct Sending {
        MPI_Request request = MPI_REQUEST_NULL;
        Ask ask{};
        Answer answer{};
        std::vector<std::byte> message; ///< one of them with data
    };
    struct Pending {
        int rank;
        bool wanted;             ///< a caller waits for the bits and takes them
        void *to = nullptr;      ///< of a get
        std::uint64_t bytes = 0; ///< the same
        bool done = false;
        std::uint64_t bits = 0;
    };

    MessageAccess(std::shared_ptr<CommunicatorContext> context, std::string name, std::byte *base, FarAccess *owner,
                  const std::function<RmaWindow(const CommunicatorView &)> &makeWindow);

    /// Throws StateError in a forked child, after MPI_Finalize, and where the communicator was freed.
    void requireUsable() const;
    void startThread();
    void markUsed(int rank);
    std::uint64_t send(int rank, Ask ask, Pending pending, const void *data = nullptr);
    template <class Header>
    static void post(Sending &sending, const Header &header, std::size_t data, int rank, const Channel &channel);
    void serveOne(MPI_Message message, const MPI_Status &status);
    std::uint64_t carryOut(const Ask &ask, std::byte *data);
    void receiveAnswer(MPI_Message message, const MPI_Status &status);
    bool answered(std::uint64_t number, std::uint64_t &bits);
    template <class Done>
    void waitForRank(int rank, const char *what, Done &&done);
    void waitForAnswers(std::size_t most);
    void waitForGets(int rank, std::uint64_t first);
    static bool isSent(Sending &sending) noexcept;
    void flushUsed();
    bool serveAll();
    void runThread() noexcept;

    std::shared_ptr<CommunicatorContext> context_;
    std::string name_;
    std::byte *base_;
    FarAccess *owner_; ///< of device memory; null for that of the host
    Channel asks_;
    Channel answers_;
    RmaWindow window_; ///< none over device memory

    std::mutex flushing_;   ///< held while marks are taken and their ranks flushed; before `mutex_`
    std::mutex mutex_;      ///< of all below: the thread serves, too
    std::vector<int> used_; ///< ranks with puts or gets that are not flushed
    std::vector<bool> isUsed_;
    std::list<Sending> sending_;
    std::map<std::uint64_t, Pending> pending_;
    std::uint64_t next_ = 1;
    std::vector<std::byte> received_; ///< a message that is looked at

    ProgressEngine engine_;
    std::atomic<bool> stop_{false};
    std::thread thread_; ///< where MPI allows it
};

} // namespace DNDS
