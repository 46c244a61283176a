#include "MpiCounts.hpp"

#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace DNDS::Bench {

namespace {

struct Persistent {
    MPI_Comm comm;
    int destination;
    std::uint64_t bytes;
};

// One thread a rank calls MPI in this program.
MpiCounts counted;
std::set<int> destinations; // ranks of MPI_COMM_WORLD
std::map<MPI_Comm, std::vector<int>> worldRanks;
std::map<MPI_Request, Persistent> persistent;

std::uint64_t bytesOf(std::int64_t count, MPI_Datatype type) {
    if (count <= 0 || type == MPI_DATATYPE_NULL)
        return 0;
    int size = 0;
    PMPI_Type_size(type, &size);
    return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size);
}

int sizeOf(MPI_Comm comm) {
    int size = 0;
    PMPI_Comm_size(comm, &size);
    return size;
}

/// The ranks of MPI_COMM_WORLD that are those of `comm`.
const std::vector<int> &worldRanksOf(MPI_Comm comm) {
    std::vector<int> &ranks = worldRanks[comm];
    if (!ranks.empty())
        return ranks;
    std::vector<int> own(static_cast<std::size_t>(sizeOf(comm)));
    std::iota(own.begin(), own.end(), 0);
    ranks.resize(own.size());
    MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(comm, &group);
    PMPI_Group_translate_ranks(group, sizeOf(comm), own.data(), world, ranks.data());
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    return ranks;
}

bool isRoot(int root, MPI_Comm comm) {
    int rank = -1;
    PMPI_Comm_rank(comm, &rank);
    return rank == root;
}

std::uint64_t sumOf(const int *counts, MPI_Comm comm) {
    std::uint64_t sum = 0;
    for (int rank = 0; rank < sizeOf(comm); ++rank)
        sum += static_cast<std::uint64_t>(counts[rank]);
    return sum;
}

void noteMessage(std::uint64_t bytes, int destination, MPI_Comm comm) {
    if (destination == MPI_PROC_NULL)
        return;
    ++counted.messages;
    counted.messageBytes += bytes;
    destinations.insert(worldRanksOf(comm)[static_cast<std::size_t>(destination)]);
}

void noteCollective(std::uint64_t bytes) {
    ++counted.collectives;
    counted.collectiveBytes += bytes;
}

void noteStart(MPI_Request request) {
    if (const auto found = persistent.find(request); found != persistent.end())
        noteMessage(found->second.bytes, found->second.destination, found->second.comm);
}

} // namespace

void resetMpiCounts() {
    counted = {};
    destinations.clear();
}

MpiCounts mpiCounts() { return counted; }

std::uint64_t ranksSentTo() { return destinations.size(); }

} // namespace DNDS::Bench

// The calls of the library and of PT-Scotch; MPI's own bodies are reached by their profiling names.
using namespace DNDS::Bench;
using Buffer = const void *;
extern "C" {

int MPI_Send(Buffer data, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm) {
    noteMessage(bytesOf(count, type), rank, comm);
    return PMPI_Send(data, count, type, rank, tag, comm);
}
int MPI_Isend(Buffer data, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm, MPI_Request *request) {
    noteMessage(bytesOf(count, type), rank, comm);
    return PMPI_Isend(data, count, type, rank, tag, comm, request);
}
int MPI_Issend(Buffer data, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm, MPI_Request *request) {
    noteMessage(bytesOf(count, type), rank, comm);
    return PMPI_Issend(data, count, type, rank, tag, comm, request);
}
int MPI_Sendrecv(Buffer sent, int sentCount, MPI_Datatype sentType, int to, int sentTag, void *data, int count,
                 MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
    noteMessage(bytesOf(sentCount, sentType), to, comm);
    return PMPI_Sendrecv(sent, sentCount, sentType, to, sentTag, data, count, type, from, tag, comm, status);
}
int MPI_Send_init(Buffer data, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm, MPI_Request *request) {
    const int result = PMPI_Send_init(data, count, type, rank, tag, comm, request);
    persistent[*request] = {comm, rank, bytesOf(count, type)};
    return result;
}
int MPI_Request_free(MPI_Request *request) {
    persistent.erase(*request);
    return PMPI_Request_free(request);
}
int MPI_Start(MPI_Request *request) {
    noteStart(*request);
    return PMPI_Start(request);
}
int MPI_Startall(int count, MPI_Request requests[]) {
    for (int k = 0; k < count; ++k)
        noteStart(requests[k]);
    return PMPI_Startall(count, requests);
}

int MPI_Barrier(MPI_Comm comm) {
    noteCollective(0);
    return PMPI_Barrier(comm);
}
int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request) {
    noteCollective(0);
    return PMPI_Ibarrier(comm, request);
}
int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    noteCollective(bytesOf(count, type));
    return PMPI_Bcast(data, count, type, root, comm);
}
int MPI_Reduce(Buffer data, void *result, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
    noteCollective(bytesOf(count, type) * (isRoot(root, comm) ? 2 : 1));
    return PMPI_Reduce(data, result, count, type, op, root, comm);
}
int MPI_Allreduce(Buffer data, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    noteCollective(2 * bytesOf(count, type));
    return PMPI_Allreduce(data, result, count, type, op, comm);
}
int MPI_Iallreduce(Buffer data, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request) {
    noteCollective(2 * bytesOf(count, type));
    return PMPI_Iallreduce(data, result, count, type, op, comm, request);
}
int MPI_Scan(Buffer data, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    noteCollective(2 * bytesOf(count, type));
    return PMPI_Scan(data, result, count, type, op, comm);
}
int MPI_Exscan(Buffer data, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    noteCollective(2 * bytesOf(count, type));
    return PMPI_Exscan(data, result, count, type, op, comm);
}
int MPI_Gather(Buffer data, int count, MPI_Datatype type, void *all, int each, MPI_Datatype eachType, int root,
               MPI_Comm comm) {
    noteCollective(bytesOf(count, type) +
                   (isRoot(root, comm) ? bytesOf(each, eachType) : 0) * static_cast<std::uint64_t>(sizeOf(comm)));
    return PMPI_Gather(data, count, type, all, each, eachType, root, comm);
}
int MPI_Gatherv(Buffer data, int count, MPI_Datatype type, void *all, const int counts[], const int starts[],
                MPI_Datatype eachType, int root, MPI_Comm comm) {
    noteCollective(bytesOf(count, type) + (isRoot(root, comm) ? sumOf(counts, comm) * bytesOf(1, eachType) : 0));
    return PMPI_Gatherv(data, count, type, all, counts, starts, eachType, root, comm);
}
int MPI_Allgather(Buffer data, int count, MPI_Datatype type, void *all, int each, MPI_Datatype eachType,
                  MPI_Comm comm) {
    noteCollective(bytesOf(each, eachType) * static_cast<std::uint64_t>(sizeOf(comm) + 1));
    return PMPI_Allgather(data, count, type, all, each, eachType, comm);
}
int MPI_Iallgather(Buffer data, int count, MPI_Datatype type, void *all, int each, MPI_Datatype eachType, MPI_Comm comm,
                   MPI_Request *request) {
    noteCollective(bytesOf(each, eachType) * static_cast<std::uint64_t>(sizeOf(comm) + 1));
    return PMPI_Iallgather(data, count, type, all, each, eachType, comm, request);
}
int MPI_Allgatherv(Buffer data, int count, MPI_Datatype type, void *all, const int counts[], const int starts[],
                   MPI_Datatype eachType, MPI_Comm comm) {
    noteCollective(bytesOf(count, type) + sumOf(counts, comm) * bytesOf(1, eachType));
    return PMPI_Allgatherv(data, count, type, all, counts, starts, eachType, comm);
}
int MPI_Alltoall(Buffer data, int count, MPI_Datatype type, void *all, int each, MPI_Datatype eachType, MPI_Comm comm) {
    noteCollective(2 * bytesOf(each, eachType) * static_cast<std::uint64_t>(sizeOf(comm)));
    return PMPI_Alltoall(data, count, type, all, each, eachType, comm);
}
int MPI_Alltoallv(Buffer data, const int sent[], const int starts[], MPI_Datatype type, void *all, const int counts[],
                  const int places[], MPI_Datatype eachType, MPI_Comm comm) {
    noteCollective(sumOf(sent, comm) * bytesOf(1, type) + sumOf(counts, comm) * bytesOf(1, eachType));
    return PMPI_Alltoallv(data, sent, starts, type, all, counts, places, eachType, comm);
}

int MPI_Comm_free(MPI_Comm *comm) {
    worldRanks.erase(*comm);
    return PMPI_Comm_free(comm);
}
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made) {
    ++counted.communicators;
    return PMPI_Comm_dup(comm, made);
}
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made) {
    ++counted.communicators;
    return PMPI_Comm_split(comm, color, key, made);
}
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made) {
    ++counted.communicators;
    return PMPI_Comm_split_type(comm, type, key, info, made);
}

} // extern "C"
