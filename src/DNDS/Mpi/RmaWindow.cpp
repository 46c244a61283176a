#include "DNDS/Mpi/RmaWindow.hpp"

#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/RollCall.hpp"

#include <utility>

namespace DNDS {

RmaWindow::RmaWindow(CommunicatorView comm, void *base, std::size_t bytes) {
    comm.beforeCollective();
    const ActivityScope activity = ActivityScope::collective("MPI_Win_create");
    // Passive target, locked for all ranks until `free`: puts and gets need no further synchronisation than
    // flushes. No rank ever takes an exclusive lock, so MPI need not check.
    const int code = MPI_Win_create(base, static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, comm.handle(), &window_);
    if (code != MPI_SUCCESS)
        window_ = MPI_WIN_NULL;
    // Open MPI 4.1 chooses its component rdma before it notices that processes cannot read each other's memory.
    checkMpi(code, "MPI_Win_create (with Open MPI, where processes may not read each other's memory, as in containers: "
                   "set OMPI_MCA_osc=^rdma)");
    checkMpi(MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
    checkMpi(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_), "MPI_Win_lock_all");
}

// Collective. Unlocking completes all operations of this rank at their targets.
void RmaWindow::free() {
    if (window_ == MPI_WIN_NULL)
        return;
    // Empty even if MPI fails here: the window is not freed a second time.
    MPI_Win window = std::exchange(window_, MPI_WIN_NULL);
    checkMpi(MPI_Win_unlock_all(window), "MPI_Win_unlock_all");
    const ActivityScope activity = ActivityScope::collective("MPI_Win_free");
    checkMpi(MPI_Win_free(&window), "MPI_Win_free");
}

void RmaWindow::put(const void *from, std::size_t bytes, int rank, std::size_t offset) const {
    const ByteCount count(bytes);
    checkMpi(MPI_Put(from, count.count(), count.type(), rank, static_cast<MPI_Aint>(offset), count.count(),
                     count.type(), window_),
             "MPI_Put");
}

void RmaWindow::get(void *to, std::size_t bytes, int rank, std::size_t offset) const {
    const ByteCount count(bytes);
    checkMpi(MPI_Get(to, count.count(), count.type(), rank, static_cast<MPI_Aint>(offset), count.count(), count.type(),
                     window_),
             "MPI_Get");
}

// The three in order of strength: buffers of this rank reusable; operations visible at the target; private and public
// copies of this rank's window equal (MPI 3.1, section 11.5.4).
void RmaWindow::flushLocal(int rank) const { checkMpi(MPI_Win_flush_local(rank, window_), "MPI_Win_flush_local"); }

void RmaWindow::flush(int rank) const { checkMpi(MPI_Win_flush(rank, window_), "MPI_Win_flush"); }

void RmaWindow::sync() const { checkMpi(MPI_Win_sync(window_), "MPI_Win_sync"); }

} // namespace DNDS
