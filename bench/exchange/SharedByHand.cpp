/// @file SharedByHand.cpp
/// @brief A pull through shared memory as one writes it by hand: the yardstick of the node-shared transport.
#include "GatherRows.hpp"
#include "PullMethod.hpp"

#include <atomic>
#include <new>
#include <sched.h>
#include <vector>

namespace DNDS::Bench {

namespace {

/// One owner and one reader; in the reader's memory, two lines apart because processors fetch lines in pairs.
struct Edge {
    alignas(128) std::atomic<unsigned> opened{0};  ///< the reader no longer needs the rows of the pull before
    alignas(128) std::atomic<unsigned> arrived{0}; ///< the rows of this pull are there
};

void waitFor(const std::atomic<unsigned> &flag, unsigned pull) {
    for (int spin = 0; flag.load(std::memory_order_acquire) != pull; ++spin) {
        if (spin >= 64)
            sched_yield();
#if defined(__x86_64__)
        else
            __builtin_ia32_pause();
#endif
    }
}

/// Each owner gathers into its readers' sons with the loop and the stores of `Floor`, and two flags say when. No
/// offers, no failures, no timing of stores, one array whose address never changes.
class SharedByHand final : public PullMethod {
  public:
    SharedByHand(CommunicatorView comm, const PullPlan &plan, const double *father, int width)
        : PullMethod(SharedByHandName), rows_(plan.sentRows), father_(father), width_(width),
          gather_(gatherFor(width)) {
        const auto ranks = static_cast<std::size_t>(comm.size());
        doubles_ = plan.ghosts.size() * static_cast<std::size_t>(width);
        const auto bytes = static_cast<MPI_Aint>(ranks * sizeof(Edge) + doubles_ * sizeof(double) + alignof(Edge));
        void *base = nullptr;
        checkMpi(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, comm.handle(), static_cast<void *>(&base), &window_),
                 "MPI_Win_allocate_shared");
        std::byte *own = segment(comm.rank());
        for (std::size_t rank = 0; rank < ranks; ++rank)
            new (own + rank * sizeof(Edge)) Edge;
        son_ = reinterpret_cast<double *>(own + ranks * sizeof(Edge));

        std::vector<index> begins(ranks, 0); // where each owner's rows begin in this rank's son
        for (const PeerRange &owner : plan.owners)
            begins[static_cast<std::size_t>(owner.rank)] = owner.begin;
        std::vector<index> places(ranks, 0);
        checkMpi(MPI_Alltoall(begins.data(), 1, MPI_INT64_T, places.data(), 1, MPI_INT64_T, comm.handle()),
                 "MPI_Alltoall"); // also: all ranks have made their flags
        for (const PeerRange &owner : plan.owners)
            owners_.push_back(reinterpret_cast<Edge *>(own) + owner.rank);
        for (const PeerRange &reader : plan.readers) {
            std::byte *there = segment(reader.rank);
            readers_.push_back({reinterpret_cast<Edge *>(there) + comm.rank(),
                                reinterpret_cast<double *>(there + ranks * sizeof(Edge)) +
                                    places[static_cast<std::size_t>(reader.rank)] * width,
                                reader});
        }
    }
    ~SharedByHand() override { MPI_Win_free(&window_); }

    void pull() override {
        ++pull_;
        for (Edge *owner : owners_)
            owner->opened.store(pull_, std::memory_order_release);
        for (const Reader &reader : readers_) {
            waitFor(reader.edge->opened, pull_);
            gather_(
                reader.son, father_,
                rows_.subspan(static_cast<std::size_t>(reader.rows.begin), static_cast<std::size_t>(reader.rows.count)),
                width_);
            reader.edge->arrived.store(pull_, std::memory_order_release);
        }
        for (const Edge *owner : owners_)
            waitFor(owner->arrived, pull_);
    }
    std::span<double> son() override { return {son_, doubles_}; }

  private:
    struct Reader {
        Edge *edge;
        double *son; ///< begin of this rank's rows
        PeerRange rows;
    };

    std::byte *segment(int rank) const {
        MPI_Aint size = 0;
        int unit = 0;
        void *base = nullptr;
        checkMpi(MPI_Win_shared_query(window_, rank, &size, &unit, static_cast<void *>(&base)), "MPI_Win_shared_query");
        const auto address = reinterpret_cast<std::uintptr_t>(base);
        return static_cast<std::byte *>(base) + (alignof(Edge) - address % alignof(Edge)) % alignof(Edge);
    }

    std::span<const LocalIndex> rows_;
    const double *father_;
    int width_;
    GatherFunction gather_;
    MPI_Win window_ = MPI_WIN_NULL;
    double *son_ = nullptr;
    std::size_t doubles_ = 0;
    std::vector<Edge *> owners_;
    std::vector<Reader> readers_;
    unsigned pull_ = 0;
};

} // namespace

std::unique_ptr<PullMethod> makeSharedByHand(CommunicatorView comm, const PullPlan &plan, const double *father,
                                             int width) {
    const Communicator node = Communicator::splitNode(comm);
    if (comm.allReduce(node.view().size(), MPI_MIN) != comm.size())
        return nullptr;
    return std::make_unique<SharedByHand>(comm, plan, father, width);
}

} // namespace DNDS::Bench
