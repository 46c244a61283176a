#include "HandPull.hpp"

#include <algorithm>
#include <utility>

namespace DNDS::Bench {
namespace {

std::vector<std::vector<index>> rowsOf(const PeerRows &peers) {
    std::vector<std::vector<index>> rows(peers.size());
    for (std::size_t peer = 0; peer < peers.size(); peer++)
        peers.lists[peer].forEach([&](index row) { rows[peer].push_back(row); });
    return rows;
}

} // namespace

HandPull::HandPull(const ExchangePattern &pattern, CommunicatorView comm, int tag, std::vector<Field> fields)
    : fields_(std::move(fields)), given_(rowsOf(pattern.readers())), received_(rowsOf(pattern.owners())) {
    std::size_t width = 0;
    for (const Field &field : fields_)
        width += static_cast<std::size_t>(field.width);
    requests_.reserve(given_.size() + received_.size());
    for (std::size_t peer = 0; peer < received_.size(); peer++) {
        const std::size_t size = received_[peer].size() * width;
        // Ghosts of one owner are consecutive.
        real *into = fields_.size() == 1 ? fields_[0].ghosts + received_[peer].front() * fields_[0].width
                                         : arrived_.emplace_back(size).data();
        checkMpi(MPI_Recv_init(into, static_cast<int>(size), MPI_DOUBLE, pattern.owners().ranks[peer], tag,
                               comm.handle(), &requests_.emplace_back()),
                 "MPI_Recv_init");
    }
    for (std::size_t peer = 0; peer < given_.size(); peer++) {
        std::vector<real> &message = sent_.emplace_back(given_[peer].size() * width);
        checkMpi(MPI_Send_init(message.data(), static_cast<int>(message.size()), MPI_DOUBLE,
                               pattern.readers().ranks[peer], tag, comm.handle(), &requests_.emplace_back()),
                 "MPI_Send_init");
    }
}

HandPull::~HandPull() {
    for (MPI_Request &request : requests_)
        MPI_Request_free(&request);
}

void HandPull::start() {
    if (!received_.empty())
        checkMpi(MPI_Startall(static_cast<int>(received_.size()), requests_.data()), "MPI_Startall");
    for (std::size_t peer = 0; peer < given_.size(); peer++) {
        real *to = sent_[peer].data();
        for (const Field &field : fields_)
            for (const index row : given_[peer])
                to = std::copy_n(field.own + row * field.width, field.width, to);
        checkMpi(MPI_Start(&requests_[received_.size() + peer]), "MPI_Start");
    }
}

void HandPull::wait() {
    checkMpi(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    for (std::size_t peer = 0; peer < arrived_.size(); peer++) {
        const real *from = arrived_[peer].data();
        for (const Field &field : fields_)
            for (const index row : received_[peer]) {
                std::copy_n(from, field.width, field.ghosts + row * field.width);
                from += field.width;
            }
    }
}

} // namespace DNDS::Bench
