/// @file Communicator.hpp
/// @brief MPI communicators: a view to pass around, an owner to free them, and the collectives that set-up code needs.
///
/// - `checkMpi`: turns the return code of an MPI call into an exception with the call's name and MPI's error text
/// - `Datatype`: the predefined MPI datatype of a C++ type, and an owner for derived ones
/// - `CommunicatorLife`: whether a communicator owned by other code still exists
/// - `broadcastList`: rank 0's lists and strings, whose length the other ranks do not know
/// - `rankOnMachine`: this rank's number among the ranks of its machine
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Mpi/RollCall.hpp"

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <complex>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {

/// Throws MpiError unless `code` is MPI_SUCCESS. Local. `call` is the MPI function's name.
/// MPI returns codes (instead of ending the job) on communicators whose error handler is MPI_ERRORS_RETURN, which DNDS
/// sets on every communicator it makes.
void checkMpi(int code, const char *call, SourceLocation where = SourceLocation::current());

/// Throws StateError unless MPI is initialised and not finalized, and in forked children. Local, O(1).
void requireMpiActive(const char *what, SourceLocation where = SourceLocation::current());

/// Whether MPI calls are allowed now: after MPI_Init and before MPI_Finalize, but not in forked children. Local.
bool mpiActive() noexcept;

/// Whether MPI was started with MPI_THREAD_MULTIPLE, so that several threads may call it at a time. Local; between
/// MPI_Init and MPI_Finalize.
bool mpiServesAllThreads() noexcept;

/// Whether this thread may call MPI for an operation started by thread `maker`: it is the same, or MPI serves all
/// threads. Local.
bool mayCallMpi(std::thread::id maker) noexcept;

/// Whether this process was forked from one that used MPI through DNDS. Messages, flags and shared memory belong to the
/// parent: destructors leave them alone. Local, O(1).
bool inForkedChild() noexcept;

/// The predefined MPI datatype of the arithmetic type `T`. Local.
template <class T>
MPI_Datatype mpiTypeOf() {
    static_assert(std::is_arithmetic_v<T>,
                  "MPI has predefined datatypes for arithmetic types only; send others as bytes");
    if constexpr (std::is_same_v<T, double>)
        return MPI_DOUBLE;
    else if constexpr (std::is_same_v<T, float>)
        return MPI_FLOAT;
    else if constexpr (std::is_same_v<T, long double>)
        return MPI_LONG_DOUBLE;
    else if constexpr (std::is_same_v<T, bool>)
        return MPI_CXX_BOOL;
    else if constexpr (std::is_same_v<T, char>)
        return MPI_CHAR;
    else if constexpr (std::is_signed_v<T>)
        return sizeof(T) == 8 ? MPI_INT64_T : sizeof(T) == 4 ? MPI_INT32_T : sizeof(T) == 2 ? MPI_INT16_T : MPI_INT8_T;
    else
        return sizeof(T) == 8   ? MPI_UINT64_T
               : sizeof(T) == 4 ? MPI_UINT32_T
               : sizeof(T) == 2 ? MPI_UINT16_T
                                : MPI_UINT8_T;
}

/// A run of bytes in memory.
struct ByteBlock {
    std::size_t offset; ///< from a base address that the user of the block knows
    std::size_t bytes;
};

/// Owns a committed derived MPI datatype. Move-only; frees the type unless MPI is already finalized.
class Datatype {
  public:
    Datatype() = default;
    Datatype(Datatype &&other) noexcept : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)) {}
    Datatype &operator=(Datatype &&other) noexcept {
        std::swap(type_, other.type_);
        return *this;
    }
    Datatype(const Datatype &) = delete;
    Datatype &operator=(const Datatype &) = delete;
    ~Datatype();

    /// Blocks of bytes at their offsets, sent as one element. Local. Cost O(blocks). Any total size: blocks beyond 2^31
    /// bytes are split into large chunks.
    static Datatype fromBlocks(std::span<const ByteBlock> blocks);

    /// The datatype, for MPI calls while this lives; MPI_DATATYPE_NULL if it was moved from.
    MPI_Datatype handle() const noexcept { return type_; }

  private:
    explicit Datatype(MPI_Datatype type) : type_(type) {}

    MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

/// `bytes` contiguous bytes as the (count, datatype) pair of an MPI call, for any size.
/// Up to 2^31 - 1 bytes this is plain MPI_BYTE; beyond, a derived type is made (MPI counts are `int` before MPI 4).
class ByteCount {
  public:
    /// Makes the pair, and a derived type where it takes one. Local.
    explicit ByteCount(std::size_t bytes);

    /// The pair. The datatype is valid as long as this.
    int count() const noexcept { return count_; }
    MPI_Datatype type() const noexcept { return large_.handle() == MPI_DATATYPE_NULL ? MPI_BYTE : large_.handle(); }

  private:
    /// Bytes of MPI_BYTE, or one element of `large_`, which is empty otherwise.
    int count_ = 0;
    Datatype large_;
};

/// Starts MPI and ends it. `runMain` is the shorter way to write a main function; this gives more control.
///
/// The constructor calls MPI_Init_thread (by default with MPI_THREAD_FUNNELED) when MPI is not yet running and
/// makes MPI_COMM_WORLD return error codes, so that MPI errors become exceptions. It warns on stderr if a launcher
/// of another MPI started the ranks. The destructor finalizes MPI if it started it.
///
/// While a session that started MPI lives, no exception is lost, and none leaves other ranks waiting. An uncaught one
/// is written to stderr with its rank, and the job ends by MPI_Abort with exit code 1: the session sets the terminate
/// handler for that. The same happens to one that leaves the session's scope for a `catch` outside of it, which is
/// never reached: the text written then is that of the thread's latest Error, since destructors cannot see the
/// exception. Catch within the scope. Constructor and destructor are Collective over MPI_COMM_WORLD.
class MpiSession {
  public:
    /// Starts MPI unless it runs. Throws StateError where MPI grants less than `threadLevel` needs.
    MpiSession(int &argc, char **&argv, int threadLevel = MPI_THREAD_FUNNELED);
    MpiSession(const MpiSession &) = delete;
    MpiSession &operator=(const MpiSession &) = delete;
    ~MpiSession();

    /// The thread support that MPI grants: at least MPI_THREAD_FUNNELED, or the constructor throws.
    int threadLevel() const noexcept { return threadLevel_; }

  private:
    /// This session started MPI, and ends it.
    bool owner_ = false;
    int threadLevel_ = MPI_THREAD_SINGLE;
    /// More than these in flight at the destructor: an exception leaves the scope.
    int exceptionsAtStart_ = 0;
};

class CommunicatorView;

namespace Detail {

/// Rank r gives `bytes[r]` bytes; `all` has room for the bytes of all ranks. Above `most` bytes, each rank
/// broadcasts its own. Collective.
void allGatherBytes(const CommunicatorView &comm, const void *mine, std::span<const std::size_t> bytes, void *all,
                    std::size_t most = std::size_t{std::numeric_limits<int>::max()});

} // namespace Detail

/// Refers to a communicator owned by other code; trivially copyable. The owner must outlive it.
class CommunicatorView {
  public:
    /// Local. StateError outside MPI's lifetime; ArgumentError for MPI_COMM_NULL and intercommunicators.
    CommunicatorView(MPI_Comm comm, SourceLocation where = SourceLocation::current()); // NOLINT: implicit on purpose

    /// The communicator of MPI, this rank in it, and how many ranks it has. Local.
    MPI_Comm handle() const noexcept { return comm_; }
    int rank() const noexcept { return rank_; }
    int size() const noexcept { return size_; }

    /// Collective. Every rank passes `count` values; afterwards all hold the result of `op` over ranks, element-wise.
    template <class T>
    void allReduce(T *values, int count, MPI_Op op) const {
        allReduce(values, count, mpiTypeOf<T>(), op);
    }
    /// Collective. The same for values of any type of MPI.
    void allReduce(void *values, int count, MPI_Datatype type, MPI_Op op) const {
        beforeCollective();
        const ActivityScope activity = ActivityScope::collective("MPI_Allreduce");
        checkMpi(MPI_Allreduce(MPI_IN_PLACE, values, count, type, op, comm_), "MPI_Allreduce");
    }
    /// Collective. The result of `op` over the ranks' values.
    template <class T>
    T allReduce(T value, MPI_Op op) const {
        allReduce(&value, 1, op);
        return value;
    }
    /// Collective. One value of each rank, in order of rank: [size].
    template <class T>
    std::vector<T> allGather(T value) const {
        requireMpiActive("ranks communicate");
        std::vector<T> all(static_cast<std::size_t>(size_));
        beforeCollective();
        const ActivityScope activity = ActivityScope::collective("MPI_Allgather");
        checkMpi(MPI_Allgather(&value, 1, mpiTypeOf<T>(), all.data(), 1, mpiTypeOf<T>(), comm_), "MPI_Allgather");
        return all;
    }
    /// Collective. The lists of all ranks concatenated, in order of rank; any length. Throws on all ranks where
    /// one lacks memory for them.
    template <class T>
    std::vector<T> allGatherV(std::span<const T> mine) const {
        static_assert(std::is_trivially_copyable_v<T>);
        std::vector<T> all;
        std::vector<std::size_t> bytes = allGather(mine.size_bytes());
        guarded([&] { all.resize(std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}) / sizeof(T)); });
        Detail::allGatherBytes(*this, mine.data(), bytes, all.data());
        return all;
    }
    /// Collective. Afterwards all ranks hold the `count` values of rank `root`; any number.
    template <class T>
    void broadcast(T *values, std::size_t count, int root = 0) const {
        static_assert(std::is_trivially_copyable_v<T>);
        broadcastBytes(values, count * sizeof(T), root);
    }
    /// Collective. Afterwards all ranks hold the value of rank `root`.
    template <class T>
    requires(!std::is_pointer_v<T>) void broadcast(T &value, int root = 0) const { broadcast(&value, 1, root); }
    /// Collective. Replaces each of `count` values by its sum over the ranks before this one: 0 on rank 0.
    template <class T>
    void exclusiveScan(T *values, int count) const {
        beforeCollective();
        const ActivityScope activity = ActivityScope::collective("MPI_Exscan");
        checkMpi(MPI_Exscan(MPI_IN_PLACE, values, count, mpiTypeOf<T>(), MPI_SUM, comm_), "MPI_Exscan");
        if (rank_ == 0) // MPI leaves them unchanged there
            std::fill_n(values, count, T{});
    }
    /// Collective. The sum of the values of the ranks before this one: 0 on rank 0.
    template <class T>
    T exclusiveScan(T value) const {
        exclusiveScan(&value, 1);
        return value;
    }
    /// Collective.
    void barrier() const {
        beforeCollective();
        const ActivityScope activity = ActivityScope::collective("MPI_Barrier");
        checkMpi(MPI_Barrier(comm_), "MPI_Barrier");
    }

    /// Makes failures collective: every rank passes its caught exception (or null), and if any rank failed, all ranks
    /// throw the exception of the lowest failing one, with that rank named in the text. Collective; one reduction
    /// without failures.
    void agree(const std::exception_ptr &mine, SourceLocation where = SourceLocation::current()) const;

    /// Call it before a collective of MPI that is not called through this class, after allocations; within DNDS only
    /// src/DNDS/Mpi has such calls. Inside `failTogether`, throws on all ranks the failure of any rank since, by
    /// one reduction; elsewhere free. Collective.
    void beforeCollective(SourceLocation where = SourceLocation::current()) const;

    /// Runs `body`, which must contain no communication, and `agree`s on its exception. Collective.
    template <class Body>
    void guarded(Body &&body, SourceLocation where = SourceLocation::current()) const {
        const std::exception_ptr failure = attempt([&] { std::forward<Body>(body)(); });
        agree(failure, where);
    }

  private:
    /// Any number of bytes, in pieces that MPI's `int` counts. Collective.
    void broadcastBytes(void *bytes, std::size_t count, int root) const;

    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0;
    int size_ = 0;
};

/// Owns a communicator and frees it. Move-only. Errors on it are returned (and thrown by DNDS), never fatal.
///
/// MPI_Comm_free is collective by the standard, so destroy communicators in the same order on all ranks.
class Communicator {
  public:
    Communicator() = default;
    Communicator(Communicator &&other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
    Communicator &operator=(Communicator &&other) noexcept {
        std::swap(comm_, other.comm_);
        return *this;
    }
    Communicator(const Communicator &) = delete;
    Communicator &operator=(const Communicator &) = delete;
    ~Communicator();

    /// Collective over `parent`. A communicator of the same ranks whose messages never mix with the parent's.
    static Communicator duplicate(CommunicatorView parent);
    /// Collective over `parent`. Ranks of one `color` form a communicator, ordered by `key`; for color MPI_UNDEFINED
    /// the result is empty.
    static Communicator split(CommunicatorView parent, int color, int key);
    /// Collective over `parent`. The ranks that share memory with this one. With `ranksPerNode > 0` each machine is
    /// divided into virtual nodes of `ranksPerNode` ranks, to try multi-node paths on one machine.
    static Communicator splitNode(CommunicatorView parent, int ranksPerNode = 0);

    /// Whether it owns a communicator: false when default constructed or moved from. Local.
    bool valid() const noexcept { return comm_ != MPI_COMM_NULL; }
    /// Throws StateError on an empty owner (default constructed or moved from).
    CommunicatorView view(SourceLocation where = SourceLocation::current()) const;

  private:
    explicit Communicator(MPI_Comm comm) noexcept : comm_(comm) {}

    MPI_Comm comm_ = MPI_COMM_NULL;
};

/// MPI crashes when asked about a freed communicator, and may reuse its handle for another one. So this
/// attaches a flag to the communicator as an attribute, which MPI deletes with it. Copies share the flag.
class CommunicatorLife {
  public:
    /// Local; looks up an attribute. Outside MPI's lifetime communicators count as freed.
    explicit CommunicatorLife(CommunicatorView comm);
    // A moved-from array keeps its communicator, so moves are copies.
    CommunicatorLife(const CommunicatorLife &) noexcept = default;
    CommunicatorLife &operator=(const CommunicatorLife &) noexcept = default;

    /// Whether MPI_Comm_free was called for it. Local, O(1).
    bool ended() const noexcept { return ended_->load(std::memory_order_relaxed); }

  private:
    /// Shared with the communicator's attribute, whose deletion sets it, and with copies; never null.
    std::shared_ptr<const std::atomic<bool>> ended_;
};

/// Copies rank 0's list to all; any length. Collective; a broadcast, a reduction and a broadcast. Throws on all ranks
/// where one lacks memory for it.
template <class T>
void broadcastList(const CommunicatorView &comm, std::vector<T> &list) {
    std::size_t size = list.size();
    comm.broadcast(size);
    comm.guarded([&] { list.resize(size); });
    comm.broadcast(list.data(), size);
}

/// Copies rank 0's strings to all; any number and length. Collective. Errors as above.
void broadcastStrings(const CommunicatorView &comm, std::vector<std::string> &strings);

/// This rank's number among the ranks of its machine, independent of the order of ranks and of virtual
/// nodes (DNDS_RANKS_PER_NODE). It decides which of the machine's devices is its own (`Device::useDevice`). Collective.
int rankOnMachine(CommunicatorView comm);

} // namespace DNDS
