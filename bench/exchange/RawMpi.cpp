#include "RawMpi.hpp"

#include <limits>

namespace DNDS::Bench {

namespace {

constexpr int tag = 7;

int elements(index rows, int width) {
    const index count = rows * width;
    DNDS_CHECK(count <= std::numeric_limits<int>::max(), ArgumentError, "{} doubles do not fit one MPI count", count);
    return static_cast<int>(count);
}

} // namespace

RawMpi::RawMpi(CommunicatorView comm, const PullPlan &plan, const double *father, int width)
    : PullMethod(RawMpiName), rows_(plan.sentRows), readers_(plan.readers), father_(father), width_(width),
      gather_(gatherFor(width)), packed_(plan.sentRows.size() * static_cast<std::size_t>(width)),
      son_(plan.ghosts.size() * static_cast<std::size_t>(width)), receives_(static_cast<int>(plan.owners.size())) {
    requests_.reserve(plan.owners.size() + plan.readers.size());
    for (const PeerRange &owner : plan.owners)
        checkMpi(MPI_Recv_init(son_.data() + owner.begin * width, elements(owner.count, width), MPI_DOUBLE, owner.rank,
                               tag, comm.handle(), &requests_.emplace_back()),
                 "MPI_Recv_init");
    for (const PeerRange &reader : plan.readers)
        checkMpi(MPI_Send_init(packed_.data() + reader.begin * width, elements(reader.count, width), MPI_DOUBLE,
                               reader.rank, tag, comm.handle(), &requests_.emplace_back()),
                 "MPI_Send_init");
}

RawMpi::~RawMpi() {
    for (MPI_Request &request : requests_)
        MPI_Request_free(&request);
}

void RawMpi::pull() {
    if (receives_ > 0)
        checkMpi(MPI_Startall(receives_, requests_.data()), "MPI_Startall");
    MPI_Request *send = requests_.data() + receives_;
    for (const PeerRange &reader : readers_) {
        gather_(packed_.data() + reader.begin * width_, father_,
                rows_.subspan(static_cast<std::size_t>(reader.begin), static_cast<std::size_t>(reader.count)), width_);
        checkMpi(MPI_Start(send++), "MPI_Start");
    }
    checkMpi(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
}

std::unique_ptr<PullMethod> makeRawMpi(CommunicatorView comm, const PullPlan &plan, const double *father, int width) {
    return std::make_unique<RawMpi>(comm, plan, father, width);
}

} // namespace DNDS::Bench
