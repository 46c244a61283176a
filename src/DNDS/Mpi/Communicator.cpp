#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <cstdio>
#include <string>

namespace DNDS {

namespace {

void returnErrors(MPI_Comm comm) {
    checkMpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

void learnRank() {
    int rank = -1;
    checkMpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
    setErrorRank(rank);
}

} // namespace

MpiSession::MpiSession(int &argc, char **&argv, int threadLevel) : exceptionsAtStart_(std::uncaught_exceptions()) {
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (initialized == 0) {
        checkMpi(MPI_Init_thread(&argc, &argv, threadLevel, &threadLevel_), "MPI_Init_thread");
        owner_ = true;
    } else {
        checkMpi(MPI_Query_thread(&threadLevel_), "MPI_Query_thread");
    }
    learnRank();
    returnErrors(MPI_COMM_WORLD);
    DNDS_CHECK(threadLevel_ >= threadLevel, StateError, "MPI grants thread level {} but {} was asked for", threadLevel_,
               threadLevel);
}

MpiSession::~MpiSession() {
    if (!owner_)
        return;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0)
        return;
    if (std::uncaught_exceptions() > exceptionsAtStart_) {
        std::fprintf(stderr, "DNDS: rank %d ends the job because of an exception\n", errorRank());
        std::fflush(nullptr);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
}

CommunicatorView::CommunicatorView(MPI_Comm comm, SourceLocation where) : comm_(comm) {
    requireMpiActive("a communicator is used", where);
    if (comm == MPI_COMM_NULL) [[unlikely]]
        throw ArgumentError("MPI_COMM_NULL is not a communicator", where);
    checkMpi(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank", where);
    checkMpi(MPI_Comm_size(comm, &size_), "MPI_Comm_size", where);
    if (errorRank() < 0)
        learnRank();
}

void CommunicatorView::agree(const std::exception_ptr &mine, SourceLocation where) const {
    const int worst = allReduce(mine ? size_ - rank_ : 0, MPI_MAX);
    if (worst == 0) [[likely]]
        return;

    // The lowest failing rank tells the others the kind and the text of its failure.
    const int source = size_ - worst;
    int kind = static_cast<int>(ErrorKind::State);
    std::string text;
    if (source == rank_) {
        try {
            std::rethrow_exception(mine);
        } catch (const Error &error) {
            kind = static_cast<int>(error.kind());
            text = fmt::format("{} (rank {}, in {})", error.message(), rank_, error.where().function);
        } catch (const std::bad_alloc &) {
            kind = static_cast<int>(ErrorKind::Memory);
            text = fmt::format("rank {} has not enough memory", rank_);
        } catch (const std::exception &error) {
            text = fmt::format("{} (rank {})", error.what(), rank_);
        } catch (...) {
            text = fmt::format("an exception of unknown type (rank {})", rank_);
        }
    }
    std::array<int, 2> header{kind, static_cast<int>(text.size())};
    checkMpi(MPI_Bcast(header.data(), 2, MPI_INT, source, comm_), "MPI_Bcast", where);
    text.resize(static_cast<std::size_t>(header[1]));
    checkMpi(MPI_Bcast(text.data(), header[1], MPI_CHAR, source, comm_), "MPI_Bcast", where);
    throwError(static_cast<ErrorKind>(header[0]), text, where);
}

Communicator::~Communicator() {
    if (comm_ != MPI_COMM_NULL && mpiActive())
        MPI_Comm_free(&comm_);
}

Communicator Communicator::duplicate(CommunicatorView parent) {
    MPI_Comm comm = MPI_COMM_NULL;
    checkMpi(MPI_Comm_dup(parent.handle(), &comm), "MPI_Comm_dup");
    Communicator owner(comm);
    returnErrors(comm);
    return owner;
}

Communicator Communicator::split(CommunicatorView parent, int color, int key) {
    MPI_Comm comm = MPI_COMM_NULL;
    checkMpi(MPI_Comm_split(parent.handle(), color, key, &comm), "MPI_Comm_split");
    Communicator owner(comm);
    if (comm != MPI_COMM_NULL)
        returnErrors(comm);
    return owner;
}

Communicator Communicator::splitNode(CommunicatorView parent, int ranksPerNode) {
    DNDS_CHECK(ranksPerNode >= 0, ArgumentError, "virtual nodes of {} ranks", ranksPerNode);
    MPI_Comm comm = MPI_COMM_NULL;
    checkMpi(MPI_Comm_split_type(parent.handle(), MPI_COMM_TYPE_SHARED, parent.rank(), MPI_INFO_NULL, &comm),
             "MPI_Comm_split_type");
    Communicator node(comm);
    returnErrors(comm);
    if (ranksPerNode == 0)
        return node;
    const CommunicatorView machine = node.view();
    return split(machine, machine.rank() / ranksPerNode, machine.rank());
}

CommunicatorView Communicator::view(SourceLocation where) const {
    if (!valid()) [[unlikely]]
        throw StateError("this communicator is empty (default constructed or moved from)", where);
    return CommunicatorView(comm_, where);
}

} // namespace DNDS
